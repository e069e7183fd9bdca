package expr

import (
	"slices"

	"github.com/streamdb/streamdb/sql/types"
)

// CastContext says when a cast may be applied (pg_cast.castcontext).
type CastContext uint8

// The contexts, from the strictest: an implicit cast may be applied everywhere.
const (
	CastImplicit   CastContext = iota // in expressions
	CastAssignment                    // storing into a column
	CastExplicit                      // CAST(x AS t), x::t
)

// Cast is one entry of the cast table. Fn nil means that the two types have the
// same physical form. A cast function may have a second argument, the type
// modifier of the target (int4), and a third, whether the cast is explicit (bool).
type Cast struct {
	From, To types.OID
	Context  CastContext
	Fn       *Function
}

var registry = struct {
	funcs  map[string][]*Function
	ops    map[string][]*Function
	aggs   map[string][]*Aggregate
	tables map[string][]*TableFunction
	casts  map[[2]types.OID]*Cast
	// lengths holds the length coercions: casts of a type to itself with a modifier.
	lengths map[types.OID]*Function
}{
	funcs:   map[string][]*Function{},
	ops:     map[string][]*Function{},
	aggs:    map[string][]*Aggregate{},
	tables:  map[string][]*TableFunction{},
	casts:   map[[2]types.OID]*Cast{},
	lengths: map[types.OID]*Function{},
}

// Register adds an overload of a scalar function, or of an operator if
// f.Operator. It is called from init functions only.
func Register(f Function) *Function {
	p := &f
	p.Args = slices.Clip(p.Args) // overloads may share their lists
	if f.Operator {
		registry.ops[f.Name] = append(registry.ops[f.Name], p)
	} else {
		registry.funcs[f.Name] = append(registry.funcs[f.Name], p)
	}
	return p
}

// RegisterAggregate adds an overload of an aggregate function.
func RegisterAggregate(a Aggregate) *Aggregate {
	p := &a
	if p.Collect == nil {
		p.Collect = accumulate
	}
	registry.aggs[a.Name] = append(registry.aggs[a.Name], p)
	return p
}

// RegisterTableFunction adds an overload of a set-returning function.
func RegisterTableFunction(t TableFunction) *TableFunction {
	p := &t
	registry.tables[t.Name] = append(registry.tables[t.Name], p)
	return p
}

// RegisterCast adds an entry of the cast table; From equal to To registers the
// length coercion of the type.
func RegisterCast(c Cast) {
	if c.From == c.To {
		registry.lengths[c.From] = c.Fn
		return
	}
	registry.casts[[2]types.OID{c.From, c.To}] = &c
}

// Functions lists the overloads of a scalar function; none means that there is
// no function of that name.
func Functions(name string) []*Function { return registry.funcs[name] }

// Operators lists the overloads of an operator symbol.
func Operators(symbol string) []*Function { return registry.ops[symbol] }

// IsFunction reports whether a scalar function of that name exists.
func IsFunction(name string) bool { return len(registry.funcs[name]) > 0 }

// IsAggregate reports whether an aggregate of that name exists.
func IsAggregate(name string) bool { return len(registry.aggs[name]) > 0 }

// IsTableFunction reports whether a set-returning function of that name exists.
func IsTableFunction(name string) bool { return len(registry.tables[name]) > 0 }

// Collects reports whether there is an aggregate of that name that keeps the order of
// its rows.
func Collects(name string) bool {
	for _, a := range registry.aggs[name] {
		if !a.Ordered && (a.Op == AggCollect || a.Op == AggFirst || a.Op == AggLast) {
			return true
		}
	}
	return false
}

package pgcatalog

import (
	"slices"
	"strconv"

	"github.com/streamdb/streamdb/catalog"
	"github.com/streamdb/streamdb/sql/types"
)

// What the system catalogs show of sequences, and of functions that users have made.

func init() {
	define(map[string]definition{
		"pg_sequence":  {compute: sequences},
		"pg_sequences": {compute: sequenceViews, live: true},
		".sequences":   personal(infoSequences),
	})
}

func sequences(m *model, _ Env, f *filler) {
	rs := m.ofKind("S")
	f.n = len(rs)
	f.oid("seqrelid", func(i int) uint32 { return rs[i].oid })
	def := func(i int) *catalog.Sequence { return rs[i].obj.Sequence }
	f.oid("seqtypid", func(i int) uint32 { return uint32(def(i).Type.OID) })
	f.int("seqstart", func(i int) int64 { return def(i).Start })
	f.int("seqincrement", func(i int) int64 { return def(i).Increment })
	f.int("seqmax", func(i int) int64 { return def(i).Max })
	f.int("seqmin", func(i int) int64 { return def(i).Min })
	f.int("seqcache", func(i int) int64 { return max(def(i).Cache, 1) })
	f.bool("seqcycle", func(i int) bool { return def(i).Cycle })
}

func sequenceViews(m *model, e Env, f *filler) {
	var rows []row
	for _, r := range m.ofKind("S") {
		d := r.obj.Sequence
		x := row{"schemaname": r.schema, "sequencename": r.name, "sequenceowner": e.User(), "data_type": uint32(d.Type.OID),
			"start_value": d.Start, "min_value": d.Min, "max_value": d.Max, "increment_by": d.Increment, "cycle": d.Cycle, "cache_size": max(d.Cache, 1)}
		if v, called := e.LastValue(r.obj); called {
			x["last_value"] = v
		}
		rows = append(rows, x)
	}
	f.rows(rows...)
}

func infoSequences(m *model, e Env, f *filler) {
	var rs []*rel
	for _, r := range m.ofKind("S") {
		if !r.obj.Sequence.Identity {
			rs = append(rs, r)
		}
	}
	f.n = len(rs)
	f.all(e.Database(), "sequence_catalog")
	f.text("sequence_schema", func(i int) string { return rs[i].schema })
	f.text("sequence_name", func(i int) string { return rs[i].name })
	def := func(i int) *catalog.Sequence { return rs[i].obj.Sequence }
	f.text("data_type", func(i int) string { return dataTypeName(def(i).Type) })
	f.int("numeric_precision", func(i int) int64 {
		switch def(i).Type.OID {
		case types.OIDInt2:
			return 16
		case types.OIDInt4:
			return 32
		}
		return 64
	})
	f.all(2, "numeric_precision_radix")
	f.all(0, "numeric_scale")
	number := func(name string, g func(d *catalog.Sequence) int64) {
		f.text(name, func(i int) string { return strconv.FormatInt(g(def(i)), 10) })
	}
	number("start_value", func(d *catalog.Sequence) int64 { return d.Start })
	number("minimum_value", func(d *catalog.Sequence) int64 { return d.Min })
	number("maximum_value", func(d *catalog.Sequence) int64 { return d.Max })
	number("increment", func(d *catalog.Sequence) int64 { return d.Increment })
	f.text("cycle_option", func(i int) string { return yesNo(def(i).Cycle) })
}

// lastValueCall is pg_sequence_last_value: NULL before the first value.
func lastValueCall(c *call) result {
	x := c.m.byOID[c.oid(0)]
	if x == nil || x.kind != 'S' {
		return none
	}
	if v, called := c.r.env.LastValue(x.obj); called {
		return integer(v)
	}
	return none
}

// serialCall is pg_get_serial_sequence: the sequence that a column owns.
func serialCall(c *call) result {
	x, err := c.r.relation(c.args[0])
	if err == nil && x.attr(c.args[1]) == nil {
		err = errNoColumn(c.args[1], x)
	}
	if err != nil {
		return result{null: true, err: err}
	}
	for _, r := range c.m.ofKind("S") {
		if d := r.obj.Sequence; x.obj != nil && d.Table == x.obj.ID && d.Column == c.args[1] {
			return text(r.qualified())
		}
	}
	return none
}

// userProcs are the functions of the catalog as rows of pg_proc.
func (m *model) userProcs() []*proc {
	var out []*proc
	for _, o := range m.snap.Objects() {
		if o.Function != nil {
			out = append(out, userProc(o))
		}
	}
	return out
}

// allProcs are the functions that are built in and those of the catalog.
func (m *model) allProcs() []*proc { return append(slices.Clip(procs().list), m.userProcs()...) }

func userProc(o *catalog.Object) *proc {
	fn := o.Function
	p := &proc{oid: o.OID, name: o.Name, nsp: o.Schema, kind: 'f', lang: langSQL, cost: 100, strict: fn.Strict, set: fn.Set,
		volatile: fn.Volatility[0], parallel: 'u', ret: uint32(fn.Returns.OID), src: fn.Source}
	if fn.Set {
		p.rows = 1000
	}
	for _, a := range fn.Args {
		p.args = append(p.args, uint32(a.Type.OID))
		if a.Default != "" {
			p.defaults = append(p.defaults, a.Default)
		}
	}
	if fn.Procedure {
		p.kind = 'p'
	}
	if variadicLast(fn) {
		if p.variadic = uint32(fn.Args[len(fn.Args)-1].Type.OID.Elem()); p.variadic == 0 {
			p.variadic = uint32(types.OIDAnyElement) // VARIADIC anyarray
		}
	}
	all := parameterList(fn)
	special := slices.ContainsFunc(all, func(a catalog.Argument) bool { return a.Mode != 'i' })
	named := false
	for _, a := range all {
		if special {
			p.all, p.modes = append(p.all, uint32(a.Type.OID)), p.modes+string(a.Mode)
		}
		p.names = append(p.names, a.Name)
		named = named || a.Name != ""
	}
	if !named {
		p.names = nil
	}
	return p
}

// parameterList lists all parameters of a function, with those that are results.
func parameterList(fn *catalog.Function) []catalog.Argument {
	all := fn.All
	if all == nil { // it has but inputs, or is from when the order was not kept
		all = slices.Clone(fn.Args)
		for _, a := range fn.Table {
			if a.Mode != 'b' && a.Mode != 't' {
				all = append(all, a)
			}
		}
	}
	all = slices.Clip(all)
	for _, a := range fn.Table {
		if a.Mode == 't' && !slices.ContainsFunc(fn.All, func(b catalog.Argument) bool { return b.Mode == 't' }) {
			all = append(all, a)
		}
	}
	return all
}

// variadicLast reports whether the last argument of a function takes several.
func variadicLast(f *catalog.Function) bool {
	return len(f.Args) > 0 && f.Args[len(f.Args)-1].Mode == 'v'
}

// proc finds a function by its OID, nil if there is none.
func (m *model) proc(oid uint32) *proc {
	if p := procs().byOID[oid]; p != nil {
		return p
	}
	if o := m.snap.ByOID(oid); o != nil && o.Function != nil {
		return userProc(o)
	}
	return nil
}

package expr

import (
	"fmt"
	"math/rand"
	"strings"
	"testing"

	"github.com/streamdb/streamdb/internal/oracle"
	"github.com/streamdb/streamdb/sql/types"
)

// castTargets are types with the modifiers that have an effect.
func castTargets() []types.Type {
	ts := []types.Type{
		types.Bool, types.Int2, types.Int4, types.Int8, types.Float4, types.Float8, types.Numeric, types.Text, types.Varchar, types.BPChar,
		types.Name, types.Char, types.Bytea, types.Oid, types.Date, types.Time, types.TimeTZ, types.Timestamp, types.TimestampTZ,
		types.Interval, types.UUID, types.JSON, types.JSONB, types.Of(types.OIDInt4Array), types.Of(types.OIDTextArray), types.Of(types.OIDNumericArray),
		inetType, cidrType, macType, mac8Type, cidrType.ArrayType(),
	}
	for _, name := range []string{"numeric(5,2)", "numeric(3)", "varchar(2)", "char(3)", "varchar(12)", "char(14)", "char", "time(1)", "timestamp(0)", "timestamptz(3)", "interval(2)", "interval day to hour", "varchar(1)[]", "numeric(4,1)[]"} {
		t, ok := types.ParseName(name)
		if !ok {
			panic(name)
		}
		ts = append(ts, t)
	}
	return ts
}

func TestCastsAgainstPostgres(t *testing.T) {
	s := oracle.Connect(t)
	t.Logf("-seed=%d", *seed)
	r := rand.New(rand.NewSource(*seed))
	ctx := testContext()
	if err := s.Conn.QueryRow(t.Context(), "SELECT now()").Scan(&ctx.Now); err != nil {
		t.Fatal(err)
	}
	targets := castTargets()
	for _, from := range targets {
		var terms []term
		for _, to := range targets {
			for range *many / 4 {
				arg := randomLiteral(r, from, "", 0)
				if arg.sql == "" || strings.Contains(arg.sql, "2562047788") && from.Mod >= 0 { // rounding it overflows
					continue
				}
				c := term{sql: "(" + arg.sql + ")::" + to.String(), err: arg.err}
				if c.err == nil {
					c.e, c.err = Coerce(arg.e, to, CastExplicit, 0)
				}
				terms = append(terms, c)
			}
		}
		t.Run(from.String(), func(t *testing.T) { compareTerms(t, s, ctx, terms) })
	}
}

// TestCastTable checks in which contexts casts may be applied, against pg_cast.
func TestCastTable(t *testing.T) {
	s := oracle.Connect(t)
	rows, err := s.Conn.Query(t.Context(), `SELECT castsource::int8, casttarget::int8, castcontext::text FROM pg_cast WHERE castsource <> casttarget`)
	if err != nil {
		t.Fatal(err)
	}
	want := map[[2]types.OID]string{}
	for rows.Next() {
		var from, to int64
		var c string
		if err := rows.Scan(&from, &to, &c); err != nil {
			t.Fatal(err)
		}
		want[[2]types.OID{types.OID(from), types.OID(to)}] = c
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	for k, c := range registry.casts {
		letter := string("iae"[c.Context])
		if want[k] != letter {
			t.Errorf("%s to %s: context %s, want %q", k[0].Name(), k[1].Name(), letter, want[k])
		}
	}
	supported := map[types.OID]bool{}
	for k := range registry.casts {
		supported[k[0]], supported[k[1]] = true, true
	}
	for k := range want {
		if supported[k[0]] && supported[k[1]] && registry.casts[k] == nil {
			t.Errorf("no cast from %s to %s", k[0].Name(), k[1].Name())
		}
	}
}

// TestConstructsAgainstPostgres compares the forms that are not function calls.
func TestConstructsAgainstPostgres(t *testing.T) {
	s := oracle.Connect(t)
	t.Logf("-seed=%d", *seed)
	r := rand.New(rand.NewSource(*seed))
	g := constructs{r: r}
	var terms []term
	for range 60 * *many {
		// PostgreSQL converts all values of a list first, whether they are needed or not.
		c := g.any()
		if fails := strings.Contains(c.sql, "5874897") || strings.Contains(c.sql, "macaddr8"); !fails || !strings.Contains(c.sql, "IN (") {
			terms = append(terms, c)
		}
	}
	compareTerms(t, s, testContext(), terms)
}

// constructs makes random terms of CASE, IN, ANY and the like.
type constructs struct{ r *rand.Rand }

// mixes are sets of types that meet in one construct: alike, castable, and not.
var mixes = [][]types.Type{
	{types.Int4}, {types.Text}, {types.Numeric}, {types.Timestamp}, {types.Int2, types.Int4, types.Int8}, {types.Int4, types.Numeric, types.Float8},
	{types.Text, types.Varchar, types.BPChar, types.Name}, {types.Date, types.Timestamp, types.TimestampTZ}, {types.Bool}, {types.Int4, types.Text},
	{types.Interval}, {types.UUID}, {types.JSONB}, {types.Float4, types.Float8}, {inetType, cidrType}, {macType, mac8Type}, {types.Of(types.OIDInt4Array)}, {types.Int8, types.Float4}, {types.Bytea},
}

func (g constructs) args(n int) []term { return g.mixed(mixes[g.r.Intn(len(mixes))], n) }

func (g constructs) mixed(mix []types.Type, n int) []term {
	out := make([]term, n)
	for i := range out {
		out[i] = randomLiteral(g.r, mix[g.r.Intn(len(mix))], "", 0)
		if g.r.Intn(20) == 0 {
			out[i] = term{sql: "NULL", e: &Const{Val: NullVec(types.Text), Typ: types.Unknown}}
		}
	}
	return out
}

func exprs(ts []term) ([]Expr, error) {
	es := make([]Expr, len(ts))
	for i, t := range ts {
		if t.err != nil {
			return nil, t.err
		}
		es[i] = t.e
	}
	return es, nil
}

func list(ts []term) string {
	s := ""
	for i, t := range ts {
		if i > 0 {
			s += ", "
		}
		s += t.sql
	}
	return s
}

var compareOps = []string{"=", "<>", "<", "<=", ">", ">="}

// build makes a term of arguments that may be wrong already.
func build(sql string, args []term, f func(es []Expr) (Expr, error)) term {
	c := term{sql: sql}
	es, err := exprs(args)
	if err == nil {
		c.e, err = f(es)
	}
	c.err = err
	return c
}

func (g constructs) any() term {
	n := 1 + g.r.Intn(4)
	a := g.args(n + 2)
	not := g.r.Intn(2) == 0
	neg := ""
	if not {
		neg = "NOT "
	}
	op := compareOps[g.r.Intn(len(compareOps))]
	switch g.r.Intn(12) {
	case 0:
		return build("COALESCE("+list(a)+")", a, func(es []Expr) (Expr, error) { return NewCoalesce(es, 0) })
	case 1:
		name := map[bool]string{true: "GREATEST", false: "LEAST"}[not]
		return build(name+"("+list(a)+")", a, func(es []Expr) (Expr, error) { return NewMinMax(not, es, 0) })
	case 2:
		return build("NULLIF("+list(a[:2])+")", a[:2], func(es []Expr) (Expr, error) { return NewNullIf(es[0], es[1], 0) })
	case 3:
		return build("("+a[0].sql+" "+neg+"IN ("+list(a[1:])+"))", a, func(es []Expr) (Expr, error) { return NewIn(es[0], es[1:], not, 0) })
	case 4:
		sym, word := g.r.Intn(2) == 0, ""
		if sym {
			word = "SYMMETRIC "
		}
		return build("("+a[0].sql+" "+neg+"BETWEEN "+word+a[1].sql+" AND "+a[2].sql+")", a[:3], func(es []Expr) (Expr, error) {
			return NewBetween(es[0], es[1], es[2], not, sym, 0)
		})
	case 5:
		return build("("+a[0].sql+" IS "+neg+"DISTINCT FROM "+a[1].sql+")", a[:2], func(es []Expr) (Expr, error) { return NewDistinct(es[0], es[1], not, 0) })
	case 6:
		word := map[bool]string{true: "ALL", false: "ANY"}[not]
		return build("("+a[0].sql+" "+op+" "+word+" (ARRAY["+list(a[1:])+"]))", a, func(es []Expr) (Expr, error) {
			arr, err := NewArray(es[1:], 0)
			if err != nil {
				return nil, err
			}
			return NewArrayOp(op, es[0], arr, not, 0)
		})
	case 7:
		mix := mixes[g.r.Intn(len(mixes))]
		a, b := g.mixed(mix, n+2), g.mixed(mix, n+2)
		return build("(ROW("+list(a)+") "+op+" ROW("+list(b)+"))", append(a, b...), func(es []Expr) (Expr, error) {
			return NewOp(op, &Row{Fields: es[:n+2], Typ: types.Record}, &Row{Fields: es[n+2:], Typ: types.Record}, 0)
		})
	case 8:
		return build("ARRAY["+list(a)+"]", a, func(es []Expr) (Expr, error) { return NewArray(es, 0) })
	case 9:
		return build("CASE WHEN "+a[0].sql+" = "+a[1].sql+" THEN "+a[0].sql+" ELSE "+a[2].sql+" END", a[:3], func(es []Expr) (Expr, error) {
			cond, err := NewOp("=", es[0], es[1], 0)
			if err != nil {
				return nil, err
			}
			return NewCase([]When{{cond, es[0]}}, es[2], 0)
		})
	case 10:
		lo, hi := g.r.Intn(4)-1, g.r.Intn(4)-1
		arr := randomLiteral(g.r, types.Of(types.OIDInt4Array), "age", 0)
		if not {
			return build(fmt.Sprintf("(%s)[%d]", arr.sql, lo), []term{arr}, func(es []Expr) (Expr, error) {
				return NewSubscript(es[0], []Subscript{{Lo: Int4Const(int32(lo))}}, 0)
			})
		}
		return build(fmt.Sprintf("(%s)[%d:%d]", arr.sql, lo, hi), []term{arr}, func(es []Expr) (Expr, error) {
			return NewSubscript(es[0], []Subscript{{Slice: true, Lo: Int4Const(int32(lo)), Hi: Int4Const(int32(hi))}}, 0)
		})
	}
	tests := []string{"IS TRUE", "IS NOT TRUE", "IS FALSE", "IS NOT FALSE", "IS UNKNOWN", "IS NOT UNKNOWN"}
	k := g.r.Intn(len(tests))
	arg := randomLiteral(g.r, types.Bool, "", 0)
	return build("("+arg.sql+" "+tests[k]+")", []term{arg}, func(es []Expr) (Expr, error) { return NewBoolTest(es[0], BoolTest(k), 0) })
}

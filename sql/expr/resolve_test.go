package expr

import (
	"errors"
	"fmt"
	"math/rand"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/streamdb/streamdb/internal/oracle"
	"github.com/streamdb/streamdb/sql/pgerror"
	"github.com/streamdb/streamdb/sql/types"
)

// describe says what PostgreSQL makes of an expression without evaluating it:
// the OID of its type, or the error.
func describeSQL(t *testing.T, s *oracle.Server, sql string) string {
	t.Helper()
	d, err := s.Conn.PgConn().Prepare(t.Context(), "", "SELECT "+sql, nil)
	if err == nil {
		return types.OID(d.Fields[0].DataTypeOID).Name()
	}
	var pe *pgconn.PgError
	if !errors.As(err, &pe) {
		t.Fatalf("%s: %v", sql, err)
	}
	return fmt.Sprintf("ERROR %s: %s %s %s", pe.Code, strings.Replace(pe.Message, "pg_catalog.", "", 1), pe.Detail, pe.Hint)
}

func (c term) describe() string {
	if c.err != nil {
		e := pgerror.As(c.err)
		return fmt.Sprintf("ERROR %s: %s %s %s", e.Code, e.Message, e.Detail, e.Hint)
	}
	o := c.e.Type().OID
	if o == types.OIDUnknown {
		o = types.OIDText
	}
	return o.Name()
}

// comparable lists the names whose overloads in PostgreSQL are all here: of
// others, literals of unknown type may be resolved differently.
func comparableNames(t *testing.T, s *oracle.Server) (funcs, ops []string) {
	t.Helper()
	have := func(m map[string][]*Function) map[string]bool {
		out := map[string]bool{}
		for name, fs := range m {
			for _, f := range fs {
				args := make([]string, len(f.Args))
				for i, a := range f.Args {
					args[i] = fmt.Sprint(uint32(a.OID))
				}
				out[name+"("+strings.Join(args, " ")+")"] = true
			}
		}
		return out
	}
	query := func(sql string, m map[string][]*Function) []string {
		rows, err := s.Conn.Query(t.Context(), sql)
		if err != nil {
			t.Fatal(err)
		}
		missing, names, here := map[string]bool{"random": true}, []string{}, have(m) // random has more overloads since PostgreSQL 17
		for rows.Next() {
			var name, args string
			if err := rows.Scan(&name, &args); err != nil {
				t.Fatal(err)
			}
			if !here[name+"("+args+")"] {
				missing[name] = true
			}
			names = append(names, name)
		}
		if err := rows.Err(); err != nil {
			t.Fatal(err)
		}
		slices.Sort(names)
		names = slices.Compact(names)
		return slices.DeleteFunc(names, func(n string) bool { return missing[n] || len(m[n]) == 0 })
	}
	funcs = query(`SELECT proname::text, proargtypes::text FROM pg_proc WHERE prokind = 'f' AND NOT proretset AND pronamespace = 11`, registry.funcs)
	ops = query(`SELECT oprname::text, concat_ws(' ', nullif(oprleft, 0)::int8, oprright::int8) FROM pg_operator WHERE oprnamespace = 11`, registry.ops)
	return funcs, ops
}

// resolveTypes are tried as arguments, with literals of unknown type.
var resolveTypes = []types.Type{
	types.Bool, types.Int2, types.Int4, types.Int8, types.Float4, types.Float8, types.Numeric, types.Text, types.Varchar, types.BPChar, types.Name,
	types.Date, types.Time, types.Timestamp, types.TimestampTZ, types.Interval, types.UUID, types.JSONB, types.Oid, types.Bytea, types.Char,
	types.Of(types.OIDInt4Array), types.Of(types.OIDTextArray), types.Of(types.OIDNumericArray),
}

func TestResolutionAgainstPostgres(t *testing.T) {
	s := oracle.Connect(t)
	t.Logf("-seed=%d", *seed)
	r := rand.New(rand.NewSource(*seed))
	funcs, ops := comparableNames(t, s)
	if len(funcs) < 50 || len(ops) < 10 {
		t.Fatalf("only %d functions and %d operators to compare", len(funcs), len(ops))
	}
	t.Logf("%d functions, %d operators", len(funcs), len(ops))
	arg := func() term {
		typ := resolveTypes[r.Intn(len(resolveTypes))]
		if r.Intn(4) == 0 {
			return term{sql: "NULL", e: &Const{Val: NullVec(types.Text), Typ: types.Unknown}}
		}
		e, err := Coerce(&Const{Val: NullVec(types.Text), Typ: types.Unknown}, typ, CastExplicit, 0)
		return term{sql: "NULL::" + typ.String(), e: e, err: err}
	}
	bad := 0
	check := func(c term) {
		if strings.HasPrefix(c.sql, "pg_catalog.reverse(NULL::bytea)") || strings.HasPrefix(c.sql, "pg_catalog.array_length(") && !strings.Contains(c.sql, ", ") {
			return // not in PostgreSQL 15
		}
		want := describeSQL(t, s, c.sql)
		if got := c.describe(); got != want {
			if bad++; bad <= 20 {
				t.Errorf("%s\n got %s\nwant %s", c.sql, got, want)
			}
		}
	}
	for range *many {
		for _, name := range ops {
			f := registry.ops[name][r.Intn(len(registry.ops[name]))]
			args := make([]term, len(f.Args))
			for i := range args {
				args[i] = arg()
			}
			check(makeTerm(f, args))
		}
		for range 2 * len(ops) {
			fs := registry.funcs[funcs[r.Intn(len(funcs))]]
			f := fs[r.Intn(len(fs))]
			args := make([]term, len(f.Args))
			for i := range args {
				if args[i] = arg(); r.Intn(2) == 0 && !isPolymorphic(f.Args[i].OID) && f.Args[i].OID != types.OIDAny {
					e, err := Coerce(&Const{Val: NullVec(types.Text), Typ: types.Unknown}, f.Args[i], CastExplicit, 0)
					args[i] = term{sql: "NULL::" + f.Args[i].String(), e: e, err: err}
				}
			}
			check(makeTerm(f, args))
		}
	}
	if bad > 0 {
		t.Errorf("%d differences, -seed=%d", bad, *seed)
	}
}

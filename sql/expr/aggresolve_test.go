package expr

import (
	"math/rand"
	"strings"
	"testing"

	"github.com/streamdb/streamdb/internal/oracle"
	"github.com/streamdb/streamdb/sql/types"
)

// TestAggregateResolution compares the overload that is chosen and the errors,
// for random argument types.
func TestAggregateResolution(t *testing.T) {
	s := oracle.Connect(t)
	t.Logf("-seed=%d", *seed)
	r := rand.New(rand.NewSource(*seed))
	bad := 0
	for a := range AllAggregates() {
		if a.Ordered || len(a.Args) == 0 || Newer(a.Name) || notInPostgres(a) {
			continue
		}
		for range *many {
			args := make([]term, len(a.Args))
			for i := range args {
				typ := resolveTypes[r.Intn(len(resolveTypes))]
				args[i] = term{sql: "NULL", e: &Const{Val: NullVec(types.Text), Typ: types.Unknown}}
				if r.Intn(4) > 0 {
					e, err := Coerce(args[i].e, typ, CastExplicit, 0)
					args[i] = term{sql: "NULL::" + typ.String(), e: e, err: err}
				}
			}
			if (a.Name == "min" || a.Name == "max") && strings.Contains(args[0].sql, "bytea") {
				continue // of PostgreSQL 18
			}
			c := term{sql: a.Name + "(" + list(args) + ")"}
			es, err := exprs(args)
			if err == nil {
				var typ types.Type
				_, _, typ, err = ResolveAggregate(a.Name, es, CallOptions{})
				c.e = NullConst(typ)
			}
			c.err = err
			if c.e != nil && c.e.Type().OID == types.OIDRecord {
				continue
			}
			want := describeSQL(t, s, c.sql)
			if strings.Contains(want, "42725") && strings.Contains(c.sql, "NULL)") {
				continue // PostgreSQL has overloads for types that are not here
			}
			if got := c.describe(); got != want {
				if bad++; bad <= 20 {
					t.Errorf("%s\n got %s\nwant %s\n-seed=%d", c.sql, got, want, *seed)
				}
			}
		}
	}
}

// TestTotalFunctions checks that functions that claim never to fail do not.
func TestTotalFunctions(t *testing.T) {
	t.Logf("-seed=%d", *seed)
	r := rand.New(rand.NewSource(*seed))
	for _, f := range allFunctions() {
		if !f.Total || f.Volatility == Volatile {
			continue
		}
		for range *many {
			params := concrete(r, f.Args)
			args := make([]Expr, len(params))
			sql := ""
			for i, p := range params {
				a := randomLiteral(r, p, f.Name, i)
				if a.err != nil || a.e.Type().OID == types.OIDUnknown {
					sql = "-"
					break
				}
				args[i] = a.e
				sql += " " + a.sql
			}
			if sql == "-" {
				continue
			}
			if _, err := EvalConst(&Call{Fn: f, Args: args, Typ: f.Ret}, testContext()); err != nil {
				t.Errorf("%s of%s: %v", f.Name, sql, err)
			}
		}
	}
}

// stableHere are functions that PostgreSQL calls volatile and that are answered
// from one snapshot of the catalog here; or whose result depends on settings
// there and not here.
var stableHere = map[string]bool{
	"current_query": true, "acldefault": true, "pg_sequence_last_value": true, "convert_from": true, "convert_to": true,
	"pg_collation_actual_version": true, "pg_database_collation_actual_version": true, "pg_partition_root": true,
	"pg_tablespace_size": true, "pg_database_size": true, "pg_relation_size": true, "pg_total_relation_size": true,
	"pg_table_size": true, "pg_indexes_size": true,
}

// TestFactsAgainstPostgres compares strictness, volatility and result type of
// every function with pg_proc.
func TestFactsAgainstPostgres(t *testing.T) {
	s := oracle.Connect(t)
	rows, err := s.Conn.Query(t.Context(), `SELECT proname::text, proargtypes::oid[]::int8[], proisstrict, provolatile::text, prorettype::int8 FROM pg_proc WHERE pronamespace = 11 AND prokind = 'f' AND NOT proretset`)
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for rows.Next() {
		var name, volatility string
		var args []int64
		var strict bool
		var ret int64
		if err := rows.Scan(&name, &args, &strict, &volatility, &ret); err != nil {
			t.Fatal(err)
		}
		in := make([]types.OID, len(args))
		for i, a := range args {
			in[i] = types.OID(a)
		}
		for _, f := range registry.funcs[name] {
			have := make([]types.OID, len(f.Args))
			for i, a := range f.Args {
				have[i] = a.OID
			}
			if !equalOIDs(in, have) || stableHere[name] {
				continue
			}
			n++
			if f.Variadic { // of its arguments; PostgreSQL's is of their array
				strict = f.Strict
			}
			if v := string("isv"[f.Volatility]); f.Strict != strict || v != volatility || f.Ret.OID != types.OID(ret) {
				t.Errorf("%s%v: strict %v, volatility %s, returns %s; want %v, %s, %s", name, f.Args, f.Strict, v, f.Ret, strict, volatility, types.OID(ret).Name())
			}
		}
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	if n < 300 {
		t.Errorf("only %d functions compared", n)
	}
}

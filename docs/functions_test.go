package docs_test

import (
	"fmt"
	"os"
	"testing"

	"github.com/streamdb/streamdb/internal/oracle"
	"github.com/streamdb/streamdb/sql/expr"
	"github.com/streamdb/streamdb/sql/types"
)

func sig(name string, args []types.Type) string {
	s := name + "("
	for i, a := range args {
		if i > 0 {
			s += ","
		}
		s += a.OID.Name()
	}
	return s + ")"
}

func TestLacking(t *testing.T) {
	s := oracle.Connect(t)
	have := map[string]bool{}
	for f := range expr.AllFunctions() {
		have[sig(f.Name, f.Args)] = true
	}
	for f := range expr.AllAggregates() {
		have[sig(f.Name, f.Args)] = true
	}
	for f := range expr.AllTableFunctions() {
		have[sig(f.Name, f.Args)] = true
	}
	rows, err := s.Conn.Query(t.Context(), `SELECT p.oid::int8, proname, prokind::text, prosrc,
	 proname || '(' || coalesce((SELECT string_agg(format_type(a, NULL), ',' ORDER BY o) FROM unnest(proargtypes) WITH ORDINALITY u(a,o)),'') || ')', format_type(prorettype,null)
	 FROM pg_proc p WHERE pronamespace = 11 ORDER BY 2, 5`)
	if err != nil {
		t.Fatal(err)
	}
	f, _ := os.Create("/tmp/types/lack.txt")
	for rows.Next() {
		var oid int64
		var name, kind, src, sg, ret string
		if err := rows.Scan(&oid, &name, &kind, &src, &sg, &ret); err != nil {
			t.Fatal(err)
		}
		if !have[sg] {
			fmt.Fprintf(f, "%s\t%s\t%s\t%s\n", kind, sg, ret, src)
		}
	}
	f.Close()
}

package expr

import (
	"flag"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/streamdb/streamdb/internal/oracle"
	"github.com/streamdb/streamdb/sql/types"
)

var rewriteAliases = flag.Bool("rewrite-aliases", false, "write aliases.tsv from PostgreSQL")

// aliasSQL lists the functions behind operators, the support functions of
// B-trees that compare, and the transition functions of min and max.
const aliasSQL = `
WITH behind AS (
  SELECT oprcode::oid AS f, 'operator' AS how, oprname::text AS what FROM pg_operator
  UNION SELECT amproc::oid, 'cmp', '-' FROM pg_amproc JOIN pg_opfamily o ON o.oid = amprocfamily
    WHERE amprocnum = 1 AND opfmethod = 403
  UNION SELECT aggtransfn::oid, CASE p.proname WHEN 'max' THEN 'greatest' ELSE 'least' END, '-' FROM pg_aggregate JOIN pg_proc p ON p.oid = aggfnoid
    WHERE p.proname IN ('min', 'max')
  UNION SELECT a.oid, 'function', b.proname FROM pg_proc a JOIN pg_proc b ON a.prosrc = b.prosrc AND a.proargtypes = b.proargtypes AND a.oid <> b.oid
    WHERE a.prokind = 'f' AND b.prokind = 'f' AND a.prolang = 12 AND b.prolang = 12 AND NOT a.proretset AND a.pronamespace = 11 AND b.pronamespace = 11
)
SELECT p.proname, b.how, b.what, coalesce((SELECT string_agg(t.typname, ',' ORDER BY o) FROM unnest(p.proargtypes) WITH ORDINALITY u(a, o)
  JOIN pg_type t ON t.oid = a), '')
FROM behind b JOIN pg_proc p ON p.oid = b.f ORDER BY 1, 4, 2, 3`

// TestAliasesAgainstPostgres compares the list of aliases with the catalog: all
// that there can be are there, except those that are functions of their own.
func TestAliasesAgainstPostgres(t *testing.T) {
	s := oracle.Connect(t)
	rows, err := s.Conn.Query(t.Context(), aliasSQL)
	if err != nil {
		t.Fatal(err)
	}
	listed := map[string]bool{}
	for line := range strings.Lines(aliasTSV) {
		f := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		if len(f) == 4 {
			listed[f[0]+"("+f[3]+")"] = true
		}
	}
	var b strings.Builder
	b.WriteString(strings.SplitAfter(aliasTSV, "\n")[0])
	done := map[string]bool{}
	for rows.Next() {
		var name, how, of, list string
		if err := rows.Scan(&name, &how, &of, &list); err != nil {
			t.Fatal(err)
		}
		var args []types.Type
		known := list != ""
		for _, a := range strings.Split(list, ",") {
			o, ok := types.ByName(a)
			known = known && ok
			args = append(args, types.Of(o))
		}
		sig := name + "(" + list + ")"
		own := exactOverload(registry.funcs[name], args) != nil && !listed[sig]
		if !known || own || done[sig] || how == "function" && listed[of+"("+list+")"] || makeAlias(name, how, of, args) == nil {
			continue
		}
		done[sig] = true
		b.WriteString(strings.Join([]string{name, how, of, list}, "\t") + "\n")
	}
	if rows.Err() != nil {
		t.Fatal(rows.Err())
	}
	if *rewriteAliases {
		if err := os.WriteFile("aliases.tsv", []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	got, want := strings.Split(aliasTSV, "\n"), strings.Split(b.String(), "\n")
	for _, l := range want {
		if !slices.Contains(got, l) {
			t.Errorf("not in aliases.tsv: %s", l)
		}
	}
	for _, l := range got {
		if !slices.Contains(want, l) {
			t.Errorf("wrong in aliases.tsv: %s", l)
		}
	}
}

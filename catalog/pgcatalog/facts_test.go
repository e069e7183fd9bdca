package pgcatalog

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/streamdb/streamdb/internal/oracle"
	"github.com/streamdb/streamdb/sql/types"
)

var rewrite = flag.Bool("rewrite", false, "write the files in facts/ from PostgreSQL")

// relationSQL lists each system relation of PostgreSQL and its columns, of
// domains the type behind.
const relationSQL = `
SELECT CASE WHEN a.attnum IS NULL
  THEN concat_ws(E'\t', '@', n.nspname, c.relname, c.oid, c.relkind, c.reltype, coalesce(t.typarray, 0))
  ELSE concat_ws(E'\t', a.attname, coalesce(b.typname, x.typname),
    CASE WHEN x.typtype = 'd' THEN x.typtypmod ELSE a.atttypmod END, a.attnotnull::int) END
FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
LEFT JOIN pg_type t ON t.oid = c.reltype
CROSS JOIN LATERAL (SELECT NULL::int2 AS attnum, NULL::name AS attname, 0::oid AS atttypid, 0 AS atttypmod, false AS attnotnull
  UNION ALL SELECT attnum, attname, atttypid, atttypmod, attnotnull FROM pg_attribute
    WHERE attrelid = c.oid AND attnum > 0 AND NOT attisdropped) a
LEFT JOIN pg_type x ON x.oid = a.atttypid
LEFT JOIN pg_type b ON b.oid = x.typbasetype
WHERE n.nspname IN ('pg_catalog', 'information_schema') AND c.relkind IN ('r', 'v')
ORDER BY n.nspname DESC, c.relname COLLATE "C", a.attnum NULLS FIRST`

// The rows of PostgreSQL's own objects that have a meaning here: those whose
// types exist here. reg* columns are read as numbers, which outlive renamings.
var rowFacts = map[string]string{
	"pg_am":       `SELECT oid, amname, amhandler::oid, amtype FROM pg_am WHERE amname IN ('heap', 'btree') ORDER BY oid`,
	"pg_language": `SELECT oid, lanname, lanowner, lanispl, lanpltrusted, lanplcallfoid, laninline, lanvalidator FROM pg_language WHERE oid < 12000 ORDER BY oid`,
	"pg_collation": `SELECT oid, collname, collnamespace, collowner, collprovider, collisdeterministic, collencoding, collcollate, collctype
		FROM pg_collation WHERE oid < 1000 ORDER BY oid`,
	"pg_proc": `SELECT oid, proname, prolang, procost::float8, prorows::float8, provariadic, prokind, proisstrict::int, proretset::int, provolatile,
		proparallel, pronargdefaults, prorettype, proargtypes, proallargtypes::oid[], proargmodes, proargnames, pg_get_expr(proargdefaults, 0), prosrc, used::int
		FROM known_procs ORDER BY oid`,
	"pg_operator": `SELECT oid, oprname, oprkind, oprcanmerge::int, oprcanhash::int, oprleft, oprright, oprresult, oprcom, oprnegate, oprcode::oid, oprrest::oid, oprjoin::oid
		FROM known_operators ORDER BY oid`,
	"pg_cast": `SELECT oid, castsource, casttarget, castfunc, castcontext, castmethod FROM known_casts ORDER BY oid`,
	"pg_aggregate": `SELECT a.aggfnoid::oid, aggkind, aggnumdirectargs, aggtransfn::oid, aggfinalfn::oid, aggcombinefn::oid, aggserialfn::oid, aggdeserialfn::oid,
		aggmtransfn::oid, aggminvtransfn::oid, aggmfinalfn::oid, aggfinalextra::int, aggmfinalextra::int, aggfinalmodify, aggmfinalmodify, aggsortop, aggtranstype,
		aggtransspace, aggmtranstype, aggmtransspace, agginitval, aggminitval FROM known_aggregates a ORDER BY 1`,
	"pg_opfamily": `SELECT f.oid, opfmethod, opfname, opfnamespace, opfowner FROM pg_opfamily f WHERE f.oid IN (SELECT opcfamily FROM known_opclasses) ORDER BY 1`,
	"pg_opclass":  `SELECT oid, opcmethod, opcname, opcnamespace, opcowner, opcfamily, opcintype, opcdefault::int, opckeytype FROM known_opclasses ORDER BY 1`,
	"pg_amop": `SELECT oid, amopfamily, amoplefttype, amoprighttype, amopstrategy, amoppurpose, amopopr, amopmethod, amopsortfamily FROM pg_amop
		WHERE amopfamily IN (SELECT opcfamily FROM known_opclasses) AND amoplefttype IN (TABLE known) AND amoprighttype IN (TABLE known) ORDER BY oid`,
	"pg_amproc": `SELECT oid, amprocfamily, amproclefttype, amprocrighttype, amprocnum, amproc::oid FROM known_amprocs ORDER BY oid`,
	"pg_type": `SELECT t.oid, typname, nspname, typlen, typbyval::int, typtype, typcategory, typispreferred::int, typelem, typarray, typinput, typoutput,
		typreceive, typsend, typmodin, typmodout, typsubscript, typalign, typstorage, typbasetype, typtypmod, typcollation
		FROM pg_type t JOIN pg_namespace n ON n.oid = typnamespace WHERE nspname IN ('pg_catalog', 'information_schema') AND typrelid = 0
		AND t.oid NOT IN (TABLE known) AND t.oid NOT IN (SELECT typarray FROM pg_type WHERE typrelid <> 0) ORDER BY t.oid`,
	"pg_ts_config":     `SELECT oid, cfgname, cfgnamespace, cfgowner, cfgparser FROM pg_ts_config WHERE oid < 16384 ORDER BY oid`,
	"pg_ts_config_map": `SELECT mapcfg, maptokentype, mapseqno, mapdict FROM pg_ts_config_map WHERE mapcfg < 16384 ORDER BY mapcfg, maptokentype, mapseqno`,
	"pg_ts_dict":       `SELECT oid, dictname, dictnamespace, dictowner, dicttemplate, dictinitoption FROM pg_ts_dict WHERE oid < 16384 ORDER BY oid`,
	"pg_ts_parser": `SELECT oid, prsname, prsnamespace, prsstart::oid, prstoken::oid, prsend::oid, prsheadline::oid, prslextype::oid FROM pg_ts_parser
		WHERE oid < 16384 ORDER BY oid`,
	"pg_ts_template": `SELECT oid, tmplname, tmplnamespace, tmplinit::oid, tmpllexize::oid FROM pg_ts_template WHERE oid < 16384 ORDER BY oid`,
	"pg_authid": `SELECT oid, rolname, rolsuper, rolinherit, rolcreaterole, rolcreatedb, rolcanlogin, rolreplication, rolbypassrls, rolconnlimit
		FROM pg_authid WHERE oid < 12000 AND oid <> 10 ORDER BY oid`,
	"timezones": `SELECT name FROM pg_timezone_names WHERE name !~ '^(posix|right)' AND name NOT IN ('localtime', 'posixrules', 'Factory') ORDER BY name COLLATE "C"`,
	"keywords":  `SELECT word, catcode, barelabel::int FROM pg_get_keywords() ORDER BY word COLLATE "C"`,
	"pg_settings": `SELECT name, unit, category, context, vartype, min_val, max_val, enumvals FROM pg_settings
		WHERE source <> 'override' OR context = 'internal' ORDER BY name`,
}

// knownObjects narrows PostgreSQL's catalogs to the types that exist here.
const knownObjects = `
CREATE TEMP TABLE known AS SELECT unnest('%s'::oid[]) AS oid;
CREATE TEMP TABLE known_operators AS SELECT o.* FROM pg_operator o
  WHERE oprleft IN (SELECT 0 UNION TABLE known) AND oprright IN (TABLE known) AND oprresult IN (TABLE known);
CREATE TEMP TABLE known_casts AS SELECT c.* FROM pg_cast c WHERE castsource IN (TABLE known) AND casttarget IN (TABLE known);
CREATE TEMP TABLE known_opclasses AS SELECT o.* FROM pg_opclass o JOIN pg_am m ON m.oid = o.opcmethod
  WHERE amname = 'btree' AND opcintype IN (TABLE known);
CREATE TEMP TABLE known_amprocs AS SELECT p.* FROM pg_amproc p
  WHERE amprocfamily IN (SELECT opcfamily FROM known_opclasses) AND amproclefttype IN (TABLE known) AND amprocrighttype IN (TABLE known);
CREATE TEMP TABLE typed_procs AS SELECT p.oid FROM pg_proc p WHERE pronamespace = 11 AND prorettype IN (TABLE known)
  AND NOT EXISTS (SELECT FROM unnest(proargtypes::oid[] || coalesce(proallargtypes, '{}')) a WHERE a NOT IN (TABLE known));
CREATE TEMP TABLE known_aggregates AS SELECT a.* FROM pg_aggregate a WHERE aggfnoid IN (TABLE typed_procs);
CREATE TEMP TABLE used_procs AS SELECT DISTINCT f AS oid FROM (
  SELECT unnest(ARRAY[typinput, typoutput, typreceive, typsend, typmodin, typmodout, typsubscript, typanalyze]::oid[]) f FROM pg_type
    WHERE typnamespace IN (11, 'information_schema'::regnamespace)
  UNION ALL SELECT oid::oid FROM pg_proc WHERE proname ~ '^RI_FKey_|^enum_(in|out|recv|send)$|^domain_(in|recv)$' AND pronamespace = 11
  UNION ALL SELECT unnest(ARRAY[oprcode, oprrest, oprjoin]::oid[]) FROM known_operators
  UNION ALL SELECT castfunc FROM known_casts
  UNION ALL SELECT amproc FROM known_amprocs
  UNION ALL SELECT unnest(ARRAY[prsstart, prstoken, prsend, prsheadline, prslextype]::oid[]) FROM pg_ts_parser WHERE oid < 16384
  UNION ALL SELECT unnest(ARRAY[tmplinit, tmpllexize]::oid[]) FROM pg_ts_template WHERE oid < 16384
  UNION ALL SELECT amhandler FROM pg_am WHERE amname IN ('heap', 'btree')
  UNION ALL SELECT unnest(ARRAY[lanvalidator, laninline, lanplcallfoid]) FROM pg_language WHERE oid < 12000
  UNION ALL SELECT unnest(ARRAY[aggtransfn, aggfinalfn, aggcombinefn, aggserialfn, aggdeserialfn, aggmtransfn, aggminvtransfn, aggmfinalfn]::oid[]) FROM known_aggregates
) x WHERE f <> 0;
CREATE TEMP TABLE known_procs AS SELECT p.*, u.oid IS NOT NULL AS used FROM pg_proc p LEFT JOIN used_procs u ON u.oid = p.oid
  WHERE u.oid IS NOT NULL OR (p.oid IN (TABLE typed_procs) AND NOT 2281 = ANY (proargtypes))`

// TestFacts holds the files in facts/ to what a PostgreSQL 15 says of itself.
func TestFacts(t *testing.T) {
	s := oracle.Connect(t)
	ctx := context.Background()
	var version string
	if err := s.Conn.QueryRow(ctx, "SHOW server_version_num").Scan(&version); err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(version, "15") {
		t.Skipf("the facts are those of PostgreSQL 15, this is %s", version)
	}
	var oids []string
	for _, i := range types.All() {
		oids = append(oids, fmt.Sprint(uint32(i.OID)))
	}
	s.Exec(t, fmt.Sprintf(knownObjects, "{"+strings.Join(oids, ",")+"}"))
	copyOut := func(sql string) []byte {
		var b bytes.Buffer
		if _, err := s.Conn.PgConn().CopyTo(ctx, &b, "COPY ("+sql+") TO STDOUT"); err != nil {
			t.Fatalf("%s: %v", sql, err)
		}
		return b.Bytes()
	}
	check(t, "relations", bytes.ReplaceAll(copyOut(relationSQL), []byte(`\t`), []byte("\t")))
	for name, sql := range rowFacts {
		rows, err := s.Conn.Query(ctx, sql+" LIMIT 0")
		if err != nil {
			t.Fatalf("%s: %v", sql, err)
		}
		var names []string
		for _, f := range rows.FieldDescriptions() {
			names = append(names, f.Name)
		}
		rows.Close()
		check(t, name, withConstants(names, copyOut(sql)))
	}
}

// withConstants makes a facts file of rows: columns in which all rows agree go
// into the header, as name=value.
func withConstants(names []string, data []byte) []byte {
	var rows [][]string
	for line := range strings.Lines(string(data)) {
		rows = append(rows, strings.Split(strings.TrimSuffix(line, "\n"), "\t"))
	}
	var head []string
	var keep []int
	for c, name := range names {
		same := true
		for _, r := range rows {
			same = same && r[c] == rows[0][c]
		}
		if same {
			head = append(head, name+"="+rows[0][c])
		} else {
			head = append(head, name)
			keep = append(keep, c)
		}
	}
	var b bytes.Buffer
	b.WriteString(strings.Join(head, "\t") + "\n")
	for _, r := range rows {
		for i, c := range keep {
			if i > 0 {
				b.WriteByte('\t')
			}
			b.WriteString(r[c])
		}
		b.WriteByte('\n')
	}
	return b.Bytes()
}

// unpinned are the OIDs that initdb gives out, which differ between clusters.
var unpinned = regexp.MustCompile(`\b1[2-6]\d\d\d\b`)

func check(t *testing.T, name string, want []byte) {
	t.Helper()
	path := filepath.Join("facts", name+".tsv")
	if *rewrite {
		if err := os.WriteFile(path, want, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	got, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	g := strings.Split(string(unpinned.ReplaceAll(got, []byte("#"))), "\n")
	w := strings.Split(string(unpinned.ReplaceAll(want, []byte("#"))), "\n")
	for i := range max(len(g), len(w)) {
		if i >= len(g) || i >= len(w) || g[i] != w[i] {
			t.Errorf("%s, line %d differs from PostgreSQL's; -rewrite writes it anew", path, i+1)
			return
		}
	}
}

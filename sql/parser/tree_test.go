package parser

import (
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	pg "github.com/pganalyze/pg_query_go/v6"
	"google.golang.org/protobuf/proto"
)

// sameTree parses a text both ways.
func sameTree(t *testing.T, text string) (parsed bool) {
	t.Helper()
	want, wantErr := pg.Parse(text)
	got, err := grammarTree(text)
	switch {
	case wantErr != nil || err != nil:
		if wantErr == nil || err == nil || wantErr.Error() != err.Error() {
			t.Errorf("%q: error %v, want %v", text, err, wantErr)
		}
		return false
	case !proto.Equal(want, got):
		t.Errorf("%q: another tree\n%v\nwant\n%v", text, got, want)
	}
	return true
}

// The tree that is read from JSON is the one of the protocol buffer: of all that
// stands in tests and documentation, and of what is hard to write.
func TestTreeIsTheGrammars(t *testing.T) {
	for _, text := range []string{
		"", ";;", "SELECT", "SELECT 0, -0, 1.50, 1e400, 99999999999, x'1f', b'', NULL, true, false, ()",
		"SELECT 'a\tb\"c\\\\é\x01\x1f\x7f ' AS \"x\"\"y\\\", U&'d\\0061t\\+000061', E'\\b\\f\\n\\r\\t\\u20ac', '<>&''/', '\u2028😀'",
		"SELECT a.*, (b).c[1:2], count(DISTINCT x ORDER BY y) FILTER (WHERE z) OVER (w ROWS 1 PRECEDING), ARRAY[]::int[][3] FROM t",
		"SELECT interval(3) '1', CAST(x AS numeric(10,2)), CASE a WHEN 1 THEN 2 END, ROW(), f(VARIADIC a, b => 1) FROM ONLY t x(a, b)",
		"SELECT * FROM ROWS FROM (f(1) AS (a int), g()) WITH ORDINALITY, LATERAL (VALUES (1, DEFAULT)) v, t TABLESAMPLE system (1) FOR UPDATE NOWAIT",
		"INSERT INTO t DEFAULT VALUES; UPDATE t SET (a, b) = (SELECT 1, 2); DELETE FROM t USING u RETURNING *; MERGE INTO t USING u ON a = b WHEN MATCHED THEN DELETE",
		"CREATE TABLE t (a int PRIMARY KEY DEFAULT 1, b text COLLATE \"C\" CHECK (b <> ''), FOREIGN KEY (a) REFERENCES u (x, y) ON DELETE CASCADE) PARTITION BY RANGE (a)",
		"GRANT ALL ON ALL TABLES IN SCHEMA s TO PUBLIC; ALTER TABLE t ALTER a TYPE int USING b; COMMENT ON TABLE t IS NULL; SET a TO 1, 'x', on; BEGIN ISOLATION LEVEL SERIALIZABLE, READ ONLY",
		"CREATE FUNCTION f(a int, OUT b text) RETURNS SETOF record LANGUAGE sql IMMUTABLE COST 3 AS $$ SELECT 1 $$; PREPARE p (int) AS SELECT $1; COPY t FROM STDIN WITH (FORMAT csv, NULL '')",
		"WITH RECURSIVE a AS MATERIALIZED (SELECT 1 UNION ALL SELECT 2) SEARCH DEPTH FIRST BY x SET y CYCLE x SET z TO 1 DEFAULT 2 USING w TABLE a",
		"SELECT JSON_VALUE(a, '$.x' RETURNING int DEFAULT 1 ON EMPTY), JSON_OBJECT('a' : 1), x IS JSON ARRAY, XMLELEMENT(NAME a) FROM JSON_TABLE(j, '$' COLUMNS (a int PATH '$')) t",
		strings.Repeat("(", 900) + "1", "SELECT " + strings.Repeat("-(", 600) + "1" + strings.Repeat(")", 600), "SELECT '", "SELECT 1 FROM",
	} {
		sameTree(t, text)
	}
	files, texts, trees := 0, 0, 0
	err := filepath.WalkDir("../..", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() && (strings.HasPrefix(d.Name(), ".") && len(d.Name()) > 2 || d.Name() == "fuzz") {
			return fs.SkipDir
		}
		if d.IsDir() || !strings.Contains(path, "testdata") && !strings.HasSuffix(path, ".md") {
			return nil
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		files++
		for part := range strings.SplitSeq(string(data), "\n\n") {
			if _, sql, ok := strings.Cut(part, "\n"); ok { // without the line that says what it is
				part = sql
			}
			part, _, _ = strings.Cut(part, "\n----")
			if len(part) > 20000 || strings.ContainsRune(part, 0) {
				continue
			}
			if texts++; sameTree(t, part) {
				trees++
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%d files, %d texts, %d of them SQL", files, texts, trees)
	if trees < 500 {
		t.Errorf("only %d texts were SQL", trees)
	}
}

// What is not a tree is not read; the grammar's other form is, then.
func TestTreeDecoderFails(t *testing.T) {
	for _, in := range []string{"", "{", `{"version":x}`, `{"version":1,"nope":2}`, `{"stmts":[{"stmt":{"SelectStmt":{"op":"NOPE"}}}]}`,
		`{"stmts":[1]}`, `{"version":99999999999}`, `{"stmts":[{"stmt":{"String":{"sval":"\ud800"}}}]}`, `{"stmts":[{"stmt":{"String":{"sval":"a`} {
		d := treeDecoder{in: in}
		var into pg.ParseResult
		d.message(treeTypes().root, reflect.ValueOf(&into).Elem())
		if d.err == nil {
			t.Errorf("%s: read", in)
		}
	}
}

func BenchmarkTree(b *testing.B) {
	const q = "SELECT pk FROM tab1 WHERE ((col3 > 23 AND col0 IN (1,2,3) OR (col4 <= 34.5))) AND col1 BETWEEN 3 AND 99 OR col3 < 12"
	b.ReportAllocs()
	for b.Loop() {
		if _, err := grammarTree(q); err != nil {
			b.Fatal(err)
		}
	}
}

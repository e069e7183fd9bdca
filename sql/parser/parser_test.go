package parser

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/streamdb/streamdb/internal/datadriven"
	"github.com/streamdb/streamdb/sql/pgerror"
)

// dump prints a syntax tree without positions and without PostgreSQL's trees,
// whose texts are printed: two statements that mean the same have the same dump.
func dump(v any) string {
	var b strings.Builder
	dumpValue(&b, reflect.ValueOf(v))
	return b.String()
}

func dumpValue(b *strings.Builder, v reflect.Value) {
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		if !v.IsNil() {
			dumpValue(b, v.Elem())
		}
	case reflect.Slice:
		b.WriteByte('[')
		for i := range v.Len() {
			if i > 0 {
				b.WriteString(", ")
			}
			dumpValue(b, v.Index(i))
		}
		b.WriteByte(']')
	case reflect.Struct:
		dumpStruct(b, v)
	case reflect.String:
		fmt.Fprintf(b, "%q", v.String())
	default:
		fmt.Fprint(b, v.Interface())
	}
}

func dumpStruct(b *strings.Builder, v reflect.Value) {
	switch x := v.Interface().(type) {
	case Name:
		b.WriteString(x.String())
		return
	case Option:
		b.WriteString(x.String())
		return
	case Value:
		fmt.Fprintf(b, "%s/%d", x.String(), x.Kind)
		return
	case Statement:
		fmt.Fprintf(b, "%q", x.SQL())
		return
	}
	b.WriteString(v.Type().Name() + "{")
	n := 0
	for i := range v.NumField() {
		f, name := v.Field(i), v.Type().Field(i).Name
		if name == "Pos" || name == "Base" || f.IsZero() || f.Kind() == reflect.Slice && f.Len() == 0 {
			continue
		}
		if strings.Contains(f.Type().String(), "pg_query.") {
			continue
		}
		if n > 0 {
			b.WriteString(", ")
		}
		n++
		b.WriteString(name + ": ")
		dumpValue(b, f)
	}
	b.WriteByte('}')
}

func describe(err error) string {
	e := pgerror.As(err)
	return fmt.Sprintf("error %s at %d: %s", e.Code, e.Pos, e.Message)
}

// TestParse runs testdata/parse: `parse` prints the tree of each statement of a text
// (or the error), and then its text as Print makes it.
func TestParse(t *testing.T) {
	datadriven.Walk(t, "testdata/parse", func(t *testing.T) func(c *datadriven.Case) string {
		return func(c *datadriven.Case) string {
			stmts, err := Parse(c.Input)
			if err != nil {
				return describe(err)
			}
			var out []string
			for i := range stmts {
				s := &stmts[i]
				if p, ok := s.Node.(*Postgres); ok {
					out = append(out, fmt.Sprintf("%T of %q", p.Stmt.Node, s.SQL()))
					continue
				}
				out = append(out, dump(s.Node))
				if _, ok := s.Node.(*Select); !ok {
					out = append(out, Print(s.Node))
				}
				checkRoundTrip(t, s)
			}
			return strings.Join(out, "\n")
		}
	})
}

// checkRoundTrip parses what Print gives and compares the trees.
func checkRoundTrip(t *testing.T, s *Statement) {
	t.Helper()
	text := Print(s.Node)
	if text == "" {
		return
	}
	again, err := Parse(text)
	if err != nil || len(again) != 1 {
		t.Errorf("%q prints as %q, which does not parse: %v", s.SQL(), text, err)
		return
	}
	if v, ok := s.Node.(*CreateView); ok {
		v.Recursive = false // its query has WITH RECURSIVE now
	}
	if a, b := dump(s.Node), dump(again[0].Node); a != b {
		t.Errorf("%q prints as %q, which differs:\n%s\n%s", s.SQL(), text, a, b)
	}
}

func TestSplit(t *testing.T) {
	for _, c := range []struct {
		text string
		want []string
	}{
		{"", nil},
		{" ; ;\n-- nothing\n", nil},
		{"select 1", []string{"select 1"}},
		{"select 1; select 2 ;", []string{"select 1", "select 2"}},
		{"select ';'; select $$;$$, $a$;$$;$a$; x", []string{"select ';'", "select $$;$$, $a$;$$;$a$", "x"}},
		{`select E'\';', U&"a;b", "c;""d"; x`, []string{`select E'\';', U&"a;b", "c;""d"`, "x"}},
		{`select '\'; x`, []string{`select '\'`, "x"}},
		{"select 'a'\n ';b'; x", []string{"select 'a'\n ';b'", "x"}},
		{"/* ; /* ; */ ; */ select /* ; */ 1 -- ;\n; x", []string{"select /* ; */ 1", "x"}},
		{"create rule r as on insert to t do (select 1; select 2); x", []string{"create rule r as on insert to t do (select 1; select 2)", "x"}},
		{
			"create function f() returns int begin atomic select case when true then 1 end; select 2; end; x",
			[]string{"create function f() returns int begin atomic select case when true then 1 end; select 2; end", "x"},
		},
		{"begin; select 1; end; x", []string{"begin", "select 1", "end", "x"}},
		{"select $1;x", []string{"select $1", "x"}},
		{"select a$b;x", []string{"select a$b", "x"}},
		{"select 'open; x", []string{"select 'open; x"}},
		{"select 1; /* open; x", []string{"select 1", "/* open; x"}},
	} {
		var got []string
		for _, p := range split(c.text) {
			got = append(got, c.text[p.start:p.end])
		}
		if !reflect.DeepEqual(got, c.want) {
			t.Errorf("split(%q) = %q, want %q", c.text, got, c.want)
		}
	}
}

// TestDepth feeds trees of any depth: the parser must refuse those that would
// overflow a stack, and take long lists, which are not deep.
func TestDepth(t *testing.T) {
	rep := strings.Repeat
	for name, f := range map[string]func(n int) string{
		"plus":   func(n int) string { return "SELECT 1" + rep("+1", n) },
		"minus":  func(n int) string { return "SELECT " + rep("- ", n) + "1" },
		"cast":   func(n int) string { return "SELECT 1" + rep("::int", n) },
		"not":    func(n int) string { return "SELECT " + rep("NOT ", n) + "true" },
		"paren":  func(n int) string { return "SELECT " + rep("(", n) + "1" + rep(")", n) },
		"call":   func(n int) string { return "SELECT " + rep("f(", n) + "1" + rep(")", n) },
		"case":   func(n int) string { return "SELECT " + rep("CASE WHEN true THEN ", n) + "1" + rep(" END", n) },
		"query":  func(n int) string { return "SELECT " + rep("(SELECT ", n) + "1" + rep(")", n) },
		"union":  func(n int) string { return "SELECT 1" + rep(" UNION SELECT 1", n) },
		"join":   func(n int) string { return "SELECT 1 FROM t" + rep(" CROSS JOIN t", n) },
		"isnull": func(n int) string { return "SELECT 1" + rep(" IS NULL", n) },
		"view":   func(n int) string { return "CREATE MATERIALIZED VIEW v AS SELECT 1" + rep("+1", n) },
	} {
		if _, err := Parse(f(100)); err != nil {
			t.Errorf("%s 100 deep: %v", name, err)
		}
		for _, n := range []int{maxDepth + 1, 100000} {
			_, err := Parse(f(n))
			if err == nil || pgerror.As(err).Code != pgerror.StatementTooComplex {
				t.Errorf("%s %d deep: %v", name, n, err)
			}
		}
	}
	for name, text := range map[string]string{
		"and":    "SELECT 1 WHERE a = 1" + rep(" AND a = -1", 5000),
		"or":     "SELECT 1 WHERE a = 1" + rep(" OR a = -1", 5000),
		"in":     "SELECT a IN (1" + rep(", -1", 5000) + ")",
		"values": "INSERT INTO t VALUES (1)" + rep(", (-1::int)", 5000),
		"list":   "SELECT 1" + rep(", -a.b", 5000),
		"case":   "SELECT CASE" + rep(" WHEN a = 1 THEN -1", 5000) + " END",
	} {
		if _, err := Parse(text); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestQuoteIdent(t *testing.T) {
	for in, want := range map[string]string{
		"abc": "abc", "a1_$": "a1_$", "Abc": `"Abc"`, "select": `"select"`, "1a": `"1a"`, `a"b`: `"a""b"`, "": `""`, "é": `"é"`,
	} {
		if got := QuoteIdent(in); got != want {
			t.Errorf("QuoteIdent(%q) = %s, want %s", in, got, want)
		}
	}
}

// FuzzParse feeds texts to the parser: it must not panic, and what it prints
// must parse to the same tree.
func FuzzParse(f *testing.F) {
	for _, s := range []string{
		"SELECT 1; CREATE SOURCE s FROM KAFKA BROKER 'b' TOPIC 't' FORMAT JSON",
		"CREATE CONNECTION c TO POSTGRES (HOST 'h', PASSWORD SECRET p, SSH TUNNEL t)",
		"CREATE TABLE t (a int DEFAULT 1 + 2 NOT NULL CHECK (a > 0), WATERMARK FOR b AS b - 1) APPEND ONLY WITH (connector = 'kafka', a.b = 1) FORMAT PLAIN ENCODE JSON (x = 'y')",
		"COPY (SUBSCRIBE (SELECT 1) AS OF 3) TO STDOUT", "FETCH BACKWARD ALL FROM c", "SET a.b = 'x', y", "EXPLAIN PHYSICAL PLAN FOR SELECT 1",
		"ALTER TABLE t ADD COLUMN b int, ALTER c TYPE text USING c::text", "DROP MATERIALIZED VIEW IF EXISTS a.b, c CASCADE",
		"SELECT * FROM t AS OF AT LEAST 5", "SHOW INDEXES ON t", "CREATE INDEX i IN CLUSTER c ON t (a DESC, (b + 1))",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		stmts, err := Parse(text)
		if err != nil {
			if e := pgerror.As(err); e.Code == pgerror.InternalError {
				t.Fatalf("%q: %v", text, err)
			}
			return
		}
		for i := range stmts {
			if stmts[i].SQL() == "" {
				t.Fatalf("%q: an empty statement", text)
			}
			checkRoundTrip(t, &stmts[i])
		}
	})
}

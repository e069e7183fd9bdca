package coord_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/streamdb/streamdb/internal/oracle"
)

// TestTextSearch compares statements about text search with PostgreSQL.
func TestTextSearch(t *testing.T) {
	s := oracle.Connect(t)
	d := open(t, t.TempDir())
	defer d.close()
	setup := `CREATE TEMP TABLE doc (id int, title text, body text, v tsvector GENERATED ALWAYS AS
			(setweight(to_tsvector('english', coalesce(title, '')), 'A') || to_tsvector('english', coalesce(body, ''))) STORED);
		INSERT INTO doc VALUES (1, 'Fat cats', 'A fat cat sat on a mat and ate a fat rat'), (2, 'Dogs', 'The quick brown fox jumps over the lazy dog'),
			(3, NULL, 'Rats and cats are running'), (4, 'Empty', NULL), (5, 'Fat cats', 'A fat cat sat on a mat and ate a fat rat'), (6, NULL, NULL);
		CREATE TEMP TABLE q (id int, q tsquery);
		INSERT INTO q VALUES (1, 'cat & rat'), (2, 'cat:A'), (3, 'fox | dog'), (4, 'cat <-> sat'), (5, '!cat'), (6, 'cat:B'), (7, ''), (8, NULL), (9, 'ra:*')`
	both(t, d, s, setup, []string{
		"SELECT id, v FROM doc ORDER BY id", "SELECT v, count(*) FROM doc GROUP BY v ORDER BY v", "SELECT DISTINCT v FROM doc ORDER BY v DESC",
		"SELECT doc.id, q.id FROM doc, q WHERE v @@ q ORDER BY 1, 2", "SELECT id, ts_rank(v, 'cat & rat'), ts_rank_cd(v, 'cat | rat', 4) FROM doc ORDER BY 2 DESC, id",
		"SELECT count(*), min(id) FROM q GROUP BY q ORDER BY 2", "SELECT id FROM q ORDER BY q, id", "SELECT a.id, b.id FROM q a JOIN q b ON a.q = b.q ORDER BY 1, 2",
		"SELECT a.id, b.id FROM doc a JOIN doc b USING (v) ORDER BY 1, 2", "SELECT id FROM doc WHERE v = (SELECT v FROM doc WHERE id = 5) ORDER BY id",
		"SELECT id FROM doc WHERE body @@ 'cats' ORDER BY id", "SELECT id FROM doc WHERE to_tsvector(body) @@ websearch_to_tsquery('fat -dog') ORDER BY id",
		"SELECT d.id, u.* FROM doc d, unnest(v) u WHERE d.id < 3 ORDER BY 1, 2", "SELECT unnest('b:1A,2 a'::tsvector)", "SELECT (unnest('b:1A,2 a'::tsvector)).lexeme",
		"SELECT * FROM ts_parse('default', 'foo-bar 12 x@y.org <b>')", "SELECT * FROM ts_parse(3722, 'a b') WITH ORDINALITY", "SELECT * FROM ts_parse('nope', 'x')", "SELECT * FROM ts_parse(1, 'x')",
		"SELECT * FROM ts_token_type('default')", "SELECT alias FROM ts_token_type('pg_catalog.default') WHERE tokid = 4",
		"SELECT * FROM ts_debug('english', 'The Brightest supernovaes, http://a.com/b 12.5')", "SELECT alias, lexemes FROM ts_debug('simple', 'The cats')", "SELECT * FROM ts_debug('The <b> cats')",
		"SELECT ts_headline('english', body, to_tsquery('fat & rat'), 'MaxWords=6, MinWords=3') FROM doc ORDER BY id",
		"SELECT array_agg(q ORDER BY q, id) FROM q", "SELECT array_agg(v ORDER BY id) FROM doc WHERE id < 4", "SELECT '{\"a & b\",NULL}'::tsquery[]", "SELECT ARRAY['a'::tsvector, 'b']",
		"SELECT ROW('a b'::tsvector, 'a & b'::tsquery)", "SELECT pg_typeof(v), pg_typeof('a'::tsquery) FROM doc LIMIT 1", "SELECT v::text, q::text::tsquery FROM doc, q WHERE doc.id = 1 AND q.id = 1",
		"SELECT 'a b'::text::tsvector, 'a'::varchar::tsquery", "SELECT 'a'::tsvector::tsquery", "SELECT 1::tsvector", "SELECT max(v) FROM doc", "SELECT 'a'::tsvector @@ 'a'", "SELECT 'a' @@ 'a'::tsvector",
		"SELECT to_tsvector('nope', 'x')", "SELECT to_tsvector('simple', 1)", "SELECT to_tsvector(13164)", "SELECT 'a'::tsvector || 'b'", "SELECT greatest('a'::tsvector, 'b c'), least('a'::tsquery, 'b')",
		"SELECT to_tsvector(cfg::regconfig, 'The cats') FROM unnest(ARRAY['simple', 'english']) cfg", "SELECT to_tsvector(c.oid, 'cats') FROM pg_ts_config c WHERE cfgname = 'english'",
		"SELECT get_current_ts_config()", "SET default_text_search_config = 'simple'", "SHOW default_text_search_config", "SELECT get_current_ts_config(), to_tsvector('The cats'), 'The cats' @@ 'cat'",
		"SET default_text_search_config = 'pg_catalog.german'; SELECT to_tsvector('Die Häuser')", "SET default_text_search_config = 'nope'", "SHOW default_text_search_config", "RESET default_text_search_config",
		"SELECT cfgname, prsname FROM pg_ts_config JOIN pg_ts_parser p ON p.oid = cfgparser ORDER BY 1", "SELECT dictname, tmplname, dictinitoption FROM pg_ts_dict JOIN pg_ts_template t ON t.oid = dicttemplate ORDER BY 1",
		"SELECT mapcfg::regconfig, maptokentype, mapdict::regdictionary FROM pg_ts_config_map WHERE mapcfg = 'russian'::regconfig ORDER BY 2",
		"SELECT typname, typlen, typarray::regtype FROM pg_type WHERE typname IN ('tsvector', 'tsquery') ORDER BY 1", "SELECT pg_ts_config_is_visible('english'::regconfig), pg_ts_dict_is_visible(1)",
		"SELECT oprname FROM pg_operator WHERE oprleft = 'tsvector'::regtype ORDER BY 1", "SELECT 'tsvector_lt'::regproc, '@@@(tsvector,tsquery)'::regoperator",
	})
	for _, sql := range []string{"CREATE TEXT SEARCH CONFIGURATION x (COPY = english)", "CREATE TEXT SEARCH DICTIONARY x (TEMPLATE = simple)", "ALTER TEXT SEARCH CONFIGURATION english DROP MAPPING FOR word",
		"DROP TEXT SEARCH CONFIGURATION x"} {
		c := d.connect()
		if got := reply(c, sql); !strings.HasPrefix(got, "ERROR 0A000") {
			t.Errorf("%s: %s", sql, got)
		}
		c.Close(context.Background())
	}
}

// TestTextSearchViews lets views over documents follow random changes, also over
// a restart, and compares them with PostgreSQL's queries.
func TestTextSearchViews(t *testing.T) {
	pg := oracle.Connect(t)
	seed, rounds := randomly(t, 60)
	r := rand.New(rand.NewPCG(seed, 1))
	dir := t.TempDir()
	d := open(t, dir)
	defer func() { d.close() }()
	c := d.connect()
	queries := map[string]string{
		"hits":   "SELECT doc.id, q.id AS qid, ts_rank(v, q) AS rank FROM doc JOIN q ON v @@ q",
		"groups": "SELECT v, count(*), array_agg(id ORDER BY id) FROM doc GROUP BY v",
		"kinds":  "SELECT count(*), min(id), max(numnode(q)) FROM q GROUP BY q",
		"pairs":  "SELECT a.id, b.id AS other FROM q a JOIN q b ON a.q = b.q",
		"uniq":   "SELECT DISTINCT v FROM doc",
		"words":  "SELECT lexeme, count(*), sum(cardinality(positions)) FROM doc, unnest(v) GROUP BY lexeme",
		"top":    "SELECT id, v FROM doc ORDER BY v DESC, id LIMIT 3",
		"heads":  "SELECT id, ts_headline('english', body, 'cat | dog'::tsquery, 'MaxWords=5, MinWords=2') AS h FROM doc",
	}
	pg.Exec(t, "CREATE TEMP TABLE doc (id int PRIMARY KEY, body text, v tsvector); CREATE TEMP TABLE q (id int PRIMARY KEY, q tsquery)")
	d.exec(c, "CREATE TABLE doc (id int PRIMARY KEY, body text, v tsvector); CREATE TABLE q (id int PRIMARY KEY, q tsquery)")
	for name, sql := range queries {
		d.exec(c, "CREATE MATERIALIZED VIEW "+name+" AS "+sql)
	}
	words := strings.Fields("the cat dog rat fat sat quick foxes running jumped over lazy houses")
	text := func() string {
		list := make([]string, 1+r.IntN(5))
		for i := range list {
			list[i] = words[r.IntN(len(words))]
		}
		return strings.Join(list, " ")
	}
	for round := range rounds {
		id := r.IntN(12)
		var sql string
		switch r.IntN(6) {
		case 0, 1:
			sql = fmt.Sprintf("INSERT INTO doc SELECT %d, b, to_tsvector('english', b) FROM (VALUES ('%s')) x(b) ON CONFLICT (id) DO UPDATE SET body = excluded.body, v = excluded.v", id, text())
		case 2:
			sql = fmt.Sprintf("UPDATE doc SET v = setweight(v, '%s') || 'extra:%d' WHERE id = %d", string('A'+rune(r.IntN(4))), 1+r.IntN(3), id)
		case 3:
			sql = fmt.Sprintf("DELETE FROM doc WHERE id = %d OR v = 'cat:1'", id)
		case 4:
			sql = fmt.Sprintf("INSERT INTO q VALUES (%d, to_tsquery('english', '%s:%s') %s '%s') ON CONFLICT (id) DO UPDATE SET q = excluded.q", id, words[1+r.IntN(4)],
				[]string{"*", "A", "B", "D"}[r.IntN(4)], []string{"&&", "||", "<->"}[r.IntN(3)], []string{"", "fat", "!rat", "run:*"}[r.IntN(4)])
		default:
			sql = fmt.Sprintf("DELETE FROM q WHERE id = %d", id)
		}
		if a, b := answer(c, sql), answer(pg.Conn, sql); a != b {
			t.Fatalf("%s\nstreamdb:\n%s\nPostgreSQL:\n%s", sql, a, b)
		}
		if round == rounds/2 {
			c.Close(context.Background())
			d.close()
			d = open(t, dir)
			c = d.connect()
		}
		if round%5 != 4 {
			continue
		}
		for name, sql := range queries {
			want := answer(pg.Conn, sql)
			if got := answer(c, "SELECT * FROM "+name); got != want {
				t.Fatalf("view %s after round %d:\n%s\nPostgreSQL:\n%s", name, round, got, want)
			}
			if got := answer(c, sql); got != want {
				t.Fatalf("query %s after round %d:\n%s\nPostgreSQL:\n%s", name, round, got, want)
			}
		}
	}
	copyBinary(t, pg.Conn, c)
	c.Close(context.Background())
}

// copyBinary copies the documents from PostgreSQL in binary, and back as text.
func copyBinary(t *testing.T, theirs, ours *pgx.Conn) {
	t.Helper()
	ctx := context.Background()
	for _, format := range []string{"binary", "text"} {
		var data strings.Builder
		if _, err := theirs.PgConn().CopyTo(ctx, &data, "COPY (SELECT id, body, v FROM doc ORDER BY id) TO STDOUT (FORMAT "+format+")"); err != nil {
			t.Fatal(err)
		}
		if _, err := ours.Exec(ctx, "DROP TABLE IF EXISTS back; CREATE TABLE back (id int PRIMARY KEY, body text, v tsvector)", pgx.QueryExecModeSimpleProtocol); err != nil {
			t.Fatal(err)
		}
		if _, err := ours.PgConn().CopyFrom(ctx, strings.NewReader(data.String()), "COPY back FROM STDIN (FORMAT "+format+")"); err != nil {
			t.Fatal(err)
		}
		var again strings.Builder
		if _, err := ours.PgConn().CopyTo(ctx, &again, "COPY (SELECT id, body, v FROM back ORDER BY id) TO STDOUT (FORMAT "+format+")"); err != nil {
			t.Fatal(err)
		}
		if again.String() != data.String() {
			t.Errorf("COPY (FORMAT %s):\n got %q\nwant %q", format, again.String(), data.String())
		}
	}
}

package coord_test

import (
	"strings"
	"testing"

	"github.com/streamdb/streamdb/internal/oracle"
)

// TestEndlessRecursion compares recursions that end because nobody wants more of their
// rows with PostgreSQL's.
func TestEndlessRecursion(t *testing.T) {
	pg := oracle.Connect(t)
	d := open(t, t.TempDir())
	defer d.close()
	c := d.connect()
	for _, sql := range []string{
		"WITH RECURSIVE x(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM x) SELECT n FROM x LIMIT 3",
		"WITH RECURSIVE x(n) AS (SELECT 1 UNION SELECT n + 1 FROM x), y AS (SELECT n, n * n AS q FROM x WHERE n % 2 = 0) SELECT * FROM y LIMIT 3 OFFSET 1",
		"WITH RECURSIVE x(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM x) SELECT n FROM x WHERE n % 7 = 0 LIMIT 4",
		"WITH RECURSIVE x(n, t) AS (SELECT 1, 'a' UNION ALL SELECT n + 1, t || v FROM x JOIN (VALUES (0, 'b'), (1, 'c')) v (k, v) ON n % 2 = k) SELECT * FROM x LIMIT 5",
		"BEGIN; DECLARE c CURSOR FOR WITH RECURSIVE x(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM x) SELECT n FROM x; FETCH 4 FROM c; FETCH 2 FROM c; ROLLBACK",
	} {
		if a, b := answer(c, sql), answer(pg.Conn, sql); a != b {
			t.Errorf("%s\nstreamdb:\n%s\nPostgreSQL:\n%s", sql, a, b)
		}
	}
	const often = "WITH RECURSIVE x(n) AS (SELECT 1 UNION ALL SELECT 1 FROM x, generate_series(1, 2)) SELECT count(*) FROM x"
	if got := answer(c, often); !strings.HasPrefix(got, "ERROR 54000") {
		t.Errorf("%s: %s", often, got)
	}
}

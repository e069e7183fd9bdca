package coord_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/streamdb/streamdb/internal/oracle"
)

// TestNotices compares what a client is told besides the results with PostgreSQL.
func TestNotices(t *testing.T) {
	s := oracle.Connect(t)
	d := open(t, t.TempDir())
	defer d.close()
	ctx := context.Background()
	listen := func(cfg *pgx.ConnConfig) (*pgx.Conn, *[]string) {
		told := &[]string{}
		cfg.OnNotice = func(_ *pgconn.PgConn, n *pgconn.Notice) {
			*told = append(*told, fmt.Sprint(n.Severity, " ", n.Code, " ", n.Message, " ", n.Position))
		}
		cfg.DefaultQueryExecMode = pgx.QueryExecModeSimpleProtocol
		c, err := pgx.ConnectConfig(ctx, cfg)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close(ctx) })
		return c, told
	}
	mine := d.connect()
	defer mine.Close(ctx)
	ours, got := listen(mine.Config().Copy())
	pg, want := listen(s.Conn.Config().Copy())
	for _, sql := range []string{
		"SELECT to_tsquery('english', 'the'), plainto_tsquery(''), websearch_to_tsquery('english', 'a'), to_tsquery('  ')",
		"SELECT to_tsquery('cat'), to_tsquery('english', '!the')",
		"SELECT time(7) '10:00', 'é', '10:00'::timetz(8), now()::timestamp(9), interval(7) '1 day', time(6) '10:00'",
		"SELECT current_time(9) IS NULL, localtimestamp(8) IS NULL, current_timestamp(6) IS NULL",
		"SELECT 'a'::timestamp(7)",
		"SELECT interval second '1', interval second(7) '1'",
		"CREATE TEMP TABLE spans (a interval day to second, b interval day to second(3), c interval hour)",
		"SELECT x::timestamptz(7) FROM (VALUES (now()), (now())) t(x)",
		"SELECT plainto_tsquery('english', x) FROM (VALUES ('the'), ('cat')) t(x)",
	} {
		*got, *want = nil, nil
		_, _ = ours.Exec(ctx, sql)
		_, _ = pg.Exec(ctx, sql)
		if g, w := strings.Join(*got, "\n"), strings.Join(*want, "\n"); g != w {
			t.Errorf("%s\n got %s\nwant %s", sql, g, w)
		}
	}
}

package coord_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"go.uber.org/goleak"

	"github.com/streamdb/streamdb/coord"
	"github.com/streamdb/streamdb/pgwire"
	"github.com/streamdb/streamdb/sources"
	"github.com/streamdb/streamdb/sources/loadgen"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// database is a server within the test.
type database struct {
	t    testing.TB
	dir  string
	c    *coord.Coordinator
	pg   *pgwire.Server
	addr string
	done chan struct{}
}

func open(t *testing.T, dir string) *database {
	t.Helper()
	return openWith(t, dir, coord.Options{CheckpointInterval: 50 * time.Millisecond,
		Sources: func(_ context.Context, _ string, cfg sources.Config) (sources.Source, error) {
			opts := map[string]string{}
			for k, v := range cfg.Options {
				switch k {
				case "generator", "connector", "envelope", "upstream", "dialect":
				default:
					opts[k] = v
				}
			}
			return loadgen.New(cfg.Options["generator"], opts, cfg.Columns())
		}})
}

func openWith(t testing.TB, dir string, o coord.Options) *database {
	t.Helper()
	c, err := coord.Open(context.Background(), dir, o)
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	d := &database{t: t, dir: dir, c: c, pg: pgwire.NewServer(c, pgwire.Options{}), addr: l.Addr().String(), done: make(chan struct{})}
	go func() {
		defer close(d.done)
		_ = d.pg.Serve(l)
	}()
	return d
}

func (d *database) close() {
	d.t.Helper()
	d.pg.Close()
	<-d.done
	if err := d.c.Close(context.Background()); err != nil {
		d.t.Fatal(err)
	}
}

func (d *database) connect() *pgx.Conn { return d.connectTo("streamdb") }

// connectTo connects by a name for the database.
func (d *database) connectTo(name string) *pgx.Conn {
	d.t.Helper()
	c, err := pgx.Connect(context.Background(), "postgres://t@"+d.addr+"/"+name+"?sslmode=disable")
	if err != nil {
		d.t.Fatal(err)
	}
	return c
}

func (d *database) exec(c *pgx.Conn, sql string) {
	d.t.Helper()
	if _, err := c.Exec(context.Background(), sql, pgx.QueryExecModeSimpleProtocol); err != nil {
		d.t.Fatalf("%s: %v", sql, err)
	}
}

func (d *database) text(c *pgx.Conn, sql string) string {
	d.t.Helper()
	rows, err := c.Query(context.Background(), sql, pgx.QueryExecModeSimpleProtocol)
	if err != nil {
		d.t.Fatalf("%s: %v", sql, err)
	}
	defer rows.Close()
	var out []string
	for rows.Next() {
		var vals []string
		for _, v := range rows.RawValues() {
			vals = append(vals, string(v))
		}
		out = append(out, strings.Join(vals, ","))
	}
	if err := rows.Err(); err != nil {
		d.t.Fatalf("%s: %v", sql, err)
	}
	return strings.Join(out, "\n")
}

// TestConcurrentSessions lets sessions move money, read totals, subscribe,
// create and drop views, all at once, while checkpoints are taken; then opens
// the database again. No read may ever see money made or lost.
func TestConcurrentSessions(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	dir := t.TempDir()
	d := open(t, dir)
	c := d.connect()
	d.exec(c, "CREATE TABLE account (id int PRIMARY KEY, grp int, balance bigint)")
	d.exec(c, "INSERT INTO account SELECT i, i % 5, 100 FROM generate_series(1, 50) i")
	d.exec(c, "CREATE MATERIALIZED VIEW by_group AS SELECT grp, sum(balance) AS s, count(*) AS n FROM account GROUP BY grp")
	d.exec(c, "CREATE CLUSTER other")
	d.exec(c, "CREATE MATERIALIZED VIEW total IN CLUSTER other AS SELECT sum(s) AS s, sum(n) AS n FROM by_group")
	d.exec(c, "CREATE SOURCE tick FROM LOAD GENERATOR COUNTER (RATE 500)")
	d.exec(c, "CREATE MATERIALIZED VIEW ticks AS SELECT counter % 10 AS k, count(*) AS n FROM tick GROUP BY 1")
	const rounds = 40
	var wg sync.WaitGroup
	for w := range 3 {
		rnd := rand.New(rand.NewPCG(seed, uint64(w)))
		wc := d.connect()
		wg.Go(func() {
			defer wc.Close(context.Background())
			for range rounds {
				a, b, x := rnd.IntN(50)+1, rnd.IntN(50)+1, rnd.IntN(10)
				sql := fmt.Sprintf("BEGIN; UPDATE account SET balance = balance - %d WHERE id = %d; UPDATE account SET balance = balance + %d WHERE id = %d; COMMIT", x, a, x, b)
				if rnd.IntN(4) == 0 {
					sql = strings.Replace(sql, "COMMIT", "ROLLBACK", 1)
				}
				if _, err := wc.Exec(context.Background(), sql, pgx.QueryExecModeSimpleProtocol); err != nil {
					t.Errorf("%s: %v", sql, err)
					return
				}
			}
		})
	}
	for range 2 {
		rc := d.connect()
		wg.Go(func() {
			defer rc.Close(context.Background())
			for range rounds {
				var a, b, n int64
				err := rc.QueryRow(context.Background(), "SELECT (SELECT sum(s)::bigint FROM by_group), (SELECT s::bigint FROM total), (SELECT n::bigint FROM total)").Scan(&a, &b, &n)
				if err != nil || a != 5000 || b != 5000 || n != 50 {
					t.Errorf("a read saw %d, %d, %d (%v)", a, b, n, err)
					return
				}
			}
		})
	}
	dc := d.connect()
	wg.Go(func() {
		defer dc.Close(context.Background())
		for i := range 8 {
			for _, sql := range []string{
				fmt.Sprintf("CREATE MATERIALIZED VIEW v%d AS SELECT a.id, g.s FROM account a JOIN by_group g USING (grp) WHERE a.balance >= 0", i),
				fmt.Sprintf("SELECT count(*) FROM v%d", i), fmt.Sprintf("DROP MATERIALIZED VIEW v%d", i)} {
				if _, err := dc.Exec(context.Background(), sql, pgx.QueryExecModeSimpleProtocol); err != nil {
					t.Errorf("%s: %v", sql, err)
				}
			}
		}
	})
	sc := d.connect()
	wg.Go(func() {
		defer sc.Close(context.Background())
		total := map[string]int64{}
		d.exec(sc, "BEGIN")
		d.exec(sc, "DECLARE s CURSOR FOR SUBSCRIBE (SELECT grp, s::bigint FROM by_group) WITH (SNAPSHOT)")
		for range rounds / 2 {
			for _, line := range strings.Split(d.text(sc, "FETCH ALL s WITH (timeout = '20ms')"), "\n") {
				if f := strings.Split(line, ","); len(f) == 4 {
					var diff, s int64
					fmt.Sscan(f[1], &diff)
					fmt.Sscan(f[3], &s)
					total[f[2]] += diff * s
				}
			}
			var sum int64
			for _, s := range total {
				sum += s
			}
			if sum != 5000 {
				t.Errorf("the subscription sums up to %d: %v", sum, total)
				return
			}
		}
		d.exec(sc, "COMMIT")
	})
	wg.Wait()
	want := d.text(c, "SELECT * FROM account ORDER BY id")
	c.Close(context.Background())
	d.close()

	d = open(t, dir)
	c = d.connect()
	if got := d.text(c, "SELECT * FROM account ORDER BY id"); got != want {
		t.Errorf("after the restart: %s\nwant %s", got, want)
	}
	if got := d.text(c, "SELECT s::bigint, n::bigint FROM total"); got != "5000,50" {
		t.Errorf("total after the restart: %s", got)
	}
	if got := d.text(c, "SELECT (SELECT sum(n) FROM ticks) - (SELECT count(*) FROM tick), (SELECT count(*) - count(DISTINCT counter) FROM tick)"); got != "0,0" {
		t.Errorf("ticks after the restart: %s", got)
	}
	c.Close(context.Background())
	d.close()
}

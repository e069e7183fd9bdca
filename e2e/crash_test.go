package e2e

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

// crashes is how often TestKillMinusNine kills, from STREAMDB_TEST_CRASHES.
func crashes(t *testing.T) int {
	if v := os.Getenv("STREAMDB_TEST_CRASHES"); v != "" {
		n, err := strconv.Atoi(v)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	if testing.Short() {
		return 2
	}
	return 6
}

// writer inserts into a table and remembers what was acknowledged.
type writer struct {
	acked  atomic.Int64 // rows 1..acked are acknowledged
	tried  atomic.Int64
	failed atomic.Int64
}

// run inserts 1, 2, 3, … each in a transaction with its negative in another
// table, and goes on through the server's deaths.
func (w *writer) run(ctx context.Context, dsn string) {
	n := int64(0)
	for ctx.Err() == nil {
		c, err := pgx.Connect(ctx, dsn)
		if err != nil {
			time.Sleep(10 * time.Millisecond)
			continue
		}
		// What was not acknowledged may be there or not: ask.
		if err := c.QueryRow(ctx, "SELECT coalesce(max(n), 0) FROM pos").Scan(&n); err != nil {
			c.Close(ctx)
			continue
		}
		for ctx.Err() == nil {
			n++
			w.tried.Store(n)
			if _, err := c.Exec(ctx, fmt.Sprintf("BEGIN; INSERT INTO pos VALUES (%d, %d); INSERT INTO neg VALUES (%d, -%d); COMMIT", n, n, n, n), pgx.QueryExecModeSimpleProtocol); err != nil {
				w.failed.Add(1)
				break
			}
			w.acked.Store(n)
		}
		c.Close(context.Background())
	}
}

// TestKillMinusNine kills the server at random instants while a producer writes
// to Kafka, another moves money in the upstream PostgreSQL, and a client
// inserts. After each restart every acknowledged row is there once, every view
// equals its query recomputed, and the invariants hold.
func TestKillMinusNine(t *testing.T) {
	broker := need(t, "STREAMDB_TEST_KAFKA")
	up, createConn := upstream(t)
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rnd := rand.New(rand.NewPCG(seed, 1))
	exec1(t, up, "CREATE TABLE account (id int PRIMARY KEY, balance bigint NOT NULL)",
		"INSERT INTO account SELECT i, 1000 FROM generate_series(1, 50) i", "CREATE PUBLICATION pub FOR TABLE account")
	topic := fmt.Sprintf("crash-%d", rnd.Int64())
	client, err := kgo.NewClient(kgo.SeedBrokers(broker), kgo.DefaultProduceTopic(topic))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	if _, err := kadm.NewClient(client).CreateTopic(context.Background(), 3, 1, nil, topic); err != nil {
		t.Fatal(err)
	}
	s := serve(t, t.TempDir(), "--checkpoint-interval", "300ms")
	c := s.connect()
	exec1(t, c, "CREATE TABLE pos (n bigint PRIMARY KEY, v bigint)", "CREATE TABLE neg (n bigint, v bigint)",
		createConn, "CREATE SOURCE bank FROM POSTGRES CONNECTION up (PUBLICATION 'pub') FOR ALL TABLES",
		fmt.Sprintf("CREATE SOURCE msg (k bigint, grp text) WITH (connector = 'kafka', topic = '%s', properties.bootstrap.server = '%s') FORMAT PLAIN ENCODE JSON", topic, broker),
		"CREATE MATERIALIZED VIEW balance AS SELECT sum(balance) AS s, count(*) AS n FROM account",
		"CREATE MATERIALIZED VIEW zero AS SELECT sum(v) AS s, count(*) AS n FROM (SELECT v FROM pos UNION ALL SELECT v FROM neg) x",
		"CREATE MATERIALIZED VIEW by_group AS SELECT grp, count(*) AS n, count(DISTINCT k) AS d, sum(k) AS s FROM msg GROUP BY grp",
		"CREATE MATERIALIZED VIEW joined AS SELECT a.id, count(*) AS n FROM account a JOIN msg m ON m.k % 50 + 1 = a.id GROUP BY a.id",
		"CREATE TABLE copied (k bigint, grp text)", "CREATE SINK copying INTO copied FROM msg")
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	var w writer
	var produced atomic.Int64
	wg.Go(func() { w.run(ctx, s.dsn()) })
	wg.Go(func() {
		for n := int64(1); ctx.Err() == nil; n++ {
			if err := client.ProduceSync(context.Background(), kgo.StringRecord(fmt.Sprintf(`{"k": %d, "grp": "g%d"}`, n, n%7))).FirstErr(); err != nil {
				t.Error(err)
				return
			}
			produced.Store(n)
		}
	})
	wg.Go(func() {
		r := rand.New(rand.NewPCG(seed, 2))
		for ctx.Err() == nil {
			a, b, x := r.IntN(50)+1, r.IntN(50)+1, r.IntN(100)
			_, err := up.Exec(context.Background(), fmt.Sprintf("BEGIN; UPDATE account SET balance = balance - %d WHERE id = %d; UPDATE account SET balance = balance + %d WHERE id = %d; COMMIT", x, a, x, b), pgx.QueryExecModeSimpleProtocol)
			if err != nil {
				t.Error(err)
				return
			}
			time.Sleep(time.Millisecond)
		}
	})
	for i := range crashes(t) {
		time.Sleep(time.Duration(100+rnd.IntN(1200)) * time.Millisecond)
		before := w.acked.Load()
		s.kill()
		s.start("--checkpoint-interval", "300ms")
		c := s.connect()
		checkCrash(t, c, i, before)
		c.Close(context.Background())
		if t.Failed() {
			break
		}
	}
	cancel()
	wg.Wait()
	if t.Failed() {
		return
	}
	c = s.connect()
	total := produced.Load()
	eventually(t, c, "SELECT count(*), count(DISTINCT k), max(k) FROM msg", fmt.Sprintf("%d,%d,%d", total, total, total))
	eventually(t, c, "SELECT count(*), count(DISTINCT k) FROM copied", fmt.Sprintf("%d,%d", total, total))
	eventually(t, c, "SELECT sum(n), sum(d) FROM by_group", fmt.Sprintf("%d,%d", total, total))
	eventually(t, c, "SELECT id, balance FROM account ORDER BY id", text(t, up, "SELECT id, balance FROM account ORDER BY id"))
	checkCrash(t, c, -1, w.acked.Load())
	t.Logf("%d rows acknowledged, %d records produced, %d statements failed with the server", w.acked.Load(), total, w.failed.Load())
	s.stop()
}

// checkCrash checks what must hold at any moment, in one query where it is
// about one moment.
func checkCrash(t *testing.T, c *pgx.Conn, i int, acked int64) {
	t.Helper()
	for _, q := range []struct{ name, sql, want string }{
		{"money", "SELECT (SELECT s FROM balance), (SELECT n FROM balance), (SELECT sum(balance) FROM account)", "50000,50,50000"},
		{"transactions are whole", "SELECT (SELECT s FROM zero), (SELECT count(*) FROM pos) - (SELECT count(*) FROM neg), (SELECT n FROM zero) - 2 * (SELECT count(*) FROM pos)", "0,0,0"},
		{"rows once", "SELECT count(*) - count(DISTINCT n), count(*) - max(n) FROM pos", "0,0"},
		{"records once", "SELECT count(*) - count(DISTINCT k) FROM msg", "0"},
		{"records delivered once", "SELECT count(*) - count(DISTINCT k), (SELECT count(*) FROM (SELECT * FROM copied EXCEPT SELECT k, grp FROM msg) x) FROM copied", "0,0"},
		{"view by_group", diffQuery("by_group", "SELECT grp, count(*) AS n, count(DISTINCT k) AS d, sum(k) AS s FROM msg GROUP BY grp"), "0"},
		{"view joined", diffQuery("joined", "SELECT a.id, count(*) AS n FROM account a JOIN msg m ON m.k % 50 + 1 = a.id GROUP BY a.id"), "0"},
	} {
		got, err := textErr(c, q.sql)
		if err != nil || strings.ReplaceAll(got, "NULL", "0") != q.want {
			t.Errorf("after crash %d, %s: got %q (%v), want %q", i, q.name, got, err, q.want)
		}
	}
	got, err := textErr(c, "SELECT count(*) FROM pos WHERE n <= "+strconv.FormatInt(acked, 10))
	if err != nil || got != strconv.FormatInt(acked, 10) {
		t.Errorf("after crash %d: of %d acknowledged rows %s are there (%v)", i, acked, got, err)
	}
}

// diffQuery counts the rows by which a view differs from its query computed anew.
func diffQuery(view, query string) string {
	return fmt.Sprintf("SELECT count(*) FROM ((SELECT * FROM %[1]s EXCEPT ALL (%[2]s)) UNION ALL ((%[2]s) EXCEPT ALL SELECT * FROM %[1]s)) x", view, query)
}

package coord_test

import (
	"context"
	"strings"
	"testing"
	"time"
)

// TestNotValidOutlivesRewrites rewrites a table whose old rows do not satisfy a
// constraint that is NOT VALID.
func TestNotValidOutlivesRewrites(t *testing.T) {
	d := open(t, t.TempDir())
	defer d.close()
	c := d.connect()
	for _, sql := range []string{
		"CREATE TABLE t (id int, n int)", "INSERT INTO t VALUES (1, 2)",
		"ALTER TABLE t ADD CONSTRAINT k CHECK (id > 5) NOT VALID",
		"ALTER TABLE t ADD COLUMN z int", "ALTER TABLE t ADD COLUMN y int DEFAULT 3", "ALTER TABLE t ALTER COLUMN n TYPE text",
	} {
		d.exec(c, sql)
	}
	if got := d.text(c, "SELECT * FROM t"); got != "1,2,,3" {
		t.Errorf("the row is %s", got)
	}
	for _, sql := range []string{"INSERT INTO t VALUES (2)", "UPDATE t SET z = 1", "ALTER TABLE t VALIDATE CONSTRAINT k", "ALTER TABLE t ADD CHECK (id > 6)"} {
		if _, err := c.Exec(context.Background(), sql); err == nil || !strings.Contains(err.Error(), "23514") {
			t.Errorf("%s: %v", sql, err)
		}
	}
}

// TestCancelledSleep cancels pg_sleep of a constant, as a client does.
func TestCancelledSleep(t *testing.T) {
	d := open(t, t.TempDir())
	defer d.close()
	c, other := d.connect(), d.connect()
	done := make(chan error, 1)
	go func() {
		_, err := c.Exec(context.Background(), "SELECT pg_sleep(600)")
		done <- err
	}()
	for d.text(other, "SELECT count(*) FROM pg_stat_activity WHERE state = 'active' AND query = 'SELECT pg_sleep(600)'") != "1" {
		time.Sleep(time.Millisecond)
	}
	if err := c.PgConn().CancelRequest(context.Background()); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err == nil || !strings.Contains(err.Error(), "57014") {
		t.Error(err)
	}
}

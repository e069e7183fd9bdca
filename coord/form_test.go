package coord_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// TestFormOfTables changes and drops tables under open transactions that have
// written to them, with and without a key: each waits for the other, nothing that
// was acknowledged is lost, and the database opens again.
func TestFormOfTables(t *testing.T) {
	ctx := context.Background()
	dir := t.TempDir()
	d := open(t, dir)
	a, b := d.connect(), d.connect()
	waiting := func() { // until a statement waits for a table
		for end := time.Now().Add(10 * time.Second); d.c.LockWaiters() == 0; time.Sleep(time.Millisecond) {
			if time.Now().After(end) {
				t.Fatal("nobody waits")
			}
		}
	}
	var want []string
	for i, key := range []string{"", " PRIMARY KEY"} {
		for j, c := range []struct{ ddl, rows string }{
			{"ALTER TABLE %s ADD COLUMN b int DEFAULT 7", "1,7\n2,7"},
			{"ALTER TABLE %s ALTER COLUMN a TYPE text", "1\n2"},
			{"DROP TABLE %s; CREATE TABLE %[1]s (a int)", ""},
			{"TRUNCATE %s", ""},
			{"BEGIN; LOCK TABLE %s; COMMIT", "1\n2"},
		} {
			name := fmt.Sprintf("t%d%d", i, j)
			d.exec(a, "CREATE TABLE "+name+" (a int"+key+")")
			d.exec(a, "BEGIN; INSERT INTO "+name+" VALUES (1)")
			done := make(chan error, 1)
			go func() {
				_, err := b.Exec(ctx, fmt.Sprintf(c.ddl, name), pgx.QueryExecModeSimpleProtocol)
				done <- err
			}()
			select {
			case err := <-done:
				t.Errorf("%s did not wait for the writer (%v)", c.ddl, err)
				done <- err
			case <-time.After(30 * time.Millisecond):
			}
			d.exec(a, "INSERT INTO "+name+" VALUES (2); COMMIT")
			if err := <-done; err != nil {
				t.Errorf("%s: %v", c.ddl, err)
			}
			if got := d.text(a, "SELECT * FROM "+name+" ORDER BY a"); got != c.rows {
				t.Errorf("%s: %q, want %q", c.ddl, got, c.rows)
			}
			want = append(want, c.rows)
		}
	}

	// A writer waits for a change of its table, and writes into the new form.
	d.exec(a, "CREATE TABLE w (a int)")
	d.exec(a, "BEGIN; ALTER TABLE w ADD COLUMN b int DEFAULT 7")
	done := make(chan error, 1)
	go func() {
		_, err := b.Exec(ctx, "INSERT INTO w VALUES (5)", pgx.QueryExecModeSimpleProtocol)
		done <- err
	}()
	waiting()
	d.exec(a, "COMMIT")
	if err := <-done; err != nil {
		t.Error(err)
	}
	if got := d.text(a, "SELECT * FROM w"); got != "5,7" {
		t.Errorf("a row into a table that was changed meanwhile: %q", got)
	}

	// Who has the right to change the catalog and waits for a table, and the other
	// way round, do not wait for ever.
	d.exec(a, "BEGIN; INSERT INTO w VALUES (6)")
	go func() {
		_, err := b.Exec(ctx, "ALTER TABLE w ADD COLUMN c int", pgx.QueryExecModeSimpleProtocol)
		done <- err
	}()
	waiting()
	if _, err := a.Exec(ctx, "CREATE TABLE other (x int)", pgx.QueryExecModeSimpleProtocol); err == nil || !strings.Contains(err.Error(), "40P01") {
		t.Errorf("a circle of waits: %v", err)
	}
	d.exec(a, "ROLLBACK")
	if err := <-done; err != nil {
		t.Error(err)
	}

	// A snapshot does not take a relation of another form for an empty one.
	d.exec(a, "CREATE TABLE s (a int PRIMARY KEY)")
	d.exec(a, "INSERT INTO s VALUES (1)")
	d.exec(a, "CREATE MATERIALIZED VIEW sv AS SELECT count(*) AS n FROM s")
	for _, read := range []string{"SELECT * FROM s", "SELECT n FROM sv"} {
		d.exec(a, "BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM w")
		d.exec(b, "ALTER TABLE s ADD COLUMN x"+fmt.Sprint(len(read))+" int DEFAULT 5")
		if _, err := a.Exec(ctx, read, pgx.QueryExecModeSimpleProtocol); err == nil || !strings.Contains(err.Error(), "40001") {
			t.Errorf("%s after a change of the table: %v", read, err)
		}
		d.exec(a, "ROLLBACK")
	}
	a.Close(ctx)
	b.Close(ctx)
	d.close()

	d = open(t, dir)
	a = d.connect()
	for i := range 2 {
		for j := range 5 {
			name := fmt.Sprintf("t%d%d", i, j)
			if got := d.text(a, "SELECT * FROM "+name+" ORDER BY a"); got != want[i*5+j] {
				t.Errorf("%s after the restart: %q, want %q", name, got, want[i*5+j])
			}
		}
	}
	a.Close(ctx)
	d.close()
}

package coord_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// TestForeignKeysAcrossSessions checks that a row which another session's open
// transaction refers to, or deletes, is waited for.
func TestForeignKeysAcrossSessions(t *testing.T) {
	d := open(t, t.TempDir())
	defer d.close()
	a, b := d.connect(), d.connect()
	defer a.Close(context.Background())
	defer b.Close(context.Background())
	d.exec(a, "CREATE TABLE p (id int PRIMARY KEY); CREATE TABLE c (p int REFERENCES p); INSERT INTO p VALUES (1), (2)")
	wait := func(first, second, code string) {
		t.Helper()
		d.exec(a, "BEGIN; "+first)
		done := make(chan error, 1)
		go func() {
			_, err := b.Exec(context.Background(), second, pgx.QueryExecModeSimpleProtocol)
			done <- err
		}()
		select {
		case err := <-done:
			t.Fatalf("%s did not wait for %s: %v", second, first, err)
		case <-time.After(50 * time.Millisecond):
		}
		d.exec(a, "COMMIT")
		if err := <-done; err == nil || !strings.Contains(err.Error(), code) {
			t.Errorf("%s after %s: %v, want SQLSTATE %s", second, first, err, code)
		}
	}
	wait("DELETE FROM p WHERE id = 1", "INSERT INTO c VALUES (1)", "23503")
	wait("INSERT INTO c VALUES (2)", "DELETE FROM p WHERE id = 2", "23503")
	// Two that refer do not wait for each other.
	d.exec(a, "BEGIN; INSERT INTO c VALUES (2)")
	d.exec(b, "INSERT INTO c VALUES (2)")
	d.exec(a, "COMMIT")
	if got := d.text(a, "SELECT count(*) FROM c"); got != "3" {
		t.Errorf("%s rows refer, want 3", got)
	}
}

package coord_test

import (
	"errors"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// TestMergeReturning checks what PostgreSQL 17 adds to MERGE, which the PostgreSQL
// that answers are compared with may not have: RETURNING, merge_action() and NOT
// MATCHED BY SOURCE.
func TestMergeReturning(t *testing.T) {
	d := open(t, t.TempDir())
	defer d.close()
	c := d.connect()
	d.exec(c, "CREATE TABLE t (id int PRIMARY KEY, v int)")
	d.exec(c, "INSERT INTO t VALUES (1, 10), (2, 20), (3, 30)")
	merge := `MERGE INTO t USING (VALUES (2, 5), (3, 0), (4, 4), (5, NULL)) AS s(id, d) ON t.id = s.id
		WHEN MATCHED AND d = 0 THEN DELETE
		WHEN MATCHED THEN UPDATE SET v = v + d
		WHEN NOT MATCHED AND d IS NULL THEN DO NOTHING
		WHEN NOT MATCHED THEN INSERT VALUES (s.id, s.d)
		WHEN NOT MATCHED BY SOURCE THEN UPDATE SET v = -1
		RETURNING merge_action(), t.id, v, d`
	got := d.text(c, "WITH m AS ("+merge+") SELECT * FROM m ORDER BY id")
	if want := "UPDATE,1,-1,\nUPDATE,2,25,5\nDELETE,3,30,0\nINSERT,4,4,4"; got != want {
		t.Errorf("MERGE gives %q, want %q", got, want)
	}
	if got, want := d.text(c, "SELECT * FROM t ORDER BY id"), "1,-1\n2,25\n4,4"; got != want {
		t.Errorf("the table is %q, want %q", got, want)
	}
	rows, err := c.Query(t.Context(), merge, pgx.QueryExecModeSimpleProtocol)
	if err != nil {
		t.Fatal(err)
	}
	if got := rows.FieldDescriptions()[0].Name; got != "merge_action" {
		t.Errorf("the column of merge_action() is named %q", got)
	}
	rows.Close()
	if rows.CommandTag().String() != "MERGE 4" {
		t.Errorf("the command tag is %q", rows.CommandTag())
	}
}

// TestMergeView checks MERGE through views, which PostgreSQL has from 17 on: the rows
// that the view does not show are not there, and what it demands of new ones holds.
func TestMergeView(t *testing.T) {
	d := open(t, t.TempDir())
	defer d.close()
	c := d.connect()
	d.exec(c, "CREATE TABLE t (id int PRIMARY KEY, v int)")
	d.exec(c, "INSERT INTO t VALUES (1, 10), (2, 20), (3, 30)")
	d.exec(c, "CREATE VIEW w AS SELECT id, v, id * 10 AS tens FROM t WHERE id > 1 WITH CHECK OPTION")
	got := d.text(c, `WITH m AS (MERGE INTO w USING (VALUES (20, 1), (30, 0), (40, 4)) AS s(tens, d) ON w.tens = s.tens
		WHEN MATCHED AND d = 0 THEN DELETE WHEN MATCHED THEN UPDATE SET v = w.tens + d WHEN NOT MATCHED THEN INSERT (id, v) VALUES (s.tens / 10, d)
		RETURNING merge_action(), w.id, w.tens, w.v) SELECT * FROM m ORDER BY id`)
	if want := "UPDATE,2,20,21\nDELETE,3,30,30\nINSERT,4,40,4"; got != want {
		t.Errorf("MERGE gives %q, want %q", got, want)
	}
	if got, want := d.text(c, "SELECT * FROM t ORDER BY id"), "1,10\n2,21\n4,4"; got != want {
		t.Errorf("the table is %q, want %q", got, want)
	}
	for sql, code := range map[string]string{
		"MERGE INTO w USING (VALUES (2)) AS s(id) ON w.id = s.id WHEN MATCHED THEN UPDATE SET id = 0":     "44000",
		"MERGE INTO w USING (VALUES (2)) AS s(id) ON w.id = s.id WHEN MATCHED THEN UPDATE SET tens = 0":   "0A000",
		"MERGE INTO w USING (VALUES (1)) AS s(id) ON w.id = s.id WHEN NOT MATCHED THEN INSERT VALUES (1)": "0A000",
		"MERGE INTO u USING (VALUES (1)) AS s(id) ON u.id = s.id WHEN MATCHED THEN DELETE":                "55000",
	} {
		d.exec(c, "CREATE OR REPLACE VIEW u AS SELECT DISTINCT id FROM t")
		var e *pgconn.PgError
		if _, err := c.Exec(t.Context(), sql); !errors.As(err, &e) || e.Code != code {
			t.Errorf("%s: %v, want %s", sql, err, code)
		}
	}
}

package coord_test

import (
	"testing"

	"github.com/jackc/pgx/v5"
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

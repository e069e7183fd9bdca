package coord_test

import (
	"context"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/streamdb/streamdb/coord"
)

// BenchmarkIsolation measures transactions that read one table and write another, at
// each isolation level.
func BenchmarkIsolation(b *testing.B) {
	d := openWith(b, b.TempDir(), coord.Options{})
	defer d.close()
	c := d.connect()
	for _, table := range []string{"x", "y"} {
		d.exec(c, "CREATE TABLE "+table+" (id int PRIMARY KEY, v int)")
		d.exec(c, "INSERT INTO "+table+" SELECT i, i FROM generate_series(0, 999) i")
	}
	ctx := context.Background()
	step := func(level pgx.TxIsoLevel, id int) error {
		tx, err := c.BeginTx(ctx, pgx.TxOptions{IsoLevel: level})
		if err != nil {
			return err
		}
		defer tx.Rollback(ctx)
		var s int
		if err := tx.QueryRow(ctx, "SELECT sum(v) FROM x").Scan(&s); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, "UPDATE y SET v = v + 1 WHERE id = $1", id); err != nil {
			return err
		}
		return tx.Commit(ctx)
	}
	for _, level := range []pgx.TxIsoLevel{pgx.ReadCommitted, pgx.RepeatableRead, pgx.Serializable} {
		b.Run(string(level), func(b *testing.B) {
			for i := 0; b.Loop(); i++ {
				if err := step(level, i%100); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

package coord_test

import (
	"strings"
	"testing"
)

// TestDatabaseNames checks that the database goes by the name that each client asks for,
// and that what is stored does not depend on it.
func TestDatabaseNames(t *testing.T) {
	dir := t.TempDir()
	d := open(t, dir)
	c := d.connectTo("shop")
	if got := d.text(c, "SELECT current_database(), (SELECT string_agg(datname, ',') FROM pg_database), (SELECT catalog_name FROM information_schema.schemata LIMIT 1)"); got != "shop,shop,streamdb,shop" {
		t.Errorf("the database is %q", got)
	}
	d.exec(c, `CREATE TABLE "shop"."public".t (a int, b text)`)
	d.exec(c, `CREATE TYPE shop.public.mood AS ENUM ('sad', 'ok')`)
	d.exec(c, `INSERT INTO shop.public.t VALUES (1, 'ok')`)
	d.exec(c, `CREATE FUNCTION shop.public.twice(i int) RETURNS int LANGUAGE sql AS 'SELECT i + i'`)
	d.exec(c, `CREATE VIEW shop.public.v AS SELECT "shop" . "public".t.a, shop.public.twice(t.a) AS d, t.b::shop.public.mood FROM "shop"."public"."t" WHERE shop.pg_catalog.abs(a) > 0`)
	d.exec(c, `CREATE MATERIALIZED VIEW shop.public.m AS SELECT shop.public.t.*, twice(a) AS d FROM shop.public.t`)
	if _, err := c.Exec(t.Context(), "SELECT * FROM store.public.t"); err == nil || !strings.Contains(err.Error(), "cross-database") {
		t.Errorf("another database: %v", err)
	}
	for range 2 {
		c = d.connectTo("store")
		for sql, want := range map[string]string{
			"SELECT * FROM v": "1,2,ok",
			"SELECT * FROM m": "1,ok,2",
			"SELECT store.public.v.a FROM store.public.v":                               "1",
			"SELECT table_catalog FROM information_schema.views WHERE table_name = 'v'": "store",
		} {
			if got := d.text(c, sql); got != want {
				t.Errorf("%s: %q, want %q", sql, got, want)
			}
		}
		d.close()
		d = open(t, dir)
	}
	d.close()
}

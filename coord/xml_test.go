package coord_test

import (
	"context"
	"strings"
	"testing"
)

// TestXMLOfQueries: the functions that run queries have no place in a maintained
// view, may be nested, and run for the rows of a large query, too.
func TestXMLOfQueries(t *testing.T) {
	d := open(t, t.TempDir())
	defer d.close()
	c := d.connect()
	defer c.Close(context.Background())
	d.exec(c, "CREATE TABLE n (a int); INSERT INTO n SELECT generate_series(1, 5000)")
	for _, f := range []string{"query_to_xml('SELECT 1', true, true, '')", "table_to_xml('n', true, true, '')", "query_to_xmlschema('SELECT 1', true, true, '')"} {
		if got := reply(c, "CREATE MATERIALIZED VIEW v AS SELECT "+f+" AS x"); !strings.Contains(got, "is not allowed in a maintained view") {
			t.Errorf("%s in a maintained view: %s", f, got)
		}
	}
	if got := reply(c, "SELECT count(*), sum((xpath('string(/row/b)', query_to_xml('SELECT ' || a || ' AS b', true, true, '')))[1]::text::int) FROM n"); !strings.Contains(got, "12502500") {
		t.Error(got)
	}
	deep := "SELECT 1 AS x"
	for range 12 {
		deep = "SELECT query_to_xml($q$" + strings.ReplaceAll(deep, "$q", "$qq") + "$q$, true, true, '')"
	}
	if got := reply(c, deep); !strings.Contains(got, "<x>1</x>") {
		t.Error(got)
	}
	if got := reply(c, "SELECT (xpath('count(/n/row)', table_to_xml('n', true, false, '')))[1]"); !strings.Contains(got, "5000") {
		t.Error(got)
	}
}

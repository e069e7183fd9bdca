package coord_test

import (
	"context"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
)

// TestTimeoutInFrames ends a query whose frames take the square of its rows.
func TestTimeoutInFrames(t *testing.T) {
	d := open(t, t.TempDir())
	defer d.close()
	c := d.connect()
	defer c.Close(context.Background())
	d.exec(c, "SET statement_timeout = '100ms'")
	_, err := c.Exec(context.Background(), "SELECT cardinality(array_agg(i) OVER (ORDER BY i ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING EXCLUDE CURRENT ROW)) FROM generate_series(1, 200000) i", pgx.QueryExecModeSimpleProtocol)
	if err == nil || !strings.Contains(err.Error(), "57014") {
		t.Errorf("%v", err)
	}
}

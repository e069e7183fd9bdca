package coord_test

import (
	"bytes"
	"context"
	"fmt"
	"math/rand"
	"strings"
	"testing"

	"github.com/streamdb/streamdb/internal/oracle"
)

// TestNetworksAsKeys keeps network addresses as keys of tables, indexes, groups
// and joins, ad hoc and maintained, and compares each moment of a random history
// with PostgreSQL.
func TestNetworksAsKeys(t *testing.T) {
	s := oracle.Connect(t)
	d := open(t, t.TempDir())
	defer d.close()
	c := d.connect()
	defer c.Close(context.Background())
	r := rand.New(rand.NewSource(1))
	exec := func(sql string) {
		d.exec(c, sql)
		s.Exec(t, strings.ReplaceAll(sql, "CREATE TABLE", "CREATE TEMP TABLE"))
	}
	exec("CREATE TABLE host (ip inet PRIMARY KEY, net cidr, mac macaddr, mac8 macaddr8, tags inet[])")
	exec("CREATE TABLE net (net cidr UNIQUE, name text)")
	exec("CREATE INDEX host_mac ON host (mac8)")
	queries := []string{
		"SELECT * FROM host ORDER BY ip",
		"SELECT net, count(*), min(ip), max(ip), array_agg(mac ORDER BY mac DESC) FROM host GROUP BY net ORDER BY net",
		"SELECT h.ip, n.name FROM host h JOIN net n ON h.net = n.net ORDER BY 1, 2",
		"SELECT h.ip, n.name FROM host h LEFT JOIN net n ON h.ip <<= n.net ORDER BY 1, 2",
		"SELECT DISTINCT mac8, tags FROM host ORDER BY 1, 2",
		"SELECT ip FROM host WHERE ip IN (SELECT net FROM net) ORDER BY 1",
		"SELECT ip FROM host INTERSECT ALL SELECT net FROM net ORDER BY 1",
		"SELECT ip, rank() OVER (PARTITION BY family(ip) ORDER BY mac8, ip) FROM host ORDER BY 1",
		"SELECT percentile_disc(0.5) WITHIN GROUP (ORDER BY ip), mode() WITHIN GROUP (ORDER BY mac) FROM host",
		"SELECT tags, count(*) FROM host GROUP BY tags ORDER BY tags NULLS FIRST",
	}
	order := func(q string) string { // the ORDER BY at the end
		if k := strings.LastIndex(q, " ORDER BY "); k > strings.LastIndexByte(q, ')') {
			return q[k:]
		}
		return ""
	}
	for i, q := range queries {
		d.exec(c, fmt.Sprintf("CREATE MATERIALIZED VIEW v%d AS %s", i, strings.TrimSuffix(q, order(q))))
	}
	ip := func() string {
		return fmt.Sprintf("'%s/%d'", []string{"10.0.0.1", "10.0.0.2", "10.0.128.0", "11.1.1.1"}[r.Intn(4)], []int{8, 16, 17, 31, 32}[r.Intn(5)])
	}
	net := func() string { return fmt.Sprintf("set_masklen(%s::inet, %d)::cidr", ip(), 6+r.Intn(4)*8) }
	for range 60 {
		switch r.Intn(5) {
		case 0:
			exec(fmt.Sprintf("DELETE FROM host WHERE ip = %s OR ip << %s", ip(), ip()))
		case 1:
			exec(fmt.Sprintf("UPDATE host SET net = %s, mac8 = mac8 | '00:00:00:00:00:00:00:0%d' WHERE ip < %s", net(), r.Intn(9), ip()))
		case 2:
			exec(fmt.Sprintf("INSERT INTO net VALUES (%s, 'n%d') ON CONFLICT (net) DO UPDATE SET name = excluded.name", net(), r.Intn(9)))
		default:
			mac := fmt.Sprintf("'%02x:00:00:00:00:0%d'", r.Intn(3)*127, r.Intn(2))
			exec(fmt.Sprintf("INSERT INTO host VALUES (%s, %s, %s, %[3]s, ARRAY[%[1]s, %s]::inet[]) ON CONFLICT (ip) DO NOTHING", ip(), net(), mac, ip()))
		}
		for i, q := range queries {
			want := reply(s.Conn, q)
			if got := reply(c, q); got != want {
				t.Errorf("%s\n got %s\nwant %s", q, got, want)
			}
			if got := reply(c, fmt.Sprintf("SELECT * FROM v%d%s", i, order(q))); got != want {
				t.Errorf("v%d: %s\n got %s\nwant %s", i, q, got, want)
			}
		}
		for _, q := range []string{"SELECT * FROM host WHERE ip = " + ip(), "SELECT * FROM net WHERE net = " + net(), "SELECT count(*) FROM host WHERE mac8 = '00:00:00:ff:fe:00:00:01'"} {
			if got, want := reply(c, q), reply(s.Conn, q); got != want {
				t.Errorf("%s\n got %s\nwant %s", q, got, want)
			}
		}
	}
	for _, format := range []string{"", " (FORMAT csv)", " (FORMAT binary)"} {
		var ours, theirs bytes.Buffer
		q := "COPY (SELECT * FROM host ORDER BY ip) TO STDOUT" + format
		if _, err := c.PgConn().CopyTo(t.Context(), &ours, q); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Conn.PgConn().CopyTo(t.Context(), &theirs, q); err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(ours.Bytes(), theirs.Bytes()) {
			t.Errorf("%s: %q, want %q", q, ours.String(), theirs.String())
		}
		d.exec(c, "TRUNCATE host")
		if _, err := c.PgConn().CopyFrom(t.Context(), &theirs, "COPY host FROM STDIN"+format); err != nil {
			t.Errorf("COPY FROM%s: %v", format, err)
		}
		if got, want := reply(c, queries[0]), reply(s.Conn, queries[0]); got != want {
			t.Errorf("COPY FROM%s: %s, want %s", format, got, want)
		}
	}
}

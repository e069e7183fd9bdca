package e2e

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgproto3"
	"github.com/jackc/pgx/v5/pgtype"
)

// typeValues are values of every type, as text.
var typeValues = []struct {
	typ  string
	vals []string
}{
	{"bool", []string{"t", "f", "yes", "0"}},
	{"int2", []string{"0", "-32768", "32767"}},
	{"int4", []string{"0", "-2147483648", "2147483647"}},
	{"int8", []string{"0", "-9223372036854775808", "9223372036854775807"}},
	{"float4", []string{"0", "-0", "1.5", "3.4e38", "1e-40", "NaN", "Infinity", "-Infinity", "0.1"}},
	{"float8", []string{"0", "-0", "1.5", "1.7976931348623157e308", "5e-324", "NaN", "Infinity", "-Infinity", "0.1", "1e15", "1e16"}},
	{"numeric", []string{"0", "0.00", "-1.50", "12345678901234567890123456789012345678901234567890.123456789", "1e100", "1e-30", "NaN", "Infinity", "-Infinity", "10000", "0.0001"}},
	{"numeric(10,2)", []string{"1", "-99999999.99", "0.005"}},
	{"text", []string{"", "plain", "ünïcödé 漢字 🎉", "tab\tnl\nquote\"back\\", "NULL", "{}", " "}},
	{"varchar(5)", []string{"", "abcde", "äöü"}},
	{"char(4)", []string{"", "ab", "abcd"}},
	{"bytea", []string{"", `\x00ff10`, `a\000b\\c`}},
	{"date", []string{"2024-02-29", "0001-01-01", "4713-01-01 BC", "5874897-12-31", "infinity", "-infinity"}},
	{"time", []string{"00:00:00", "23:59:59.999999", "24:00:00", "01:02:03.5"}},
	{"timestamp", []string{"2024-02-29 12:34:56.789", "1999-12-31 23:59:59.999999", "0044-03-15 BC", "infinity", "-infinity", "294276-12-31 23:59:59.999999"}},
	{"timestamptz", []string{"2024-02-29 12:34:56.789+05:30", "1970-01-01 00:00:00Z", "infinity", "-infinity"}},
	{"interval", []string{"0", "1 year 2 mons 3 days 04:05:06.789", "-1 mon +2 days -00:00:01", "178000000 years", "00:00:00.000001"}},
	{"uuid", []string{"00000000-0000-0000-0000-000000000000", "A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11"}},
	{"jsonb", []string{"null", "true", "1.50", `"s\u00e9\n"`, "[]", "{}", `{"b": 1, "a": [1, 2, {"c": null}], "b": 2, "aa": 1e3}`}},
}

// arrays of a type's values, as array literals.
func arraysOf(vals []string) []string {
	quoted := func(v string) string {
		return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(v) + `"`
	}
	all := make([]string, len(vals))
	for i, v := range vals {
		all[i] = quoted(v)
	}
	last := all[len(all)-1]
	return []string{"{}", "{NULL}", "{" + strings.Join(all, ",") + ",NULL}", "{{" + last + "," + last + "},{NULL," + last + "}}", "[-1:0]={" + last + "," + last + "}"}
}

// echo sends a value as a parameter in a format and gives the result's bytes in
// a format, or the error.
func echo(c *pgconn.PgConn, sql string, val []byte, paramFormat, resultFormat int16) ([]byte, string) {
	r := c.ExecParams(context.Background(), sql, [][]byte{val}, nil, []int16{paramFormat}, []int16{resultFormat}).Read()
	if r.Err != nil {
		var pe *pgconn.PgError
		if errors.As(r.Err, &pe) {
			return nil, pe.Code + " " + pe.Message
		}
		return nil, r.Err.Error()
	}
	return r.Rows[0][0], ""
}

// TestTypesOnTheWire sends every type (and arrays of it) as text and as binary
// parameters, and reads it in both formats: by itself, and out of a table that
// it was inserted into. Every byte must be PostgreSQL's.
func TestTypesOnTheWire(t *testing.T) {
	ctx := context.Background()
	dsn := emptyPostgres(t)
	if dsn == "" {
		need(t, "STREAMDB_TEST_PG_DSN")
	}
	s := serve(t, t.TempDir())
	type server struct {
		name string
		c    *pgconn.PgConn
		log  []string
	}
	servers := []*server{{name: "PostgreSQL"}, {name: "streamdb"}}
	for i, dsn := range []string{dsn, s.dsn()} {
		cfg, err := pgconn.ParseConfig(dsn)
		if err != nil {
			t.Fatal(err)
		}
		cfg.RuntimeParams["timezone"] = "UTC"
		if servers[i].c, err = pgconn.ConnectConfig(ctx, cfg); err != nil {
			t.Fatal(err)
		}
		defer servers[i].c.Close(ctx)
	}
	play := func(s *server, typ string, vals []string) {
		note := func(format string, args ...any) { s.log = append(s.log, fmt.Sprintf(format, args...)) }
		sql := "SELECT $1::" + typ
		sd, err := s.c.Prepare(ctx, "", sql, nil)
		if err != nil {
			note("%s: %v", typ, err)
			return
		}
		note("%s: parameters %v, result %d modifier %d size %d", typ, sd.ParamOIDs, sd.Fields[0].DataTypeOID, sd.Fields[0].TypeModifier, sd.Fields[0].DataTypeSize)
		table := "types_" + fmt.Sprint(len(s.log))
		if _, err := s.c.Exec(ctx, "CREATE TABLE "+table+" (id int PRIMARY KEY, v "+typ+")").ReadAll(); err != nil {
			note("%s: table: %v", typ, err)
		}
		for i, v := range vals {
			txt, e1 := echo(s.c, sql, []byte(v), 0, 0)
			bin, e2 := echo(s.c, sql, []byte(v), 0, 1)
			note("%s %q: %q %s, %s %s", typ, v, txt, e1, hex.EncodeToString(bin), e2)
			if e1 != "" || e2 != "" {
				continue
			}
			txt2, e3 := echo(s.c, sql, bin, 1, 0)
			bin2, e4 := echo(s.c, sql, bin, 1, 1)
			if string(txt2) != string(txt) || string(bin2) != string(bin) {
				note("%s %q does not survive binary: %q %s, %s %s", typ, v, txt2, e3, hex.EncodeToString(bin2), e4)
			}
			ins := fmt.Sprintf("INSERT INTO %s VALUES (%d, $1) RETURNING v", table, i)
			ret, e5 := echo(s.c, ins, bin, 1, 1)
			got, e6 := echo(s.c, "SELECT v FROM "+table+" WHERE id = $1", fmt.Append(nil, i), 0, 1)
			note("  stored %s %s, %s %s", hex.EncodeToString(ret), e5, hex.EncodeToString(got), e6)
		}
		// What is cut short is an error, and no more than that.
		_, e := echo(s.c, sql, []byte{1, 2, 3}, 1, 0)
		note("%s of three bytes: %.5s", typ, e)
	}
	for _, tv := range typeValues {
		for _, s := range servers {
			play(s, tv.typ, tv.vals)
			play(s, tv.typ+"[]", arraysOf(tv.vals))
		}
	}
	pg, us := servers[0].log, servers[1].log
	if len(pg) != len(us) {
		t.Errorf("%d lines against %d", len(pg), len(us))
	}
	for i := range min(len(pg), len(us)) {
		if pg[i] != us[i] {
			t.Errorf("PostgreSQL: %s\nstreamdb:   %s", pg[i], us[i])
		}
	}
}

// TestPgxValues reads and writes Go values of every type through pgx, which
// takes binary where it can.
func TestPgxValues(t *testing.T) {
	ctx := context.Background()
	c := serve(t, t.TempDir()).connect()
	exec1(t, c, `CREATE TABLE v (id int PRIMARY KEY, b bool, i2 int2, i4 int4, i8 int8, f4 float4, f8 float8, n numeric, s text, vc varchar(9), ch char(3),
		by bytea, d date, t time, ts timestamp, tz timestamptz, iv interval, u uuid, j jsonb, i8s int8[], ss text[], tss timestamptz[], us uuid[])`)
	num := pgtype.Numeric{}
	if err := num.Scan("-12345678901234567890.0123"); err != nil {
		t.Fatal(err)
	}
	at := time.Date(2024, 2, 29, 12, 34, 56, 789012000, time.UTC)
	uid := [16]byte{1, 2, 3, 15: 255}
	want := []any{true, int16(-2), int32(3), int64(1 << 40), float32(1.5), 2.25, num, "täxt", "vc", "ab ", []byte{0, 255},
		time.Date(2024, 2, 29, 0, 0, 0, 0, time.UTC), pgtype.Time{Microseconds: 3723000001, Valid: true}, at, at,
		pgtype.Interval{Months: 14, Days: -3, Microseconds: 5, Valid: true}, uid, map[string]any{"a": []any{1.0, nil}},
		[]int64{1, -2}, []string{"a", "", `q"\`}, []time.Time{at}, [][16]byte{uid}}
	marks := make([]string, len(want)+1)
	for i := range marks {
		marks[i] = fmt.Sprintf("$%d", i+1)
	}
	insert := "INSERT INTO v VALUES (" + strings.Join(marks, ", ") + ")"
	null := make([]any, len(want))
	for id, vals := range [][]any{want, null} {
		if _, err := c.Exec(ctx, insert, append([]any{id}, vals...)...); err != nil {
			t.Fatal(err)
		}
	}
	copied, err := c.CopyFrom(ctx, pgx.Identifier{"v"}, strings.Split("id b i2 i4 i8 f4 f8 n s vc ch by d t ts tz iv u j i8s ss tss us", " "),
		pgx.CopyFromRows([][]any{append([]any{2}, want...), append([]any{3}, null...)}))
	if err != nil || copied != 2 {
		t.Fatalf("copied %d: %v", copied, err)
	}
	for _, mode := range []pgx.QueryExecMode{pgx.QueryExecModeCacheStatement, pgx.QueryExecModeDescribeExec, pgx.QueryExecModeExec, pgx.QueryExecModeSimpleProtocol} {
		rows, err := c.Query(ctx, "SELECT * FROM v ORDER BY id", mode)
		if err != nil {
			t.Fatal(err)
		}
		all, err := pgx.CollectRows(rows, func(r pgx.CollectableRow) ([]any, error) { return r.Values() })
		if err != nil || len(all) != 4 {
			t.Fatalf("mode %v: %d rows, %v", mode, len(all), err)
		}
		for _, pair := range [][2]int{{0, 2}, {1, 3}} {
			if a, b := fmt.Sprint(all[pair[0]][1:]), fmt.Sprint(all[pair[1]][1:]); a != b {
				t.Errorf("mode %v: inserted %s, copied %s", mode, a, b)
			}
		}
		for i, w := range want {
			got := all[0][i+1]
			if b, ok := got.([16]byte); ok {
				got = b
			}
			if fmt.Sprint(got) != fmt.Sprint(w) && i < 18 {
				if tm, ok := got.(time.Time); ok && tm.Equal(w.(time.Time)) {
					continue
				}
				if n, ok := got.(pgtype.Numeric); ok && n.Int.Cmp(num.Int) == 0 && n.Exp == num.Exp {
					continue
				}
				t.Errorf("mode %v, column %d: %v (%T), want %v", mode, i+1, got, got, w)
			}
			if all[1][i+1] != nil {
				t.Errorf("mode %v, column %d: %v, want NULL", mode, i+1, all[1][i+1])
			}
		}
	}
	var i8s []int64
	var ss []string
	var tss []time.Time
	if err := c.QueryRow(ctx, "SELECT i8s, ss, tss FROM v WHERE u = $1 AND n = $2 AND tz = $3 AND ss = $4 AND id = 2", uid, num, at, want[19]).Scan(&i8s, &ss, &tss); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(i8s, []int64{1, -2}) || !slices.Equal(ss, want[19].([]string)) || !tss[0].Equal(at) {
		t.Errorf("arrays: %v %v %v", i8s, ss, tss)
	}
}

// conversation sends messages and notes what comes back until it is idle again
// as often as there are syncs and simple queries in them.
func conversation(t *testing.T, c *pgconn.PgConn, msgs ...pgproto3.FrontendMessage) []string {
	t.Helper()
	h, err := c.Hijack()
	if err != nil {
		t.Fatal(err)
	}
	idle := 0
	for _, m := range msgs {
		switch m.(type) {
		case *pgproto3.Sync, *pgproto3.Query:
			idle++
		}
		h.Frontend.Send(m)
	}
	if err := h.Frontend.Flush(); err != nil {
		t.Fatal(err)
	}
	_ = h.Conn.SetReadDeadline(time.Now().Add(20 * time.Second))
	var out []string
	for idle > 0 {
		m, err := h.Frontend.Receive()
		if err != nil {
			out = append(out, err.Error())
			break
		}
		switch m := m.(type) {
		case *pgproto3.ReadyForQuery:
			idle--
			out = append(out, "ready "+string(m.TxStatus))
		case *pgproto3.ErrorResponse:
			out = append(out, fmt.Sprintf("error %s %s %q position %d detail %q hint %q constraint %q table %q column %q", m.Severity, m.Code, m.Message, m.Position, m.Detail, m.Hint, m.ConstraintName, m.TableName, m.ColumnName))
		case *pgproto3.NoticeResponse:
			out = append(out, fmt.Sprintf("notice %s %s %q", m.Severity, m.Code, m.Message))
		case *pgproto3.RowDescription:
			line := "columns"
			for _, f := range m.Fields {
				line += fmt.Sprintf(" %s:%d:%d:%d", f.Name, f.DataTypeOID, f.TypeModifier, f.Format)
			}
			out = append(out, line)
		case *pgproto3.DataRow:
			line := "row"
			for _, v := range m.Values {
				line += fmt.Sprintf(" %q", v)
			}
			out = append(out, line)
		case *pgproto3.CommandComplete:
			out = append(out, "complete "+string(m.CommandTag))
		case *pgproto3.ParameterDescription:
			out = append(out, fmt.Sprint("parameters ", m.ParameterOIDs))
		case *pgproto3.CopyData:
			out = append(out, fmt.Sprintf("copy %q", m.Data))
		case *pgproto3.ParameterStatus:
			out = append(out, "status "+m.Name+"="+m.Value)
		default:
			out = append(out, strings.TrimPrefix(fmt.Sprintf("%T", m), "*pgproto3."))
		}
	}
	return out
}

// TestProtocol holds conversations with streamdb and with PostgreSQL, which
// must answer the same.
func TestProtocol(t *testing.T) {
	parse := func(name, q string, oids ...uint32) pgproto3.FrontendMessage {
		return &pgproto3.Parse{Name: name, Query: q, ParameterOIDs: oids}
	}
	bind := func(portal, stmt string, vals ...string) pgproto3.FrontendMessage {
		b := &pgproto3.Bind{DestinationPortal: portal, PreparedStatement: stmt}
		for _, v := range vals {
			b.Parameters = append(b.Parameters, []byte(v))
		}
		return b
	}
	exec := func(portal string, rows uint32) pgproto3.FrontendMessage {
		return &pgproto3.Execute{Portal: portal, MaxRows: rows}
	}
	describe := func(kind byte, name string) pgproto3.FrontendMessage {
		return &pgproto3.Describe{ObjectType: kind, Name: name}
	}
	closes := func(kind byte, name string) pgproto3.FrontendMessage {
		return &pgproto3.Close{ObjectType: kind, Name: name}
	}
	query := func(q string) pgproto3.FrontendMessage { return &pgproto3.Query{String: q} }
	sync, flush := &pgproto3.Sync{}, &pgproto3.Flush{}
	setup := "CREATE TABLE t (id int PRIMARY KEY, v text NOT NULL, n numeric(8,2) CHECK (n > 0)); INSERT INTO t SELECT i, 'v' || i, i FROM generate_series(1, 10) i"
	many := "SELECT id, v FROM t ORDER BY id"
	for _, x := range []struct {
		name string
		msgs []pgproto3.FrontendMessage
	}{
		{"several statements in one", []pgproto3.FrontendMessage{query("SELECT 1 AS a; SELECT 'x'; UPDATE t SET v = v WHERE id < 3; ; SELECT count(*) FROM t;")}},
		{"an error ends them and undoes them", []pgproto3.FrontendMessage{query("INSERT INTO t VALUES (50, 'x', 1); SELECT 1/(id-id) FROM t; SELECT 2"), query("SELECT count(*) FROM t WHERE id = 50")}},
		{"a block within them", []pgproto3.FrontendMessage{query("INSERT INTO t VALUES (60, 'x', 1); BEGIN; INSERT INTO t VALUES (61, 'x', 1); COMMIT; SELECT nope"), query("SELECT id FROM t WHERE id >= 60 ORDER BY id")}},
		{"a block left open", []pgproto3.FrontendMessage{query("BEGIN; INSERT INTO t VALUES (70, 'x', 1)"), query("SELECT nope"), query("SELECT 1"), query("ROLLBACK"), query("SELECT count(*) FROM t WHERE id = 70")}},
		{"empty", []pgproto3.FrontendMessage{query(""), query(" ; ; "), query("-- only a comment"), parse("", ""), describe('S', ""), bind("", ""), describe('P', ""), exec("", 0), sync}},
		{"named statement and portals with row limits", []pgproto3.FrontendMessage{query("BEGIN"), parse("s", many), describe('S', "s"), bind("p", "s"), describe('P', "p"), exec("p", 3), exec("p", 3), sync,
			bind("q", "s"), exec("q", 1), exec("p", 3), exec("p", 3), exec("p", 3), exec("q", 0), exec("q", 0), sync, closes('P', "p"), exec("p", 1), sync, query("COMMIT"), bind("p", "s"), exec("p", 2), sync, exec("p", 2), sync}},
		{"portals end with their transaction", []pgproto3.FrontendMessage{parse("", many), bind("p", ""), exec("p", 2), sync, exec("p", 2), sync}},
		{"parameters", []pgproto3.FrontendMessage{parse("s", "SELECT $1 + 1 AS a, $2::text, $3 FROM t WHERE id = $4 AND v = $5 LIMIT $6"), describe('S', "s"), sync, bind("", "s", "1", "x", "y", "2", "v2", "1"), describe('P', ""), exec("", 0), sync,
			bind("", "s", "1"), sync, bind("", "s", "1", "x", "y", "zz", "v2", "1"), exec("", 0), sync, parse("bad", "SELECT $1"), describe('S', "bad"), sync, parse("", "SELECT $2::int"), sync}},
		{"declared parameters", []pgproto3.FrontendMessage{parse("s", "SELECT $1, $2", 20, 1043), describe('S', "s"), sync, bind("", "s", "5", "x"), exec("", 0), sync, parse("s2", "SELECT $1 + $2", 0, 21), describe('S', "s2"), sync}},
		{"the name is taken, or not there", []pgproto3.FrontendMessage{parse("s", "SELECT 1"), parse("s", "SELECT 2"), sync, bind("", "none"), sync, exec("none", 0), sync, describe('S', "none"), sync, describe('P', "none"), sync, closes('S', "none"), closes('P', "none"), sync}},
		{"after an error all is skipped until Sync", []pgproto3.FrontendMessage{parse("", "SELECT 1/(id-id) FROM t"), bind("", ""), exec("", 0), parse("", "SELECT 1"), bind("", ""), exec("", 0), sync, parse("", "SELECT 2"), bind("", ""), exec("", 0), sync}},
		{"a pipeline is one transaction", []pgproto3.FrontendMessage{parse("", "INSERT INTO t VALUES (80, 'x', 1)"), bind("", ""), exec("", 0), parse("", "INSERT INTO t VALUES (80, 'x', 1)"), bind("", ""), exec("", 0), sync, query("SELECT count(*) FROM t WHERE id = 80")}},
		{"an error in a block", []pgproto3.FrontendMessage{query("BEGIN"), parse("", "SELECT 1/(id-id) FROM t"), bind("", ""), exec("", 0), sync, parse("", "SELECT 1"), sync, parse("", "ROLLBACK"), bind("", ""), exec("", 0), sync}},
		{"error fields", []pgproto3.FrontendMessage{query("INSERT INTO t VALUES (1, 'x', 1)"), query("INSERT INTO t VALUES (90, NULL, 1)"), query("INSERT INTO t VALUES (91, 'x', -1)"), query("SELECT * FROM t WHERE nope = 1"),
			query("SELECT  'é', x"), query("SELECT 1 FROM t GROUP BY"), query("SELECT 'a'::int"), query("SELECT lower(1)"), query("DROP TABLE nope"), query("SELECT to_date('x', 'YYYY')"), query("CREATE VIEW w AS SELECT * FROM t; DROP TABLE t")}},
		{"several statements in a Parse", []pgproto3.FrontendMessage{parse("", "SELECT 1; SELECT 2"), sync}},
		{"statements without rows", []pgproto3.FrontendMessage{parse("", "UPDATE t SET v = 'y' WHERE id = $1"), describe('S', ""), bind("", "", "3"), describe('P', ""), exec("", 0), sync, parse("", "DELETE FROM t WHERE id > $1 RETURNING id, n"), describe('S', ""), bind("", "", "9"), exec("", 0), sync}},
		{"row limits on statements that write", []pgproto3.FrontendMessage{parse("", "UPDATE t SET v = 'z' WHERE id < 6 RETURNING v"), bind("", ""), exec("", 2), exec("", 2), exec("", 2), sync, query("SELECT count(*) FROM t WHERE v = 'z'")}},
		{"COPY", []pgproto3.FrontendMessage{query("COPY (SELECT id, v, NULL FROM t ORDER BY id LIMIT 2) TO STDOUT"), query("COPY t (id, v) FROM STDIN"), &pgproto3.CopyData{Data: []byte("100\ta\n101\tb")}, &pgproto3.CopyData{Data: []byte("b\n")}, &pgproto3.CopyDone{},
			query("SELECT v FROM t WHERE id >= 100 ORDER BY id"), query("COPY t (id, v) FROM STDIN"), &pgproto3.CopyData{Data: []byte("102\ta\n")}, &pgproto3.CopyFail{Message: "changed my mind"}, query("SELECT count(*) FROM t WHERE id = 102"),
			query("COPY t (id) FROM STDIN; SELECT 1"), &pgproto3.CopyData{Data: []byte("x\n")}, &pgproto3.CopyDone{}, query("COPY nope TO STDOUT")}},
		{"COPY, extended", []pgproto3.FrontendMessage{parse("", "COPY t (id, v) FROM STDIN"), describe('S', ""), bind("", ""), exec("", 0), &pgproto3.CopyData{Data: []byte("200\tx\n")}, &pgproto3.CopyDone{}, sync, parse("", "COPY (SELECT 1) TO STDOUT"), bind("", ""), exec("", 0), sync}},
		{"copy messages out of place", []pgproto3.FrontendMessage{&pgproto3.CopyData{Data: []byte("x")}, &pgproto3.CopyDone{}, &pgproto3.CopyFail{}, query("SELECT 1")}},
		{"settings are reported", []pgproto3.FrontendMessage{query("SET application_name = 'me'"), query("SET timezone = 'Asia/Tokyo'; SELECT timestamptz '2024-01-01 00:00Z'"), query("RESET timezone"), query("SET client_encoding = 'LATIN9x'"), query("BEGIN; SET LOCAL DateStyle = 'ISO, DMY'; COMMIT")}},
		{"cursors", []pgproto3.FrontendMessage{query("DECLARE c CURSOR FOR SELECT 1"), query("BEGIN"), query("DECLARE c CURSOR FOR SELECT id FROM t ORDER BY id; FETCH 2 FROM c; FETCH FORWARD 1 FROM c; MOVE 3 FROM c; FETCH ALL FROM c; CLOSE c"), parse("", "FETCH 1 FROM c"), sync, query("ROLLBACK"),
			query("DECLARE h CURSOR WITH HOLD FOR SELECT id FROM t ORDER BY id LIMIT 3"), query("FETCH 2 FROM h"), query("CLOSE h")}},
		{"flush", []pgproto3.FrontendMessage{parse("", "SELECT 1"), flush, bind("", ""), flush, exec("", 0), flush, sync}},
	} {
		t.Run(x.name, func(t *testing.T) {
			pg := emptyPostgres(t)
			if pg == "" {
				need(t, "STREAMDB_TEST_PG_DSN")
			}
			var got [2][]string
			for i, dsn := range []string{pg, serve(t, t.TempDir()).dsn()} {
				c, err := pgconn.Connect(context.Background(), dsn)
				if err != nil {
					t.Fatal(err)
				}
				if _, err := c.Exec(context.Background(), setup).ReadAll(); err != nil {
					t.Fatal(err)
				}
				got[i] = conversation(t, c, x.msgs...)
			}
			if pg, us := strings.Join(got[0], "\n"), strings.Join(got[1], "\n"); pg != us {
				t.Errorf("PostgreSQL (-) and streamdb (+):\n%s", lineDiff(pg, us))
			}
		})
	}
}

package pgcatalog

import (
	"hash/fnv"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/streamdb/streamdb/columnar"
	"github.com/streamdb/streamdb/sql/types"
)

func init() {
	live := func(f func(m *model, e Env, f *filler)) definition { return definition{compute: f, live: true} }
	define(map[string]definition{
		"pg_database":            personal(databases),
		"pg_authid":              live(authids),
		"pg_roles":               live(roles),
		"pg_user":                live(users),
		"pg_shadow":              live(users),
		"pg_tablespace":          {compute: tablespaces},
		"pg_settings":            live(settings),
		"pg_stat_activity":       live(activity),
		"pg_stat_ssl":            live(sessionSSL),
		"pg_stat_gssapi":         live(sessionGSS),
		"pg_stat_database":       live(databaseStats),
		"pg_prepared_statements": live(preparedStatements),
		"pg_cursors":             live(cursors),
	})
}

// databaseOIDs are those of the names that the one database goes by.
var databaseOIDs = [...]uint32{databaseOID, 5}

// databaseByName is the OID of a database, false if there is none.
func databaseByName(e Env, name string) (uint32, bool) {
	i := slices.Index(e.Databases(), name)
	if i < 0 {
		return 0, false
	}
	return databaseOIDs[i], true
}

func databases(_ *model, e Env, f *filler) {
	var rows []row
	for i, name := range e.Databases() {
		rows = append(rows, row{"oid": databaseOIDs[i], "datname": name, "datdba": uint32(roleOID), "encoding": encodingUTF8, "datlocprovider": byte('c'),
			"datallowconn": true, "datconnlimit": -1, "dattablespace": uint32(tablespaceOID), "datcollate": "C", "datctype": "C"})
	}
	f.rows(rows...)
}

// userRole is someone who may connect: any of them may do everything.
type userRole struct {
	oid  uint32
	name string
}

// userRoles are those who may connect. The session's has the OID of whose everything is;
// those of the others are made of their names.
func userRoles(e Env) []userRole {
	out := []userRole{{roleOID, e.User()}}
	names := slices.Clone(e.Users())
	slices.Sort(names)
	taken := map[uint32]bool{}
	for _, name := range slices.Compact(names) {
		if name == e.User() {
			continue
		}
		h := fnv.New32a()
		h.Write([]byte(name))
		oid := implied(h.Sum32(), impliedRole)
		for taken[oid] {
			oid = implied(oid+1, impliedRole)
		}
		taken[oid] = true
		out = append(out, userRole{oid, name})
	}
	return out
}

// roleRows are the roles: those who may connect, and those that PostgreSQL predefines,
// which tools ask for by name.
func roleRows(e Env) []row {
	var out []row
	for _, u := range userRoles(e) {
		out = append(out, row{"oid": u.oid, "rolname": u.name, "rolsuper": true, "rolinherit": true, "rolcreaterole": true, "rolcreatedb": true,
			"rolcanlogin": true, "rolreplication": true, "rolbypassrls": true, "rolconnlimit": -1})
	}
	for oid, name := range predefinedRoles() {
		out = append(out, row{"oid": oid, "rolname": name, "rolsuper": false, "rolinherit": true, "rolcreaterole": false, "rolcreatedb": false,
			"rolcanlogin": false, "rolreplication": false, "rolbypassrls": false, "rolconnlimit": -1})
	}
	slices.SortFunc(out, func(a, b row) int { return int(a["oid"].(uint32)) - int(b["oid"].(uint32)) })
	return out
}

// predefinedRoles are the names of PostgreSQL's own roles by OID.
var predefinedRoles = sync.OnceValue(func() map[uint32]string {
	m := map[uint32]string{}
	t := readRows("pg_authid")
	for i := range t.rows {
		m[uint32(number(t.get(i, "oid")))] = t.get(i, "rolname")
	}
	return m
})

// roleName is the name of a role, false if there is none.
func roleName(e Env, oid uint32) (string, bool) {
	if oid == roleOID {
		return e.User(), true
	}
	for _, u := range userRoles(e) {
		if u.oid == oid {
			return u.name, true
		}
	}
	s, ok := predefinedRoles()[oid]
	return s, ok
}

// roleByName is the OID of a role, false if there is none.
func roleByName(e Env, name string) (uint32, bool) {
	if name == e.User() {
		return roleOID, true
	}
	for _, u := range userRoles(e) {
		if u.name == name {
			return u.oid, true
		}
	}
	for oid, s := range predefinedRoles() {
		if s == name {
			return oid, true
		}
	}
	return 0, false
}

func authids(_ *model, e Env, f *filler) { f.rows(roleRows(e)...) }

func roles(_ *model, e Env, f *filler) {
	rs := roleRows(e)
	for _, r := range rs {
		r["rolpassword"] = "********"
	}
	f.rows(rs...)
}

func users(_ *model, e Env, f *filler) {
	var rows []row
	for _, u := range userRoles(e) {
		r := row{"usename": u.name, "usesysid": u.oid, "usecreatedb": true, "usesuper": true, "userepl": true, "usebypassrls": true}
		if f.rel.name == "pg_user" {
			r["passwd"] = "********"
		}
		rows = append(rows, r)
	}
	f.rows(rows...)
}

func tablespaces(_ *model, _ Env, f *filler) {
	f.rows(row{"oid": uint32(tablespaceOID), "spcname": "pg_default", "spcowner": uint32(roleOID)},
		row{"oid": uint32(1664), "spcname": "pg_global", "spcowner": uint32(roleOID)})
}

// settingFact is what PostgreSQL says of a setting.
type settingFact struct {
	unit, category, context, kind, low, high, enum string // "" for NULL
}

var settingFacts = sync.OnceValue(func() map[string]settingFact {
	m := map[string]settingFact{}
	t := readRows("pg_settings")
	for i := range t.rows {
		get := func(col string) string {
			if s := t.get(i, col); s != factNull {
				return copyEscapes.Replace(s)
			}
			return ""
		}
		m[strings.ToLower(get("name"))] = settingFact{unit: get("unit"), category: get("category"), context: get("context"), kind: get("vartype"),
			low: get("min_val"), high: get("max_val"), enum: get("enumvals")}
	}
	return m
})

// settingFactOf describes a setting, also one that PostgreSQL does not have.
func settingFactOf(s Setting) settingFact {
	if x, ok := settingFacts()[strings.ToLower(s.Name)]; ok {
		return x
	}
	x := settingFact{category: "Customized Options", context: "user", kind: "string"}
	switch _, err := strconv.Atoi(s.Value); {
	case err == nil:
		x.kind = "integer"
	case s.Value == "on" || s.Value == "off":
		x.kind = "bool"
	}
	return x
}

// inUnit is a setting's value as a number of its unit: 4MB is 4096 of kB.
func inUnit(v, unit string) string {
	i := strings.IndexFunc(v, func(r rune) bool { return r < '0' || r > '9' })
	if i <= 0 || unit == "" {
		return v
	}
	sizes := map[string]int64{"B": 1, "kB": 1 << 10, "8kB": 1 << 13, "MB": 1 << 20, "GB": 1 << 30, "TB": 1 << 40,
		"ms": 1, "s": 1000, "min": 60_000, "h": 3_600_000, "d": 86_400_000}
	n, err := strconv.ParseInt(v[:i], 10, 64)
	from, to := sizes[strings.TrimSpace(v[i:])], sizes[unit]
	if err != nil || from == 0 || to == 0 {
		return v
	}
	return strconv.FormatInt(n*from/to, 10)
}

func settings(_ *model, e Env, f *filler) {
	ss := slices.Clone(e.Settings())
	slices.SortFunc(ss, func(a, b Setting) int { return strings.Compare(strings.ToLower(a.Name), strings.ToLower(b.Name)) })
	facts := make([]settingFact, len(ss))
	for i, s := range ss {
		facts[i] = settingFactOf(s)
	}
	f.n = len(ss)
	f.text("name", func(i int) string { return ss[i].Name })
	f.text("setting", func(i int) string { return inUnit(ss[i].Value, facts[i].unit) })
	f.some("unit", func(i int) string { return facts[i].unit })
	f.text("category", func(i int) string { return facts[i].category })
	f.text("short_desc", func(i int) string { return ss[i].Description })
	f.text("context", func(i int) string { return facts[i].context })
	f.text("vartype", func(i int) string { return facts[i].kind })
	f.text("source", func(i int) string {
		if ss[i].Value == ss[i].Default || facts[i].context == "internal" {
			return "default"
		}
		return "session"
	})
	f.some("min_val", func(i int) string { return facts[i].low })
	f.some("max_val", func(i int) string { return facts[i].high })
	f.each("enumvals", func(i int, b *columnar.Builder) {
		if facts[i].enum == "" || types.ParseText(b, types.Of(types.OIDTextArray), facts[i].enum, nil) != nil {
			b.Null()
		}
	})
	f.text("boot_val", func(i int) string { return inUnit(ss[i].Default, facts[i].unit) })
	f.same("reset_val", "boot_val")
	f.all(false, "pending_restart")
}

func activity(_ *model, e Env, f *filler) {
	ss := e.Sessions()
	slices.SortFunc(ss, func(a, b Session) int { return int(int64(a.PID) - int64(b.PID)) })
	f.n = len(ss)
	addr := func(i int) (host string, port int) {
		host, p, err := net.SplitHostPort(ss[i].RemoteAddr)
		if err != nil || net.ParseIP(host) == nil {
			return "", -1
		}
		port, err = strconv.Atoi(p)
		if err != nil {
			return host, -1
		}
		return host, port
	}
	f.all(uint32(databaseOID), "datid")
	f.all(e.Database(), "datname")
	f.int("pid", func(i int) int64 { return int64(ss[i].PID) })
	ids := map[string]uint32{}
	for _, u := range userRoles(e) {
		ids[u.name] = u.oid
	}
	f.oid("usesysid", func(i int) uint32 { return ids[ss[i].User] })
	f.text("usename", func(i int) string { return ss[i].User })
	f.text("application_name", func(i int) string { return ss[i].Application })
	f.each("client_addr", func(i int, b *columnar.Builder) {
		host, _ := addr(i)
		if host == "" || types.ParseText(b, f.rel.columns[f.rel.index["client_addr"]].Type, host, nil) != nil {
			b.Null()
		}
	})
	f.int("client_port", func(i int) int64 { _, p := addr(i); return int64(p) })
	f.time("backend_start", func(i int) time.Time { return ss[i].Started })
	f.time("query_start", func(i int) time.Time { return ss[i].QueryStarted })
	f.same("state_change", "query_start")
	f.each("xact_start", func(i int, b *columnar.Builder) {
		if ss[i].State == "idle" {
			b.Null()
		} else {
			appendTime(b, ss[i].QueryStarted)
		}
	})
	f.some("state", func(i int) string { return ss[i].State })
	f.text("query", func(i int) string { return ss[i].Query })
	f.all("client backend", "backend_type")
}

func sessionSSL(_ *model, e Env, f *filler) {
	ss := e.Sessions()
	f.n = len(ss)
	f.int("pid", func(i int) int64 { return int64(ss[i].PID) })
	f.bool("ssl", func(i int) bool { return ss[i].TLS })
}

func sessionGSS(_ *model, e Env, f *filler) {
	ss := e.Sessions()
	f.n = len(ss)
	f.int("pid", func(i int) int64 { return int64(ss[i].PID) })
	f.all(false, "gss_authenticated", "encrypted")
}

func databaseStats(_ *model, e Env, f *filler) {
	f.n = 1
	f.all(uint32(databaseOID), "datid")
	f.all(e.Database(), "datname")
	f.all(len(e.Sessions()), "numbackends")
	for _, c := range f.rel.columns[3:] {
		if c.Name != "checksum_failures" && c.Type != types.TimestampTZ {
			f.all(0, c.Name)
		}
	}
	f.all(e.Started(), "stats_reset")
}

func preparedStatements(_ *model, e Env, f *filler) {
	ps := e.Prepared()
	slices.SortFunc(ps, func(a, b Prepared) int { return strings.Compare(a.Name, b.Name) })
	f.n = len(ps)
	f.text("name", func(i int) string { return ps[i].Name })
	f.text("statement", func(i int) string { return ps[i].SQL })
	f.extend("parameter_types", func(i int, dst []byte) []byte { return regtypeArray(dst, ps[i].Params) })
	f.bool("from_sql", func(i int) bool { return ps[i].FromSQL })
	f.all(0, "generic_plans", "custom_plans")
}

func cursors(_ *model, e Env, f *filler) {
	cs := e.Cursors()
	slices.SortFunc(cs, func(a, b Cursor) int { return strings.Compare(a.Name, b.Name) })
	f.n = len(cs)
	f.text("name", func(i int) string { return cs[i].Name })
	f.text("statement", func(i int) string { return cs[i].SQL })
	f.bool("is_holdable", func(i int) bool { return cs[i].Hold })
	f.all(false, "is_binary")
	f.bool("is_scrollable", func(i int) bool { return cs[i].Scroll })
}

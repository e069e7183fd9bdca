package pgcatalog

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/streamdb/streamdb/catalog"
	"github.com/streamdb/streamdb/columnar"
	"github.com/streamdb/streamdb/sql/pgerror"
	"github.com/streamdb/streamdb/sql/planner/plan"
	"github.com/streamdb/streamdb/sql/types"
)

// testEnv is a session without a server.
type testEnv struct {
	snap *catalog.Snapshot
	path []string
	user string
}

func (e *testEnv) Snapshot() *catalog.Snapshot { return e.snap }
func (e *testEnv) Database() string            { return "shop" }
func (e *testEnv) Databases() []string         { return []string{"shop", "streamdb"} }
func (e *testEnv) Users() []string             { return []string{"app", "reader"} }
func (e *testEnv) User() string                { return e.user }
func (e *testEnv) SearchPath() []string        { return e.path }
func (e *testEnv) Settings() []Setting {
	return []Setting{{"work_mem", "4MB", "64kB", "memory"}, {"own.thing", "on", "on", "mine"}}
}
func (e *testEnv) Rows(id plan.ObjectID) float64           { return float64(id) * 10 }
func (e *testEnv) LastValue(*catalog.Object) (int64, bool) { return 0, false }
func (e *testEnv) Updatable(*catalog.Object) []bool        { return nil }
func (e *testEnv) ColumnUses(*catalog.Object) []ColumnUse  { return nil }
func (e *testEnv) Started() time.Time                      { return pgEpoch }
func (e *testEnv) Now() time.Time                          { return pgEpoch.Add(time.Hour) }
func (e *testEnv) Sessions() []Session {
	return []Session{{PID: 7, User: "app", Application: "x", RemoteAddr: "10.0.0.1:99", Started: pgEpoch, QueryStarted: pgEpoch, State: "active", Query: "q"}}
}
func (e *testEnv) Prepared() []Prepared {
	return []Prepared{{Name: "p", SQL: "SELECT $1", Params: []types.Type{types.Int4, types.Text}}}
}
func (e *testEnv) Cursors() []Cursor { return []Cursor{{Name: "c", SQL: "SELECT 1", Hold: true}} }

// baseSnapshot is a catalog with the system relations alone.
func baseSnapshot() *catalog.Snapshot {
	var changes []catalog.Change
	for _, t := range Tables() {
		changes = append(changes, catalog.Change{Put: &catalog.Object{ID: 1<<48 + plan.ObjectID(t.OID), OID: t.OID, Schema: t.Schema, Name: t.Name,
			Kind: catalog.KindVirtual, Columns: t.Columns}})
	}
	return catalog.Empty().Apply(changes...)
}

// shop is a small catalog with each kind of object.
func shop() *testEnv {
	col := func(name string, t types.Type) catalog.Column { return catalog.Column{Name: name, Type: t} }
	orders := &catalog.Object{
		ID: 1, OID: 16385, Schema: "public", Name: "orders", Kind: catalog.KindTable, Comment: "One row per order",
		Columns: []catalog.Column{
			{Name: "id", Type: types.Int8, NotNull: true},
			{Name: "Who", Type: types.Type{OID: types.OIDVarchar, Mod: 24}, Default: "'x'::text"},
			{Name: "amount", Type: types.Type{OID: types.OIDNumeric, Mod: 10<<16 | 2 + 4}, Comment: "In euros"},
			{Name: "secret", Type: types.Text, Hidden: true},
			col("tags", types.Text.ArrayType()),
			col("span", types.Type{OID: types.OIDInterval, Mod: 3080<<16 | 0xffff}),
		},
		PrimaryKey: []int{0}, Primary: &catalog.Key{Name: "orders_pkey", Columns: []int{0}},
		Unique: []catalog.Key{{Name: "orders_Who_amount_key", Columns: []int{1, 2}, Object: 9}, {Name: "orders_who", Columns: []int{1}, Object: 6, Index: true}},
		Checks: []catalog.Check{{Name: "orders_amount_check", Expr: "amount > 0 AND 'tags' <> 'x'"}},
	}
	source := &catalog.Object{ID: 2, OID: 16386, Schema: "sales", Name: "events", Kind: catalog.KindSource, Columns: []catalog.Column{col("time", types.TimestampTZ)}}
	sub := &catalog.Object{ID: 3, OID: 16387, Schema: "sales", Name: "part", Kind: catalog.KindSource, Parent: 2, Columns: []catalog.Column{col("a", types.Int4)}}
	view := &catalog.Object{ID: 4, OID: 16388, Schema: "public", Name: "open_orders", Kind: catalog.KindView, Columns: []catalog.Column{col("id", types.Int8)},
		Query: "SELECT id FROM public.orders", Deps: []plan.ObjectID{1}}
	mv := &catalog.Object{ID: 5, OID: 16389, Schema: "public", Name: "totals", Kind: catalog.KindMaterializedView, Columns: []catalog.Column{{Name: "n", Type: types.Int8, NotNull: true}},
		Query: "SELECT count(*) AS n FROM public.orders", Deps: []plan.ObjectID{1}}
	index := &catalog.Object{ID: 6, OID: 16390, Schema: "public", Name: "orders_who", Kind: catalog.KindIndex, Table: 1, Key: []int{1}, Deps: []plan.ObjectID{1},
		SQL: `CREATE UNIQUE INDEX orders_who ON public.orders USING btree ("Who")`, Columns: orders.Columns, Index: &catalog.IndexInfo{Unique: true}}
	key := &catalog.Object{ID: 9, OID: 16393, Schema: "public", Name: "orders_Who_amount_key", Kind: catalog.KindIndex, Table: 1, Key: []int{1, 2}, Deps: []plan.ObjectID{1},
		Columns: orders.Columns, Index: &catalog.IndexInfo{Unique: true, Constraint: true}}
	secret := &catalog.Object{ID: 7, OID: 16391, Schema: "public", Name: "pw", Kind: catalog.KindSecret}
	hidden := &catalog.Object{ID: 8, OID: 16392, Schema: "sales", Name: "orders", Kind: catalog.KindTable, Columns: []catalog.Column{col("x", types.Int4)}}
	s := baseSnapshot().Apply(catalog.Change{PutSchema: &catalog.Schema{Name: "sales", OID: 16400}})
	for _, o := range []*catalog.Object{orders, source, sub, view, mv, index, key, secret, hidden} {
		s = s.Apply(catalog.Change{Put: o})
	}
	return &testEnv{snap: s, path: []string{"pg_catalog", "public"}, user: "app"}
}

func table(t *testing.T, name string) *relation {
	t.Helper()
	schema, short, ok := strings.Cut(name, ".")
	if !ok {
		schema, short = catalog.SchemaPgCatalog, name
	}
	for _, r := range relations() {
		if r.schema == schema && r.name == short {
			return r
		}
	}
	t.Fatalf("no relation %s", name)
	return nil
}

// query shows columns of the rows of a relation for which where holds; where is
// a column and its value.
func query(t *testing.T, e *testEnv, name, cols, where, value string) []string {
	t.Helper()
	r := table(t, name)
	b := modelOf(e).read(r, e)
	cell := func(c string, row int) string {
		i, ok := r.index[c]
		if !ok {
			t.Fatalf("%s has no column %s", name, c)
		}
		if b.Cols[i].Null(row) {
			return "NULL"
		}
		return string(types.AppendText(nil, r.columns[i].Type, b.Cols[i], row, &types.Options{Names: NewReader(e)}))
	}
	var out []string
	for row := range b.N {
		if where != "" && cell(where, row) != value {
			continue
		}
		var parts []string
		for _, c := range strings.Fields(cols) {
			parts = append(parts, cell(c, row))
		}
		out = append(out, strings.Join(parts, "|"))
	}
	return out
}

// TestShape reads every relation: the content must fit the definition.
func TestShape(t *testing.T) {
	e := shop()
	for _, tab := range Tables() {
		b, err := tab.Rows(e)
		if err != nil {
			t.Fatalf("%s: %v", tab.Name, err)
		}
		if len(b.Cols) != len(tab.Columns) {
			t.Fatalf("%s: %d columns instead of %d", tab.Name, len(b.Cols), len(tab.Columns))
		}
		for i, v := range b.Cols {
			c := tab.Columns[i]
			if v == nil || v.Len() != b.N || v.Kind() != c.Type.Kind() {
				t.Fatalf("%s.%s.%s: not %d values of %s", tab.Schema, tab.Name, c.Name, b.N, c.Type)
			}
			for row := range b.N {
				if v.Null(row) {
					if c.NotNull {
						t.Fatalf("%s.%s: row %d is NULL", tab.Name, c.Name, row)
					}
					continue
				}
				if c.Type == types.Char && len(v.Bytes(row)) != 1 {
					t.Fatalf("%s.%s: row %d is no character: %q", tab.Name, c.Name, row, v.Bytes(row))
				}
				types.AppendText(nil, c.Type, v, row, nil)
				types.AppendBinary(nil, c.Type, v, row)
			}
		}
	}
}

// TestDefined holds that every definition is of a relation that exists.
func TestDefined(t *testing.T) {
	for name := range definitions {
		if strings.HasPrefix(name, ".") {
			name = "information_schema" + name
		}
		if strings.HasPrefix(name, "pg_stat") && (strings.Contains(name, "_xact_") && strings.HasSuffix(name, "_indexes")) {
			continue
		}
		table(t, name)
	}
}

func TestRelations(t *testing.T) {
	e := shop()
	for _, c := range []struct {
		rel, cols, where, value string
		want                    []string
	}{
		{"pg_class", "oid relkind relnatts relchecks relhasindex relhasrules reltuples relam reltype", "relname", "orders", []string{
			"16385|r|6|1|t|f|10|2|536903682", "16392|r|1|0|f|f|80|2|536903696"}},
		{"pg_class", "relname relkind relam reltype reltuples", "relkind", "i", []string{
			"orders_who|i|403|0|10", `orders_Who_amount_key|i|403|0|10`, "orders_pkey|i|403|0|10"}},
		{"pg_class", "relname relkind relhasrules reltuples", "relnamespace", "2200", []string{
			"orders|r|f|10", "open_orders|v|t|0", "totals|m|t|50", "orders_who|i|f|10", "orders_Who_amount_key|i|f|10", "orders_pkey|i|f|10"}},
		{"pg_class", "relname relkind relnamespace reltype", "oid", "1259", []string{"pg_class|r|11|83"}},
		{"pg_attribute", "attname atttypid atttypmod attnum attnotnull atthasdef attndims attlen attcollation", "attrelid", "16385", []string{
			"id|20|-1|1|t|f|0|8|0", "Who|1043|24|2|f|t|0|-1|100", "amount|1700|655366|3|f|f|0|-1|0", "tags|1009|-1|5|f|f|1|-1|100", "span|1186|201916415|6|f|f|0|16|0",
			"xmin|28|-1|-2|t|f|0|4|0", "cmin|29|-1|-3|t|f|0|4|0", "xmax|28|-1|-4|t|f|0|4|0", "cmax|29|-1|-5|t|f|0|4|0", "tableoid|26|-1|-6|t|f|0|4|0"}},
		{"pg_attribute", "attname attnum", "attrelid", "16390", []string{"Who|1"}},
		{"pg_attribute", "attname atttypid attnotnull", "attrelid", "2604", []string{"oid|26|t", "adrelid|26|t", "adnum|21|t", "adbin|194|t", "xmin|28|t", "cmin|29|t", "xmax|28|t", "cmax|29|t", "tableoid|26|t"}},
		{"pg_attrdef", "adrelid adnum adbin", "", "", []string{"16385|2|'x'::text"}},
		{"pg_index", "indexrelid indnatts indisunique indisprimary indkey indclass indoption indcollation", "indrelid", "16385", []string{
			"16390|1|t|f|2|3126|0|100", "16393|2|t|f|2 3|3126 3125|0 0|100 0", "67125249|1|t|t|1|3124|0|0"}},
		{"pg_constraint", "oid conname contype conkey conindid connoinherit conbin", "conrelid", "16385", []string{
			"536887305|orders_Who_amount_key|u|{2,3}|16393|t|NULL", "603996161|orders_pkey|p|{1}|67125249|t|NULL",
			"1174421505|orders_amount_check|c|{3}|0|f|(amount > 0 AND 'tags' <> 'x')"}},
		{"pg_description", "objoid objsubid description", "classoid", "1259", []string{"16385|0|One row per order", "16385|3|In euros"}},
		{"pg_type", "oid typtype typrelid typarray typinput", "typname", "orders", []string{"536903682|c|16385|536903683|record_in", "536903696|c|16392|536903697|record_in"}},
		{"pg_type", "oid typelem typsubscript typanalyze", "typname", "_totals", []string{"536903691|536903690|array_subscript_handler|array_typanalyze"}},
		{"pg_type", "oid typlen typbyval typelem typarray typinput typcollation typcategory", "typname", "name", []string{"19|64|f|18|1003|namein|950|S"}},
		{"pg_namespace", "nspname", "oid", "16400", []string{"sales"}},
		{"pg_database", "datname encoding datcollate", "", "", []string{"shop|6|C", "streamdb|6|C"}},
		{"pg_roles", "rolname rolsuper oid", "rolcanlogin", "t", []string{"app|t|10", "reader|t|49537494"}},
		{"pg_roles", "oid rolcanlogin", "rolname", "pg_monitor", []string{"3373|f"}},
		{"pg_depend", "objid refobjid refobjsubid deptype", "classid", "2618", []string{
			"50348036|16388|0|i", "50348036|16388|0|n", "50348036|16385|0|n", "50348037|16389|0|i", "50348037|16389|0|n", "50348037|16385|0|n"}},
		{"pg_depend", "classid refobjid deptype", "objid", "16387", []string{"1259|16400|n", "1259|16386|a"}},
		{"pg_rewrite", "oid ev_class", "", "", []string{"50348036|16388", "50348037|16389"}},
		{"pg_tables", "tablename tableowner hasindexes", "schemaname", "sales", []string{"events|app|f", "part|app|f", "orders|app|f"}},
		{"pg_views", "viewname definition", "schemaname", "public", []string{"open_orders| SELECT id FROM public.orders;"}},
		{"pg_matviews", "matviewname ispopulated definition", "", "", []string{"totals|t| SELECT count(*) AS n FROM public.orders;"}},
		{"pg_indexes", "indexdef", "indexname", "orders_Who_amount_key", []string{`CREATE UNIQUE INDEX "orders_Who_amount_key" ON public.orders USING btree ("Who", amount)`}},
		{"pg_settings", "name setting unit vartype context source boot_val", "", "", []string{"own.thing|on|NULL|bool|user|default|on", "work_mem|4096|kB|integer|user|session|64"}},
		{"pg_stat_activity", "pid usename client_port state", "", "", []string{"7|app|99|active"}},
		{"pg_prepared_statements", "name statement parameter_types from_sql", "", "", []string{"p|SELECT $1|{integer,text}|f"}},
		{"pg_cursors", "name is_holdable is_scrollable", "", "", []string{"c|t|f"}},
		{"pg_stat_user_tables", "relname n_live_tup", "schemaname", "public", []string{"orders|10", "totals|50"}},
		{"pg_am", "oid amname amhandler amtype", "", "", []string{"2|heap|heap_tableam_handler|t", "403|btree|bthandler|i"}},
		{"pg_opclass", "opcname opcfamily opcdefault", "oid", "3124", []string{"int8_ops|1976|t"}},
		{"pg_timezone_names", "abbrev utc_offset is_dst", "name", "Asia/Kolkata", []string{"IST|05:30:00|f"}},
	} {
		if got := query(t, e, c.rel, c.cols, c.where, c.value); !slices.Equal(got, c.want) {
			t.Errorf("%s %s=%s:\n got %q\nwant %q", c.rel, c.where, c.value, got, c.want)
		}
	}
}

func TestInformationSchema(t *testing.T) {
	e := shop()
	for _, c := range []struct {
		rel, cols, where, value string
		want                    []string
	}{
		{"tables", "table_catalog table_name table_type is_insertable_into", "table_schema", "public", []string{
			"shop|orders|BASE TABLE|YES", "shop|open_orders|VIEW|NO", "shop|totals|VIEW|NO"}},
		{"columns", "column_name ordinal_position column_default is_nullable data_type character_maximum_length character_octet_length numeric_precision numeric_scale interval_type udt_name is_updatable", "table_name", "orders", []string{
			"id|1|NULL|NO|bigint|NULL|NULL|64|0|NULL|int8|YES", "Who|2|'x'::text|YES|character varying|20|80|NULL|NULL|NULL|varchar|YES",
			"amount|3|NULL|YES|numeric|NULL|NULL|10|2|NULL|numeric|YES", "tags|5|NULL|YES|ARRAY|NULL|NULL|NULL|NULL|NULL|_text|YES",
			"span|6|NULL|YES|interval|NULL|NULL|NULL|NULL|DAY TO MINUTE|interval|YES", "x|1|NULL|YES|integer|NULL|NULL|32|0|NULL|int4|YES"}},
		{"views", "table_name view_definition", "table_schema", "public", []string{"open_orders| SELECT id FROM public.orders;", "totals| SELECT count(*) AS n FROM public.orders;"}},
		{"table_constraints", "constraint_name constraint_type nulls_distinct", "table_name", "orders", []string{"orders_Who_amount_key|UNIQUE|YES", "orders_pkey|PRIMARY KEY|NULL",
			"orders_amount_check|CHECK|NULL", "2200_16385_1_not_null|CHECK|NULL"}},
		{"key_column_usage", "constraint_name column_name ordinal_position", "table_name", "orders", []string{"orders_Who_amount_key|Who|1", "orders_Who_amount_key|amount|2", "orders_pkey|id|1"}},
		{"constraint_column_usage", "column_name", "constraint_name", "orders_amount_check", []string{"amount"}},
		{"schemata", "catalog_name schema_owner", "schema_name", "sales", []string{"shop|app"}},
		{"role_table_grants", "grantee privilege_type with_hierarchy", "table_name", "totals", []string{"app|SELECT|YES"}},
		{"element_types", "collection_type_identifier data_type dtd_identifier", "object_name", "orders", []string{"5|text|a5"}},
		{"view_table_usage", "view_name table_name", "", "", []string{"open_orders|orders", "totals|orders"}},
		{"enabled_roles", "role_name", "", "", []string{"app"}},
		{"routines", "routine_name data_type is_deterministic", "specific_name", "abs_1397", []string{"abs|integer|YES"}},
		{"parameters", "ordinal_position parameter_mode parameter_name data_type", "specific_name", "make_date_3846", []string{"1|IN|year|integer", "2|IN|month|integer", "3|IN|day|integer"}},
	} {
		if got := query(t, e, "information_schema."+c.rel, c.cols, c.where, c.value); !slices.Equal(got, c.want) {
			t.Errorf("%s %s=%s:\n got %q\nwant %q", c.rel, c.where, c.value, got, c.want)
		}
	}
}

// TestUsers holds that what names the user is not kept for another one.
func TestUsers(t *testing.T) {
	e := shop()
	other := *e
	other.user = "else"
	for _, x := range []*testEnv{e, &other, e} {
		if got := query(t, x, "pg_roles", "rolname", "oid", "10"); !slices.Equal(got, []string{x.user}) {
			t.Errorf("%s sees %q", x.user, got)
		}
	}
}

// TestConcurrent reads everything from several sessions at once, two of which
// see another catalog.
func TestConcurrent(t *testing.T) {
	e := shop()
	later := *e
	later.snap = e.snap.Apply(catalog.Change{PutSchema: &catalog.Schema{Name: "later", OID: 17000}})
	var wg sync.WaitGroup
	for i := range 4 {
		wg.Go(func() {
			x, schemas := e, 8
			if i%2 == 1 {
				x, schemas = &later, 9
			}
			for _, r := range relations() {
				b := modelOf(x).read(r, x)
				if r.name == "pg_namespace" && b.N != schemas {
					t.Errorf("%d schemas instead of %d", b.N, schemas)
				}
			}
		})
	}
	wg.Wait()
}

func regText(e *testEnv, t types.OID, name string) string {
	r := NewReader(e)
	oid, err := r.RegOID(t, name)
	if err != nil {
		pe := pgerror.As(err)
		return pe.Code + ": " + pe.Message
	}
	s, ok := r.RegName(t, oid)
	if !ok {
		return fmt.Sprint("no name for ", oid)
	}
	return s
}

func TestReg(t *testing.T) {
	e := shop()
	for _, c := range []struct {
		typ        types.OID
		name, want string
	}{
		{types.OIDRegclass, "orders", "orders"},
		{types.OIDRegclass, " PUBLIC . Orders ", "orders"},
		{types.OIDRegclass, "shop.sales.orders", "sales.orders"},
		{types.OIDRegclass, `"sales"."events"`, "sales.events"},
		{types.OIDRegclass, "pg_class", "pg_class"},
		{types.OIDRegclass, "information_schema.tables", "information_schema.tables"},
		{types.OIDRegclass, "orders_pkey", "orders_pkey"},
		{types.OIDRegclass, `"orders_Who_amount_key"`, `"orders_Who_amount_key"`},
		{types.OIDRegclass, "events", `42P01: relation "events" does not exist`},
		{types.OIDRegclass, "sales.Nothing", `42P01: relation "sales.nothing" does not exist`},
		{types.OIDRegclass, "nosuch.t", `3F000: schema "nosuch" does not exist`},
		{types.OIDRegclass, "a b", "42602: invalid name syntax"},
		{types.OIDRegclass, "", "42602: invalid name syntax"},
		{types.OIDRegclass, `"a`, "42602: invalid name syntax"},
		{types.OIDRegclass, "x.y.z", `0A000: cross-database references are not implemented: "x.y.z"`},
		{types.OIDRegclass, "a.b.c.d", "42601: improper relation name (too many dotted names): a.b.c.d"},
		{types.OIDRegtype, "int4", "integer"},
		{types.OIDRegtype, "pg_catalog.int4[]", "integer[]"},
		{types.OIDRegtype, `"pg_catalog"."bytea"`, "bytea"},
		{types.OIDRegtype, `"int4"[]`, "integer[]"},
		{types.OIDRegtype, `"integer"`, `42704: type "integer" does not exist`},
		{types.OIDRegtype, "orders", "orders"},
		{types.OIDRegtype, "_orders", "orders[]"},
		{types.OIDRegtype, "sales.orders[]", "sales.orders[]"},
		{types.OIDRegtype, "nosuch", `42704: type "nosuch" does not exist`},
		{types.OIDRegtype, "x.nosuch", `3F000: schema "x" does not exist`},
		{types.OIDRegproc, "now", "now"},
		{types.OIDRegproc, "array_in", "array_in"},
		{types.OIDRegproc, "information_schema._pg_expandarray", "information_schema._pg_expandarray"},
		{types.OIDRegproc, "pg_catalog._pg_expandarray", `42883: function "pg_catalog._pg_expandarray" does not exist`},
		{types.OIDRegproc, "abs", `42725: more than one function named "abs"`},
		{types.OIDRegproc, "zabs", `42883: function "zabs" does not exist`},
		{types.OIDRegprocedure, "abs(int4)", "abs(integer)"},
		{types.OIDRegprocedure, "abs(int4,foo)", `42704: type "foo" does not exist`},
		{types.OIDRegprocedure, "abs", "22P02: expected a left parenthesis"},
		{types.OIDRegprocedure, "zabs(int4)", `42883: function "zabs(int4)" does not exist`},
		{types.OIDRegoper, "||/", "||/"},
		{types.OIDRegoper, "+", "42725: more than one operator named +"},
		{types.OIDRegoper, "+++", "42883: operator does not exist: +++"},
		{types.OIDRegoperator, "+(int4,int4)", "+(integer,integer)"},
		{types.OIDRegoperator, "-(none,int4)", "-(NONE,integer)"},
		{types.OIDRegnamespace, "sales", "sales"},
		{types.OIDRegnamespace, "zz", `3F000: schema "zz" does not exist`},
		{types.OIDRegrole, "app", "app"},
		{types.OIDRegrole, "zz", `42704: role "zz" does not exist`},
		{types.OIDRegcollation, `"C"`, `"C"`},
		{types.OIDRegcollation, "zz", `42704: collation "zz" for encoding "UTF8" does not exist`},
	} {
		if got := regText(e, c.typ, c.name); got != c.want {
			t.Errorf("%s %q: got %s, want %s", c.typ.Name(), c.name, got, c.want)
		}
	}
}

func TestCall(t *testing.T) {
	e := shop()
	for _, c := range []struct{ call, want string }{
		{"pg_get_viewdef 16388", " SELECT id FROM public.orders;"},
		{"pg_get_viewdef totals t", " SELECT count(*) AS n FROM public.orders;"},
		{"pg_get_viewdef 16385", "Not a view"},
		{"pg_get_viewdef 1", "NULL"},
		{"pg_get_viewdef nosuch", `42P01: relation "nosuch" does not exist`},
		{"pg_get_indexdef 16390", `CREATE UNIQUE INDEX orders_who ON public.orders USING btree ("Who")`},
		{"pg_get_indexdef 16393 2 t", "amount"},
		{"pg_get_indexdef 16393 0 t", `CREATE UNIQUE INDEX "orders_Who_amount_key" ON orders USING btree ("Who", amount)`},
		{"pg_get_indexdef 16385", "NULL"},
		{"pg_get_indexdef 67125249", "CREATE UNIQUE INDEX orders_pkey ON public.orders USING btree (id)"},
		{"pg_get_constraintdef 603996161", "PRIMARY KEY (id)"},
		{"pg_get_constraintdef 536887305", `UNIQUE ("Who", amount)`},
		{"pg_get_constraintdef 1174421505", "CHECK ((amount > 0 AND 'tags' <> 'x'))"},
		{"pg_get_constraintdef 1174421505 t", "CHECK (amount > 0 AND 'tags' <> 'x')"},
		{"pg_get_constraintdef 16385", "NULL"},
		{"pg_get_ruledef 50348036", "CREATE RULE \"_RETURN\" AS\n    ON SELECT TO public.open_orders DO INSTEAD  SELECT id FROM public.orders;"},
		{"pg_get_userbyid 10", "app"},
		{"pg_get_userbyid 11", "unknown (OID=11)"},
		{"pg_get_function_arguments 3846", "year integer, month integer, day integer"},
		{"pg_get_function_result 3846", "date"},
		{"pg_get_functiondef 3846", "CREATE OR REPLACE FUNCTION pg_catalog.make_date(year integer, month integer, day integer)\n RETURNS date\n LANGUAGE internal\n IMMUTABLE PARALLEL SAFE STRICT\nAS $function$make_date$function$\n"},
		{"pg_get_function_arguments 1", "NULL"},
		{"pg_get_serial_sequence orders id", "NULL"},
		{"pg_get_serial_sequence orders nosuch", `42703: column "nosuch" of relation "orders" does not exist`},
		{"pg_describe_object 1259 16389 1", "column n of materialized view totals"},
		{"obj_description 16385 pg_class", "One row per order"},
		{"obj_description 2200 pg_namespace", "standard public schema"},
		{"obj_description 16385 pg_proc", "NULL"},
		{"col_description 16385 3", "In euros"},
		{"col_description 16385 4", "NULL"},
		{"pg_table_is_visible 16385", "t"},
		{"pg_table_is_visible 16392", "f"},
		{"pg_table_is_visible 1", "NULL"},
		{"pg_type_is_visible 23", "t"},
		{"pg_type_is_visible 536903696", "f"},
		{"pg_function_is_visible 3846", "t"},
		{"pg_relation_size 16385", "1040"},
		{"pg_relation_size 16388", "0"},
		{"pg_relation_size 1", "NULL"},
		{"pg_total_relation_size 16385", "1920"},
		{"pg_database_size nosuch", `3D000: database "nosuch" does not exist`},
		{"pg_relation_is_updatable 16385 t", "28"},
		{"pg_relation_is_updatable 16388 t", "0"},
		{"to_regclass sales.events", "16386"},
		{"to_regclass nosuch", "NULL"},
		{"to_regtype int8", "20"},
		{"to_regproc abs", "NULL"},
		{"has_table_privilege orders SELECT", "t"},
		{"has_table_privilege app orders insert,UPDATE", "t"},
		{"has_table_privilege nobody orders SELECT", `42704: role "nobody" does not exist`},
		{"has_table_privilege orders FLY", `22023: unrecognized privilege type: "FLY"`},
		{"has_table_privilege 1 SELECT", "NULL"},
		{"has_column_privilege orders Who SELECT", "t"},
		{"has_column_privilege orders who SELECT", `42703: column "who" of relation "orders" does not exist`},
		{"has_column_privilege app orders 9 SELECT", "NULL"},
		{"has_any_column_privilege 16385 SELECT", "t"},
		{"has_schema_privilege sales USAGE", "t"},
		{"has_schema_privilege Sales USAGE", `3F000: schema "Sales" does not exist`},
		{"has_database_privilege shop CONNECT", "t"},
		{"has_function_privilege make_date(int,int,int) EXECUTE", "t"},
		{"pg_has_role app MEMBER", "t"},
		{"pg_has_role app pg_monitor USAGE", "t"},
		{"pg_get_userbyid 3373", "pg_monitor"},
		{"pg_indexam_has_property 403 can_order", "t"},
		{"pg_index_column_has_property 16390 1 desc", "f"},
		{"pg_index_column_has_property 16390 2 desc", "NULL"},
		{"pg_get_triggerdef 1", "NULL"},
	} {
		f := strings.Fields(c.call)
		got, null, err := NewReader(e).Call(f[0], f[1:])
		if null {
			got = "NULL"
		}
		if err != nil {
			got = pgerror.As(err).Code + ": " + err.Error()
		}
		if got != c.want {
			t.Errorf("%s:\n got %s\nwant %s", c.call, got, c.want)
		}
	}
}

func TestNames(t *testing.T) {
	long := strings.Repeat("a", 40)
	for _, c := range []struct{ a, b, label, want string }{
		{"t", "", "pkey", "t_pkey"},
		{"t", "a_b", "key", "t_a_b_key"},
		{long, long, "key", strings.Repeat("a", 29) + "_" + strings.Repeat("a", 29) + "_key"},
		{long, "b", "key", long + "_b_key"},
	} {
		if got := catalog.ObjectName(c.a, c.b, c.label); got != c.want {
			t.Errorf("ObjectName(%q, %q, %q) = %q, want %q", c.a, c.b, c.label, got, c.want)
		}
	}
	for in, want := range map[string]string{"a": "a", "A": `"A"`, "a b": `"a b"`, "select": `"select"`, "name": "name", "1a": `"1a"`, `x"y`: `"x""y"`, "": `""`} {
		if got := quoteIdent(in); got != want {
			t.Errorf("quoteIdent(%q) = %s, want %s", in, got, want)
		}
	}
	if got := words(`a > 'b''c d' AND "E ""f" <> g1`); !slices.Equal(got, []string{"a", "and", `E "f`, "g1"}) {
		t.Errorf("words: %q", got)
	}
}

// large is a catalog of n tables of ten columns.
func large(n int) *testEnv {
	s := baseSnapshot()
	changes := make([]catalog.Change, n)
	for i := range changes {
		o := &catalog.Object{ID: plan.ObjectID(i + 1), OID: uint32(16385 + i), Schema: "public", Name: fmt.Sprint("table_", i), Kind: catalog.KindTable, PrimaryKey: []int{0}}
		for c := range 10 {
			o.Columns = append(o.Columns, catalog.Column{Name: fmt.Sprint("column_", c), Type: types.Int4})
		}
		changes[i].Put = o
	}
	return &testEnv{snap: s.Apply(changes...), path: []string{"pg_catalog", "public"}, user: "app"}
}

func BenchmarkRead(b *testing.B) {
	e := large(12_000)
	for _, name := range []string{"pg_class", "pg_attribute", "pg_type", "pg_depend"} {
		var r *relation
		for _, x := range relations() {
			if x.name == name {
				r = x
			}
		}
		b.Run("cold/"+name, func(b *testing.B) {
			for b.Loop() {
				newModel(e.snap).read(r, e)
			}
		})
		b.Run("warm/"+name, func(b *testing.B) {
			m := newModel(e.snap)
			m.read(r, e)
			b.ResetTimer()
			for b.Loop() {
				m.read(r, e)
			}
		})
	}
	var batch *columnar.Batch
	b.Run("cold/columns", func(b *testing.B) {
		for b.Loop() {
			for _, x := range relations() {
				if x.name == "columns" {
					batch = newModel(e.snap).read(x, e)
				}
			}
		}
	})
	_ = batch
}

package pgcatalog

import (
	"strings"

	"github.com/streamdb/streamdb/columnar"
	"github.com/streamdb/streamdb/sql/expr"
	"github.com/streamdb/streamdb/sql/pgerror"
	"github.com/streamdb/streamdb/sql/types"
)

// The set-returning functions behind system views, which clients call directly.
// Those that show a system relation have its columns.

func init() {
	none := func(*expr.Eval, []*columnar.Vec, int, []*columnar.Builder) (int, error) { return 0, nil }
	def := func(name string, args []types.Type, names string, eval expr.TableKernel, cols ...types.Type) {
		expr.RegisterTableFunction(expr.TableFunction{Name: name, Args: args, Cols: cols, Names: strings.Fields(names), Strict: true,
			Volatility: expr.Stable, Eval: eval})
	}
	regclass, aclitems := types.Of(types.OIDRegclass), types.Of(types.OIDACLItemArray)
	def("aclexplode", []types.Type{aclitems}, "grantor grantee privilege_type is_grantable", none, types.Oid, types.Oid, types.Text, types.Bool)
	def("pg_options_to_table", []types.Type{types.Of(types.OIDTextArray)}, "option_name option_value", none, types.Text, types.Text)
	def("pg_partition_ancestors", []types.Type{regclass}, "relid", none, regclass)
	def("pg_partition_tree", []types.Type{regclass}, "relid parentrelid isleaf level", none, regclass, regclass, types.Bool, types.Int4)
	def("pg_listening_channels", nil, "pg_listening_channels", none, types.Text)
	def("pg_tablespace_databases", []types.Type{types.Oid}, "pg_tablespace_databases", databasesOf, types.Oid)
	def("pg_available_extensions", nil, "name default_version comment", none, types.Name, types.Text, types.Text)
	def("pg_get_keywords", nil, "word catcode barelabel catdesc baredesc", keywordRows, types.Text, types.Char, types.Bool, types.Text, types.Text)
	def("pg_identify_object", []types.Type{types.Oid, types.Oid, types.Int4}, "type schema name identity", identifyObject, types.Text, types.Text, types.Text, types.Text)
	i8 := types.Int8
	expr.RegisterTableFunction(expr.TableFunction{Name: "pg_sequence_parameters", Args: []types.Type{types.Oid}, Cols: []types.Type{i8, i8, i8, i8, types.Bool, i8, types.Oid},
		Names: strings.Fields("start_value minimum_value maximum_value increment cycle_option cache_size data_type"), Volatility: expr.Stable, Eval: sequenceParameters})
	for name, view := range map[string]string{"pg_show_all_settings": "pg_settings", "pg_prepared_statement": "pg_prepared_statements",
		"pg_cursor": "pg_cursors", "pg_lock_status": "pg_locks", "pg_timezone_names": "pg_timezone_names", "pg_timezone_abbrevs": "pg_timezone_abbrevs"} {
		r := relationNamed(view)
		cols := make([]types.Type, len(r.columns))
		names := make([]string, len(r.columns))
		for i, c := range r.columns {
			cols[i], names[i] = c.Type, c.Name
		}
		def(name, nil, strings.Join(names, " "), viewRows(view), cols...)
	}
}

// relationNamed is a relation of pg_catalog, without its definition.
func relationNamed(name string) *relation {
	for _, r := range relationFacts() {
		if r.name == name {
			return r
		}
	}
	panic("pgcatalog: no relation " + name)
}

// viewRows gives the rows of a system relation.
func viewRows(name string) expr.TableKernel {
	return func(x *expr.Eval, _ []*columnar.Vec, _ int, out []*columnar.Builder) (int, error) {
		if x.Context == nil {
			return 0, nil
		}
		reader, ok := x.Catalog.(*Reader)
		if !ok {
			return 0, nil
		}
		r := relationByOID(relationNamed(name).oid)
		b := reader.model().read(r, reader.env)
		for i, v := range b.Cols {
			out[i].AppendVec(v)
		}
		return b.N, nil
	}
}

// sequenceParameters is the row of pg_sequence of one sequence.
func sequenceParameters(x *expr.Eval, args []*columnar.Vec, i int, out []*columnar.Builder) (int, error) {
	if args[0].Null(i) { // it is no set: there is a row in any case
		for _, b := range out {
			b.Null()
		}
		return 1, nil
	}
	r := relationNamed("pg_sequence")
	all := make([]*columnar.Builder, len(r.columns))
	at := map[string]int{}
	for k, c := range r.columns {
		all[k], at[c.Name] = columnar.NewBuilder(c.Type.Kind(), 0), k
	}
	n, err := viewRows("pg_sequence")(x, nil, 0, all)
	if err != nil {
		return 0, err
	}
	cols := make([]*columnar.Vec, len(all))
	for k, b := range all {
		cols[k] = b.Build()
	}
	oid := args[0].Int64s()[i]
	for row := range n {
		if cols[at["seqrelid"]].Int64s()[row] != oid {
			continue
		}
		for k, name := range []string{"seqstart", "seqmin", "seqmax", "seqincrement", "seqcycle", "seqcache", "seqtypid"} {
			out[k].AppendFrom(cols[at[name]], row)
		}
		return 1, nil
	}
	return 0, pgerror.New(pgerror.InternalError, "cache lookup failed for sequence %d", oid)
}

func databasesOf(_ *expr.Eval, args []*columnar.Vec, i int, out []*columnar.Builder) (int, error) {
	if args[0].Int64s()[i] != tablespaceOID {
		return 0, nil
	}
	out[0].Int64(databaseOID)
	return 1, nil
}

// keywordClasses describe the classes of keywords.
var keywordClasses = map[string]string{"U": "unreserved", "C": "unreserved (cannot be function or type name)",
	"T": "reserved (can be function or type name)", "R": "reserved"}

func keywordRows(_ *expr.Eval, _ []*columnar.Vec, _ int, out []*columnar.Builder) (int, error) {
	t := factsOf("keywords")
	for i := range t.rows {
		class, bare := t.get(i, "catcode"), t.get(i, "barelabel") == "1"
		out[0].String(t.get(i, "word"))
		out[1].String(class)
		out[2].Bool(bare)
		out[3].String(keywordClasses[class])
		if bare {
			out[4].String("can be bare label")
		} else {
			out[4].String("requires AS")
		}
	}
	return len(t.rows), nil
}

func init() {
	define(map[string]definition{"pg_timezone_names": {compute: zoneNames, live: true}, "pg_timezone_abbrevs": {compute: zoneAbbrevs, live: true}})
}

// zoneNames are the names of time zones, with their offsets now.
func zoneNames(_ *model, e Env, f *filler) {
	t := factsOf("timezones")
	now := e.Now()
	type zone struct {
		name, abbrev string
		offset       int
		dst          bool
	}
	var zs []zone
	for i := range t.rows {
		name := t.get(i, "name")
		loc, ok := types.LoadZone(name)
		if !ok {
			continue
		}
		at := now.In(loc)
		abbrev, offset := at.Zone()
		zs = append(zs, zone{name, abbrev, offset, at.IsDST()})
	}
	f.n = len(zs)
	f.text("name", func(i int) string { return zs[i].name })
	f.text("abbrev", func(i int) string { return zs[i].abbrev })
	f.each("utc_offset", func(i int, b *columnar.Builder) {
		b.U128(columnar.U128{Lo: uint64(int64(zs[i].offset) * 1_000_000)})
	})
	f.bool("is_dst", func(i int) bool { return zs[i].dst })
}

// zoneAbbrevs are the abbreviations of time zones.
func zoneAbbrevs(_ *model, e Env, f *filler) {
	as := types.ZoneAbbreviations(e.Now())
	f.n = len(as)
	f.text("abbrev", func(i int) string { return as[i].Name })
	f.each("utc_offset", func(i int, b *columnar.Builder) {
		b.U128(columnar.U128{Lo: uint64(int64(as[i].East) * 1_000_000)})
	})
	f.bool("is_dst", func(i int) bool { return as[i].DST })
}

package expr

import (
	"fmt"
	"strings"

	"github.com/streamdb/streamdb/columnar"
	"github.com/streamdb/streamdb/sql/pgerror"
	"github.com/streamdb/streamdb/sql/types"
)

// catalogFunctions are the functions that the catalog answers, through
// Context.Catalog: name, arguments, result. Their values go by their text forms.
const catalogFunctions = `
pg_get_viewdef(oid) text
pg_get_viewdef(oid, bool) text
pg_get_viewdef(oid, int4) text
pg_get_viewdef(text) text
pg_get_viewdef(text, bool) text
pg_get_indexdef(oid) text
pg_get_indexdef(oid, int4, bool) text
pg_get_constraintdef(oid) text
pg_get_constraintdef(oid, bool) text
pg_get_functiondef(oid) text
pg_get_function_arguments(oid) text
pg_get_function_identity_arguments(oid) text
pg_get_function_result(oid) text
pg_get_function_arg_default(oid, int4) text
pg_get_function_sqlbody(oid) text
pg_get_triggerdef(oid) text
pg_get_triggerdef(oid, bool) text
pg_get_ruledef(oid) text
pg_get_ruledef(oid, bool) text
pg_get_partkeydef(oid) text
pg_get_partition_constraintdef(oid) text
pg_get_statisticsobjdef(oid) text
pg_get_statisticsobjdef_columns(oid) text
pg_get_serial_sequence(text, text) text
pg_get_userbyid(oid) name
pg_describe_object(oid, oid, int4) text
obj_description(oid, name) text
obj_description(oid) text
col_description(oid, int4) text
shobj_description(oid, name) text
to_regclass(text) regclass
to_regtype(text) regtype
to_regproc(text) regproc
to_regprocedure(text) regprocedure
to_regnamespace(text) regnamespace
to_regrole(text) regrole
to_regoper(text) regoper
to_regoperator(text) regoperator
to_regcollation(text) regcollation
acldefault(char, oid) _aclitem
pg_get_statisticsobjdef_expressions(oid) _text
pg_get_replica_identity_index(regclass) regclass
pg_partition_root(regclass) regclass
pg_collation_actual_version(oid) text
pg_database_collation_actual_version(oid) text
pg_table_is_visible(oid) bool
pg_type_is_visible(oid) bool
pg_function_is_visible(oid) bool
pg_operator_is_visible(oid) bool
pg_opclass_is_visible(oid) bool
pg_opfamily_is_visible(oid) bool
pg_conversion_is_visible(oid) bool
pg_collation_is_visible(oid) bool
pg_statistics_obj_is_visible(oid) bool
pg_ts_config_is_visible(oid) bool
pg_ts_dict_is_visible(oid) bool
pg_ts_parser_is_visible(oid) bool
pg_ts_template_is_visible(oid) bool
pg_relation_size(regclass) int8
pg_relation_size(regclass, text) int8
pg_total_relation_size(regclass) int8
pg_table_size(regclass) int8
pg_indexes_size(regclass) int8
pg_database_size(name) int8
pg_database_size(oid) int8
pg_tablespace_size(name) int8
pg_tablespace_size(oid) int8
pg_tablespace_location(oid) text
pg_relation_filenode(regclass) oid
pg_relation_filepath(regclass) text
pg_relation_is_updatable(regclass, bool) int4
pg_column_is_updatable(regclass, int2, bool) bool
pg_relation_is_publishable(regclass) bool
pg_sequence_last_value(regclass) int8
pg_stat_get_numscans(oid) int8
pg_stat_get_live_tuples(oid) int8
pg_stat_get_dead_tuples(oid) int8
pg_stat_get_tuples_inserted(oid) int8
pg_stat_get_tuples_updated(oid) int8
pg_stat_get_tuples_deleted(oid) int8
pg_indexam_has_property(oid, text) bool
pg_index_has_property(regclass, text) bool
pg_index_column_has_property(regclass, int4, text) bool
has_table_privilege(text, text) bool
has_table_privilege(oid, text) bool
has_table_privilege(name, text, text) bool
has_table_privilege(name, oid, text) bool
has_table_privilege(oid, text, text) bool
has_table_privilege(oid, oid, text) bool
has_any_column_privilege(text, text) bool
has_any_column_privilege(oid, text) bool
has_any_column_privilege(name, text, text) bool
has_any_column_privilege(name, oid, text) bool
has_any_column_privilege(oid, text, text) bool
has_any_column_privilege(oid, oid, text) bool
has_schema_privilege(text, text) bool
has_schema_privilege(oid, text) bool
has_schema_privilege(name, text, text) bool
has_schema_privilege(name, oid, text) bool
has_schema_privilege(oid, text, text) bool
has_schema_privilege(oid, oid, text) bool
has_database_privilege(text, text) bool
has_database_privilege(oid, text) bool
has_database_privilege(name, text, text) bool
has_database_privilege(name, oid, text) bool
has_database_privilege(oid, text, text) bool
has_database_privilege(oid, oid, text) bool
has_function_privilege(text, text) bool
has_function_privilege(oid, text) bool
has_function_privilege(name, text, text) bool
has_function_privilege(name, oid, text) bool
has_function_privilege(oid, text, text) bool
has_function_privilege(oid, oid, text) bool
has_sequence_privilege(text, text) bool
has_sequence_privilege(oid, text) bool
has_sequence_privilege(name, text, text) bool
has_sequence_privilege(name, oid, text) bool
has_sequence_privilege(oid, text, text) bool
has_sequence_privilege(oid, oid, text) bool
has_type_privilege(text, text) bool
has_type_privilege(oid, text) bool
has_type_privilege(name, text, text) bool
has_type_privilege(name, oid, text) bool
has_type_privilege(oid, text, text) bool
has_type_privilege(oid, oid, text) bool
has_language_privilege(text, text) bool
has_language_privilege(oid, text) bool
has_language_privilege(name, text, text) bool
has_language_privilege(name, oid, text) bool
has_language_privilege(oid, text, text) bool
has_language_privilege(oid, oid, text) bool
has_tablespace_privilege(text, text) bool
has_tablespace_privilege(oid, text) bool
has_tablespace_privilege(name, text, text) bool
has_tablespace_privilege(name, oid, text) bool
has_tablespace_privilege(oid, text, text) bool
has_tablespace_privilege(oid, oid, text) bool
has_foreign_data_wrapper_privilege(text, text) bool
has_foreign_data_wrapper_privilege(oid, text) bool
has_foreign_data_wrapper_privilege(name, text, text) bool
has_foreign_data_wrapper_privilege(name, oid, text) bool
has_foreign_data_wrapper_privilege(oid, text, text) bool
has_foreign_data_wrapper_privilege(oid, oid, text) bool
has_server_privilege(text, text) bool
has_server_privilege(oid, text) bool
has_server_privilege(name, text, text) bool
has_server_privilege(name, oid, text) bool
has_server_privilege(oid, text, text) bool
has_server_privilege(oid, oid, text) bool
has_column_privilege(text, text, text) bool
has_column_privilege(text, int2, text) bool
has_column_privilege(oid, text, text) bool
has_column_privilege(oid, int2, text) bool
has_column_privilege(name, text, text, text) bool
has_column_privilege(name, text, int2, text) bool
has_column_privilege(name, oid, text, text) bool
has_column_privilege(name, oid, int2, text) bool
has_column_privilege(oid, text, text, text) bool
has_column_privilege(oid, text, int2, text) bool
has_column_privilege(oid, oid, text, text) bool
has_column_privilege(oid, oid, int2, text) bool
has_parameter_privilege(text, text) bool
has_parameter_privilege(name, text, text) bool
has_parameter_privilege(oid, text, text) bool
pg_has_role(name, text) bool
pg_has_role(oid, text) bool
pg_has_role(name, name, text) bool
pg_has_role(name, oid, text) bool
pg_has_role(oid, name, text) bool
pg_has_role(oid, oid, text) bool
row_security_active(oid) bool
row_security_active(text) bool
`

// parseSignature reads "name(type, …) type".
func parseSignature(line string) (name string, args []types.Type, ret types.Type) {
	name, rest, _ := strings.Cut(line, "(")
	params, result, _ := strings.Cut(rest, ") ")
	typ := func(s string) types.Type {
		o, ok := types.ByName(s)
		if !ok {
			panic("expr: no type " + s + " in: " + line)
		}
		return types.Of(o)
	}
	if params != "" {
		for _, p := range strings.Split(params, ", ") {
			args = append(args, typ(p))
		}
	}
	return name, args, typ(result)
}

// catalogKernel asks the catalog, row by row.
func catalogKernel(name string, args []types.Type, ret types.Type) Kernel {
	return func(_ *Call, x *Eval, vecs []*columnar.Vec, n int) *columnar.Vec {
		out := columnar.NewBuilder(ret.Kind(), n)
		opts := x.options()
		texts := make([]string, len(args))
		a := Args(vecs)
		for i := range n {
			if a.anyNull(i) || x.Context == nil || x.Catalog == nil {
				out.Null()
				continue
			}
			for k, t := range args {
				v, i := a.row(k, i)
				if t.Kind() == columnar.KindInt64 && t.OID != types.OIDInt8 {
					t = types.Oid // regclass and its like as numbers
				}
				texts[k] = string(types.AppendText(nil, t, v, i, opts))
			}
			s, null, err := x.Catalog.Call(name, texts)
			if err == nil && null {
				out.Null()
				continue
			}
			if err == nil {
				err = parseText(opts, ret.OID, -1, []byte(s), out)
			}
			if err != nil {
				x.Fail(i, pgerror.As(err))
				out.Null()
			}
		}
		return out.Build()
	}
}

// sessionText registers functions without arguments that tell of the session.
func sessionText(ret types.Type, f func(c *Context) string, names ...string) {
	for _, name := range names {
		Register(Function{Name: name, Ret: ret, Strict: true, Total: true, Volatility: Stable,
			Eval: func(_ *Call, x *Eval, _ []*columnar.Vec, n int) *columnar.Vec {
				out := x.Builder(columnar.KindBytes, n)
				for range n {
					if x.Context == nil {
						out.Null()
					} else {
						out.String(f(x.Context))
					}
				}
				return out.Build()
			}})
	}
}

// setting reads a session setting, "" if there is none.
func (c *Context) setting(name string) string {
	if c == nil || c.Setting == nil {
		return ""
	}
	s, _ := c.Setting(name)
	return s
}

func (c *Context) version() string {
	v := c.setting("server_version")
	if v == "" {
		v = "15.0"
	}
	return "PostgreSQL " + v + " (streamdb), 64-bit"
}

func typeofKernel(c *Call) (Kernel, error) {
	o := int64(c.Args[0].Type().OID)
	return func(*Call, *Eval, []*columnar.Vec, int) *columnar.Vec { return columnar.FromSlice([]int64{o}, nil) }, nil
}

func currentSetting(x *Eval, a Args, i int, out *columnar.Builder) *pgerror.Error {
	name := strings.ToLower(string(a.Bytes(0, i)))
	if x.Context != nil && x.Setting != nil {
		if v, ok := x.Setting(name); ok {
			out.String(v)
			return nil
		}
	}
	if len(a) == 2 && a.Bool(1, i) {
		out.Null()
		return nil
	}
	return pgerror.New(pgerror.UndefinedObject, "unrecognized configuration parameter \"%s\"", a.Bytes(0, i))
}

func setConfig(x *Eval, a Args, i int, out *columnar.Builder) *pgerror.Error {
	if a.Null(0, i) {
		return pgerror.New(pgerror.NullValueNotAllowed, "SET requires parameter name")
	}
	value := ""
	if !a.Null(1, i) {
		value = string(a.Bytes(1, i))
	}
	if x.Context == nil || x.SetSetting == nil {
		return pgerror.Unsupported("set_config here")
	}
	s, err := x.SetSetting(string(a.Bytes(0, i)), value, !a.Null(2, i) && a.Bool(2, i))
	if err != nil {
		return pgerror.As(err)
	}
	out.String(s)
	return nil
}

func formatType(x *Eval, a Args, i int, out *columnar.Builder) *pgerror.Error {
	if a.Null(0, i) {
		out.Null()
		return nil
	}
	o := types.OID(a.Int64(0, i))
	t := types.Lookup(o)
	mod := int32(-1)
	if !a.Null(1, i) {
		mod = a.Int32(1, i)
	}
	switch {
	case o == 0:
		out.String("-")
	case t == nil || o >= types.FirstUser: // named as the search path has it
		name, known := o.Name(), t != nil
		if x.Context != nil && x.Catalog != nil {
			if s, ok := x.Catalog.RegName(types.OIDRegtype, uint32(o)); ok {
				name, known = s, true
			}
		}
		if !known {
			mod = -1
		}
		out.String(withModifier(name, mod))
	case a.Null(1, i):
		out.String(o.Name())
	case t.ModOut == "-" && (!t.IsArray() || types.Lookup(t.Elem).ModOut == "-"):
		if e := types.Lookup(o.Elem()); t.IsArray() && strings.Trim(e.OID.Name(), `"`) != e.Name || !t.IsArray() && strings.Trim(o.Name(), `"`) != t.Name {
			mod = -1 // a word of the grammar has none
		}
		out.String(withModifier(o.Name(), mod))
	default:
		out.String(types.Type{OID: o, Mod: mod}.String())
	}
	return nil
}

// withModifier writes a modifier after the name of a type that gives it no meaning.
func withModifier(name string, mod int32) string {
	if mod < 0 {
		return name
	}
	elem, array := strings.CutSuffix(name, "[]")
	if name = fmt.Sprintf("%s(%d)", elem, mod); array {
		name += "[]"
	}
	return name
}

// currentSchemas lists the schemas of the search path.
func currentSchemas(x *Eval, a Args, i int, out *columnar.Builder) *pgerror.Error {
	b := columnar.NewBuilder(columnar.KindBytes, 4)
	if x.Context != nil {
		hasCatalog := false
		for _, s := range x.SearchPath {
			hasCatalog = hasCatalog || s == "pg_catalog"
		}
		if a.Bool(0, i) && !hasCatalog {
			b.String("pg_catalog")
		}
		for _, s := range x.SearchPath {
			b.String(s)
		}
	}
	v := b.Build()
	out.Extend(func(dst []byte) []byte {
		if v.Len() == 0 {
			return types.AppendEmptyArray(dst, types.OIDName)
		}
		return types.AppendList(dst, types.OIDName, v, 0, v.Len())
	})
	return nil
}

func registerSession() {
	sessionText(types.Text, (*Context).version, "version", "mz_version")
	sessionText(types.Name, func(c *Context) string { return c.Database }, "current_database", "current_catalog")
	sessionText(types.Name, func(c *Context) string { return c.User }, "current_user", "session_user", "user", "current_role", "getpgusername")
	sessionText(types.Text, func(c *Context) string { return c.setting("streamdb.query") }, "current_query")
	sessionText(types.Name, func(*Context) string { return "UTF8" }, "getdatabaseencoding", "pg_client_encoding")
	fn := func(name string, strict bool, v Volatility, ret types.Type, k Kernel, args ...types.Type) *Function {
		return Register(Function{Name: name, Args: args, Ret: ret, Strict: strict, Volatility: v, Consts: ScalarConsts, Eval: k})
	}
	Register(Function{Name: "current_schema", Ret: types.Name, Strict: true, Total: true, Volatility: Stable,
		Eval: func(_ *Call, x *Eval, _ []*columnar.Vec, _ int) *columnar.Vec {
			if x.Context == nil || len(x.SearchPath) == 0 {
				return nullOf(columnar.KindBytes)
			}
			return TextConst(x.SearchPath[0]).Val
		}})
	fn("current_schemas", true, Stable, types.Of(types.OIDNameArray), RowKernel(currentSchemas), types.Bool)
	Register(Function{Name: "pg_typeof", Args: []types.Type{types.Of(types.OIDAny)}, Ret: types.Of(types.OIDRegtype), Total: true, Volatility: Stable, Consts: ScalarConsts, Bind: func(c *Call) (Kernel, error) {
		k, err := typeofKernel(c)
		return func(c *Call, x *Eval, args []*columnar.Vec, n int) *columnar.Vec {
			return x.expand(k(c, x, args, n), n)
		}, err
	}})
	for _, f := range []*Function{
		fn("current_setting", true, Stable, types.Text, RowKernel(currentSetting), types.Text),
		fn("current_setting", true, Stable, types.Text, RowKernel(currentSetting), types.Text, types.Bool),
		fn("set_config", false, Volatile, types.Text, RowKernel(setConfig), types.Text, types.Text, types.Bool),
	} {
		f.Sequential = true
	}
	fn("format_type", false, Stable, types.Text, RowKernel(formatType), types.Oid, types.Int4)
	fn("pg_get_expr", true, Stable, types.Text, pgGetExpr, types.Of(types.OIDPgNodeTree), types.Oid)
	fn("pg_get_expr", true, Stable, types.Text, pgGetExpr, types.Of(types.OIDPgNodeTree), types.Oid, types.Bool)
}

// pgGetExpr shows a stored expression: the catalog stores them as SQL.
func pgGetExpr(_ *Call, x *Eval, args []*columnar.Vec, n int) *columnar.Vec {
	return x.expand(args[0], n)
}

func init() {
	registerSession()
	registerServer()
	for _, line := range strings.Split(strings.TrimSpace(catalogFunctions), "\n") {
		name, args, ret := parseSignature(line)
		Register(Function{
			Name: name, Args: args, Ret: ret, Strict: true, Volatility: Stable, Consts: ScalarConsts,
			Eval: catalogKernel(name, args, ret),
		})
	}
}

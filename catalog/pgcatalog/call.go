package pgcatalog

import (
	"slices"
	"strconv"
	"strings"

	"github.com/streamdb/streamdb/catalog"
	"github.com/streamdb/streamdb/sql/pgerror"
	"github.com/streamdb/streamdb/sql/types"
)

// call is a catalog function in progress: its arguments are not NULL.
type call struct {
	r    *Reader
	m    *model
	name string
	args []string
}

// result is what a catalog function gives.
type result struct {
	text string
	null bool
	err  error
}

var none = result{null: true}

func text(s string) result { return result{text: s} }

func boolean(b bool) result {
	if b {
		return text("t")
	}
	return text("f")
}

func failed(err error) result { return result{err: err} }

// Call runs a catalog information function over the text forms of its
// arguments; objects come by their OIDs or their names.
func (r *Reader) Call(name string, args []string) (string, bool, error) {
	f := functions[name]
	if f == nil {
		return "", true, pgerror.New(pgerror.FeatureNotSupported, "function %s is not supported", name)
	}
	x := f(&call{r, r.model(), name, args})
	return x.text, x.null, x.err
}

// oid is an argument that is an OID.
func (c *call) oid(i int) uint32 {
	n, err := strconv.ParseUint(c.args[i], 10, 32)
	if err != nil {
		return 0
	}
	return uint32(n)
}

// number is an argument that is an integer.
func (c *call) number(i int) int {
	n, err := strconv.Atoi(c.args[i])
	if err != nil {
		return 0
	}
	return n
}

// isOID reports whether an argument that may be a name is an OID.
func isOID(s string) bool {
	_, err := strconv.ParseUint(s, 10, 32)
	return err == nil
}

// rel is the relation that an argument names or numbers, nil if there is none
// of that OID.
func (c *call) rel(i int) (*rel, error) {
	if isOID(c.args[i]) {
		return c.m.byOID[c.oid(i)], nil
	}
	return c.r.relation(c.args[i])
}

// functions are the catalog functions by name.
var functions map[string]func(c *call) result

func init() {
	functions = map[string]func(c *call) result{
		"pg_get_viewdef":                     viewDefCall,
		"pg_get_ruledef":                     ruleDefCall,
		"pg_get_indexdef":                    indexDefCall,
		"pg_get_constraintdef":               constraintDefCall,
		"pg_get_functiondef":                 procCall(signature.def),
		"pg_get_function_arguments":          procCall(func(s signature) string { return s.arguments(true) }),
		"pg_get_function_identity_arguments": procCall(func(s signature) string { return s.arguments(false) }),
		"pg_get_function_result":             functionResultCall,
		"pg_get_function_arg_default":        argDefaultCall,
		"pg_get_userbyid":                    userCall,
		"pg_get_serial_sequence":             serialCall,
		"pg_get_triggerdef":                  triggerDefCall,
		"pg_describe_object":                 describeCall,
		"obj_description":                    objDescriptionCall,
		"col_description":                    colDescriptionCall,
		"pg_relation_size":                   sizeCall(false),
		"pg_table_size":                      sizeCall(false),
		"pg_total_relation_size":             sizeCall(true),
		"pg_indexes_size":                    indexesSizeCall,
		"pg_database_size":                   databaseSizeCall,
		"pg_tablespace_size":                 tablespaceSizeCall,
		"pg_get_replica_identity_index":      replicaIdentityCall,
		"pg_relation_filenode":               filenodeCall,
		"pg_relation_filepath":               filepathCall,
		"pg_relation_is_updatable":           updatableCall,
		"pg_sequence_last_value":             lastValueCall,
		"pg_column_is_updatable":             columnUpdatableCall,
		"pg_relation_is_publishable":         publishableCall,
		"pg_stat_get_live_tuples":            liveTuplesCall,
		"pg_indexam_has_property":            amPropertyCall,
		"pg_index_has_property":              indexPropertyCall,
		"pg_index_column_has_property":       columnPropertyCall,
		"row_security_active":                func(*call) result { return boolean(false) },
		"pg_tablespace_location":             func(*call) result { return text("") },
		"pg_has_role":                        hasRoleCall,
		"pg_table_is_visible":                tableVisibleCall,
		"pg_type_is_visible":                 typeVisibleCall,
		"pg_function_is_visible":             functionVisibleCall,
		"pg_operator_is_visible":             existsCall(func(oid uint32) bool { return operatorTable().byOID[oid] != nil }),
		"pg_opclass_is_visible":              existsCall(inFacts("pg_opclass")),
		"pg_opfamily_is_visible":             existsCall(inFacts("pg_opfamily")),
		"pg_ts_config_is_visible":            existsCall(inFacts("pg_ts_config")),
		"pg_ts_dict_is_visible":              existsCall(inFacts("pg_ts_dict")),
		"pg_ts_parser_is_visible":            existsCall(inFacts("pg_ts_parser")),
		"pg_ts_template_is_visible":          existsCall(inFacts("pg_ts_template")),
		"pg_collation_is_visible":            existsCall(func(oid uint32) bool { return collationNames()[oid] != "" }),
	}
	// Of objects that do not exist here nothing can be said.
	for _, name := range []string{"pg_get_partkeydef", "pg_get_partition_constraintdef", "pg_get_statisticsobjdef",
		"pg_get_statisticsobjdef_columns", "pg_get_function_sqlbody", "shobj_description", "pg_conversion_is_visible",
		"pg_statistics_obj_is_visible",
		"acldefault", "pg_get_statisticsobjdef_expressions", "pg_partition_root", "pg_collation_actual_version", "pg_database_collation_actual_version"} {
		functions[name] = func(*call) result { return none }
	}
	for _, name := range []string{"numscans", "dead_tuples", "tuples_inserted", "tuples_updated", "tuples_deleted"} {
		functions["pg_stat_get_"+name] = func(*call) result { return text("0") }
	}
	for name, t := range map[string]types.OID{"to_regclass": types.OIDRegclass, "to_regtype": types.OIDRegtype, "to_regproc": types.OIDRegproc,
		"to_regprocedure": types.OIDRegprocedure, "to_regnamespace": types.OIDRegnamespace, "to_regrole": types.OIDRegrole,
		"to_regoper": types.OIDRegoper, "to_regoperator": types.OIDRegoperator, "to_regcollation": types.OIDRegcollation} {
		functions[name] = toReg(t)
	}
	for name, find := range privilegeObjects {
		functions["has_"+name+"_privilege"] = hasPrivilege(name, find)
	}
}

func orNone(s string, ok bool) result {
	if !ok {
		return none
	}
	return text(s)
}

func viewDefCall(c *call) result {
	x, err := c.rel(0)
	if err != nil {
		return failed(err)
	}
	if x == nil {
		return none
	}
	if !x.isView() {
		return text("Not a view")
	}
	return orNone(x.viewDef(), x.viewDef() != "")
}

func ruleDefCall(c *call) result {
	oid := c.oid(0)
	x := c.m.byOID[oid&(1<<24-1)]
	if x == nil || oid != implied(x.oid, impliedRule) || x.viewDef() == "" {
		return none
	}
	return text("CREATE RULE \"_RETURN\" AS\n    ON SELECT TO " + x.qualified() + " DO INSTEAD " + x.viewDef())
}

func indexDefCall(c *call) result {
	x := c.m.byOID[c.oid(0)]
	if x == nil || x.table == nil {
		return none
	}
	if len(c.args) > 1 {
		if n := c.number(1); n > 0 {
			if n > len(x.key) {
				return text("")
			}
			return text(x.indexKey(n-1, len(c.args) > 2 && c.args[2] == "t"))
		}
	}
	if len(c.args) > 2 && c.args[2] == "t" {
		return text(x.indexDef(c.r.relName(c.m, x.table), true))
	}
	return text(x.indexDef(x.table.qualified(), false))
}

func constraintDefCall(c *call) result {
	x := c.m.constraint(c.oid(0))
	if x == nil {
		return none
	}
	return text(x.def(len(c.args) > 1 && c.args[1] == "t", func(r *rel) string { return c.r.relName(c.m, r) }))
}

func procCall(f func(s signature) string) func(c *call) result {
	return func(c *call) result {
		p := c.m.proc(c.oid(0))
		if p == nil {
			return none
		}
		return text(f(signature{c.r, c.m, p}))
	}
}

// functionResultCall is pg_get_function_result: NULL for a procedure.
func functionResultCall(c *call) result {
	if p := c.m.proc(c.oid(0)); p != nil && p.kind != 'p' {
		return text(signature{c.r, c.m, p}.result())
	}
	return none
}

func argDefaultCall(c *call) result {
	p := c.m.proc(c.oid(0))
	if p == nil {
		return none
	}
	args := p.arguments()
	n := c.number(1)
	if n < 1 || n > len(args) || args[n-1].deflt == "" {
		return none
	}
	return text(signature{c.r, c.m, p}.deflt(args[n-1]))
}

func userCall(c *call) result {
	name, ok := roleName(c.r.env, c.oid(0))
	if !ok {
		name = "unknown (OID=" + c.args[0] + ")"
	}
	return text(name)
}

func errNoColumn(col string, x *rel) error {
	return pgerror.New(pgerror.UndefinedColumn, "column \"%s\" of relation \"%s\" does not exist", col, x.name)
}

// attr is a column of a relation by its name, nil if there is none.
func (r *rel) attr(name string) *catalog.Column {
	for _, c := range r.attrs {
		if c.Name == name {
			return c
		}
	}
	return nil
}

// attrNum is a column of a relation by its number, nil if there is none.
func (r *rel) attrNum(num int) *catalog.Column {
	for n, c := range r.attrs {
		if n == num {
			return c
		}
	}
	return nil
}

func objDescriptionCall(c *call) result {
	class := ""
	if len(c.args) > 1 {
		class = c.args[1]
	}
	oid := c.oid(0)
	c.m.descriptions()
	for _, d := range c.m.commentsOn[oid] {
		if class == "" || class == descriptionClasses[d.class] {
			return text(d.text)
		}
	}
	return none
}

// descriptionClasses are the catalogs of what has comments.
var descriptionClasses = map[uint32]string{
	oidPgClass: "pg_class", oidPgNamespace: "pg_namespace", oidPgType: "pg_type", oidPgProc: "pg_proc", oidPgConstr: "pg_constraint",
}

func colDescriptionCall(c *call) result {
	x := c.m.byOID[c.oid(0)]
	if x == nil || x.table != nil {
		return none
	}
	if col := x.attrNum(c.number(1)); col != nil && col.Comment != "" {
		return text(col.Comment)
	}
	return none
}

// size estimates the bytes of a relation's rows.
func (c *call) size(x *rel) int64 {
	n := c.m.tuples(c.r.env, x)
	if x.kind == 'v' || x.system() || n < 0 {
		return 0
	}
	width := 8
	for _, col := range x.attrs {
		if w := col.Type.Kind().Width(); w > 0 {
			width += w
		} else {
			width += variableWidth
		}
	}
	return int64(n) * int64(width)
}

// variableWidth is what a value without a fixed width is taken to need.
const variableWidth = 24

func (c *call) indexesSize(x *rel) int64 {
	var n int64
	for _, i := range x.indexes {
		if i.obj != nil { // that of a key is the table itself
			n += c.size(i)
		}
	}
	return n
}

func integer(n int64) result { return text(strconv.FormatInt(n, 10)) }

func sizeCall(total bool) func(c *call) result {
	return func(c *call) result {
		x, err := c.rel(0)
		if x == nil {
			return result{null: true, err: err}
		}
		if len(c.args) > 1 {
			switch c.args[1] {
			case "main":
			case "fsm", "vm", "init": // there is but one kind of file
				return integer(0)
			default:
				return failed(pgerror.New(pgerror.InvalidParameterValue, "invalid fork name").
					WithHint("Valid fork names are \"main\", \"fsm\", \"vm\", and \"init\"."))
			}
		}
		n := c.size(x)
		if total {
			n += c.indexesSize(x)
		}
		return integer(n)
	}
}

func indexesSizeCall(c *call) result {
	x, err := c.rel(0)
	if x == nil {
		return result{null: true, err: err}
	}
	return integer(c.indexesSize(x))
}

func (c *call) allSize() result {
	var n int64
	for _, x := range c.m.rels {
		if x.obj != nil {
			n += c.size(x)
		}
	}
	return integer(n)
}

func databaseSizeCall(c *call) result {
	switch ok, err := findDatabase(c, 0); {
	case err != nil:
		return failed(err)
	case !ok:
		return none
	}
	return c.allSize()
}

func errNoDatabase(name string) error {
	return pgerror.New(pgerror.InvalidCatalogName, "database \"%s\" does not exist", name)
}

func tablespaceSizeCall(c *call) result {
	switch c.args[0] {
	case "pg_default", strconv.Itoa(tablespaceOID):
		return c.allSize()
	case "pg_global", "1664":
		return integer(0)
	}
	return failed(errNoTablespace(c.args[0]))
}

func errNoTablespace(name string) error {
	return pgerror.New(pgerror.UndefinedObject, "tablespace \"%s\" does not exist", name)
}

func filenodeCall(c *call) result {
	x, err := c.rel(0)
	if x == nil || x.kind == 'v' {
		return result{null: true, err: err}
	}
	return integer(int64(x.oid))
}

// replicaIdentityCall is the primary key of a table.
func replicaIdentityCall(c *call) result {
	if x := c.m.byOID[c.oid(0)]; x != nil {
		for _, i := range x.indexes {
			if i.constraint == 'p' {
				return integer(int64(i.oid))
			}
		}
	}
	return none
}

func filepathCall(c *call) result {
	r := filenodeCall(c)
	if r.err == nil && !r.null {
		r.text = "base/" + strconv.Itoa(databaseOID) + "/" + r.text
	}
	return r
}

func updatableCall(c *call) result {
	if x := c.m.byOID[c.oid(0)]; x != nil {
		return integer(c.m.changes(c.r.env, x))
	}
	return integer(0)
}

func columnUpdatableCall(c *call) result {
	x := c.m.byOID[c.oid(0)]
	return boolean(x != nil && c.number(1) > 0 && c.m.columnChanges(c.r.env, x, c.number(1)))
}

func publishableCall(c *call) result {
	x := c.m.byOID[c.oid(0)]
	if x == nil {
		return none
	}
	return boolean(x.kind == 'r' && !x.system())
}

func liveTuplesCall(c *call) result {
	x := c.m.byOID[c.oid(0)]
	if x == nil {
		return integer(0)
	}
	return integer(int64(max(c.m.tuples(c.r.env, x), 0)))
}

// What a btree index can do, by the names of the properties.
var (
	amProperties = map[string]bool{"can_order": true, "can_unique": true, "can_multi_col": true, "can_exclude": true, "can_include": true}
	xProperties  = map[string]bool{"clusterable": true, "index_scan": true, "bitmap_scan": true, "backward_scan": true}
	colProps     = map[string]bool{"orderable": true,
		"distance_orderable": false, "returnable": true, "search_array": true, "search_nulls": true}
)

func property(props map[string]bool, name string, exists bool) result {
	v, ok := props[strings.ToLower(name)]
	if !ok || !exists {
		return none
	}
	return boolean(v)
}

func amPropertyCall(c *call) result { return property(amProperties, c.args[1], c.oid(0) == amBtree) }

func (c *call) index(i int) *rel {
	if x := c.m.byOID[c.oid(i)]; x != nil && x.table != nil {
		return x
	}
	return nil
}

func indexPropertyCall(c *call) result { return property(xProperties, c.args[1], c.index(0) != nil) }

func columnPropertyCall(c *call) result {
	x := c.index(0)
	if x == nil || c.number(1) < 1 || c.number(1) > len(x.key) {
		return none
	}
	o := x.order(c.number(1) - 1)
	switch strings.ToLower(c.args[2]) {
	case "asc", "desc":
		return boolean((o&catalog.OrderDesc != 0) == strings.EqualFold(c.args[2], "desc"))
	case "nulls_first", "nulls_last":
		return boolean((o&catalog.OrderNullsFirst != 0) == strings.EqualFold(c.args[2], "nulls_first"))
	}
	return property(colProps, c.args[2], true)
}

func tableVisibleCall(c *call) result {
	x := c.m.byOID[c.oid(0)]
	if x == nil {
		return none
	}
	return boolean(c.r.visible(c.m, x.name) == x)
}

func typeVisibleCall(c *call) result {
	oid := c.oid(0)
	if x := c.m.byType[oid]; x != nil {
		return boolean(c.r.visible(c.m, x.name) == x)
	}
	t := types.Lookup(types.OID(oid))
	if t == nil {
		x := moreTypes().byOID[oid]
		if x == nil {
			return none
		}
		return boolean(x.Schema == catalog.SchemaPgCatalog || c.r.typeVisible(x.Schema, x.name))
	}
	if t.OID < types.FirstUser {
		return boolean(true)
	}
	return boolean(c.r.typeVisible(t.Schema, t.Name))
}

func functionVisibleCall(c *call) result {
	p := c.m.proc(c.oid(0))
	if p == nil {
		return none
	}
	return boolean(slices.Contains(c.r.env.SearchPath(), p.schema()))
}

// existsCall is the visibility of built-in objects: what exists can be seen.
func existsCall(exists func(oid uint32) bool) func(c *call) result {
	return func(c *call) result {
		if !exists(c.oid(0)) {
			return none
		}
		return boolean(true)
	}
}

func inFacts(name string) func(oid uint32) bool {
	return func(oid uint32) bool {
		t := factsOf(name)
		for i := range t.rows {
			if t.get(i, "oid") == strconv.Itoa(int(oid)) {
				return true
			}
		}
		return false
	}
}

// toReg is a lookup that gives NULL where the cast fails because there is no
// such object.
func toReg(t types.OID) func(c *call) result {
	return func(c *call) result {
		oid, err := c.r.RegOID(t, c.args[0])
		if err != nil {
			switch pgerror.As(err).Code {
			case pgerror.UndefinedTable, pgerror.UndefinedObject, pgerror.UndefinedFunction, pgerror.AmbiguousFunction, pgerror.InvalidSchemaName:
				return none
			}
			return failed(err)
		}
		return integer(int64(oid))
	}
}

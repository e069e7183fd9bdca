package pgcatalog

import (
	"slices"
	"strings"

	"github.com/streamdb/streamdb/catalog"
	"github.com/streamdb/streamdb/sql/pgerror"
	"github.com/streamdb/streamdb/sql/types"
)

// Reader answers the catalog functions of SQL and resolves the text forms of
// reg* types for one session.
type Reader struct{ env Env }

// NewReader makes the reader of a session's catalog.
func NewReader(env Env) *Reader { return &Reader{env} }

func (r *Reader) model() *model { return modelOf(r.env) }

// RegName is the text form of an OID of a reg* type: the name, with its schema
// if it would not be found without.
func (r *Reader) RegName(t types.OID, oid uint32) (string, bool) {
	m := r.model()
	switch t {
	case types.OIDRegclass:
		if x := m.byOID[oid]; x != nil {
			return r.relName(m, x), true
		}
	case types.OIDRegtype:
		return r.typeName(m, oid)
	case types.OIDRegproc:
		if p := m.proc(oid); p != nil {
			return r.procName(p), true
		}
	case types.OIDRegprocedure:
		if p := m.proc(oid); p != nil {
			name := quoteIdent(p.name) + "(" + r.typeList(m, p.args) + ")"
			if !slices.ContainsFunc(r.procsNamed([]string{p.name}), func(x *proc) bool { return x.oid == p.oid }) {
				name = quoteIdent(p.schema()) + "." + name
			}
			return name, true
		}
	case types.OIDRegoper:
		if o := operatorTable().byOID[oid]; o != nil {
			if len(operatorTable().byName[o.name]) > 1 {
				return "pg_catalog." + o.name, true
			}
			return o.name, true
		}
	case types.OIDRegoperator:
		if o := operatorTable().byOID[oid]; o != nil {
			return o.name + "(" + r.typeList(m, []uint32{o.left, o.right}) + ")", true
		}
	case types.OIDRegnamespace:
		for _, s := range m.schemas {
			if s.OID == oid {
				return quoteIdent(s.Name), true
			}
		}
	case types.OIDRegrole:
		if s, ok := roleName(r.env, oid); ok {
			return quoteIdent(s), true
		}
	case types.OIDRegcollation:
		if s := collationNames()[oid]; s != "" {
			return quoteIdent(s), true
		}
	}
	return "", false
}

// visible is the relation that a name without a schema finds.
func (r *Reader) visible(m *model, name string) *rel {
	for _, s := range r.env.SearchPath() {
		if x := m.byName[relName{s, name}]; x != nil {
			return x
		}
	}
	return nil
}

func (r *Reader) relName(m *model, x *rel) string {
	if r.visible(m, x.name) == x {
		return quoteIdent(x.name)
	}
	return x.qualified()
}

// typeName is the name of a type as format_type prints it.
func (r *Reader) typeName(m *model, oid uint32) (string, bool) {
	if i := types.Lookup(types.OID(oid)); i != nil {
		return i.OID.Under(r.typeVisible), true
	}
	x := m.byType[oid]
	if x == nil {
		s := r.moreTypeName(oid)
		return s, s != ""
	}
	if oid == x.arrayType {
		return r.relName(m, x) + "[]", true
	}
	return r.relName(m, x), true
}

// typeVisible reports whether the type of a name in a schema is the first of that name
// in the search path.
func (r *Reader) typeVisible(schema, name string) bool {
	return TypeVisible(r.env.Snapshot(), r.env.SearchPath(), schema, name)
}

// TypeVisible reports whether the type of a name in a schema is the first of that name
// in a search path.
func TypeVisible(snap *catalog.Snapshot, path []string, schema, name string) bool {
	for _, s := range path {
		switch {
		case s == schema:
			return true
		case snap.Get(catalog.KindType, s, name) != nil:
			return false
		}
		if o := snap.Get(catalog.KindTable, s, name); o != nil && o.Relation() {
			return false
		}
	}
	return false
}

// procName is the name of a function, with its schema unless it alone is found
// without.
func (r *Reader) procName(p *proc) string {
	if ps := r.procsNamed([]string{p.name}); len(ps) != 1 || ps[0].oid != p.oid {
		return quoteIdent(p.schema()) + "." + quoteIdent(p.name)
	}
	return quoteIdent(p.name)
}

func (r *Reader) typeList(m *model, oids []uint32) string {
	parts := make([]string, len(oids))
	for i, o := range oids {
		parts[i] = "NONE"
		if o != 0 {
			parts[i] = signature{r: r, m: m}.typeName(o)
		}
	}
	return strings.Join(parts, ",")
}

// RegOID finds the object that name denotes for a reg* type.
func (r *Reader) RegOID(t types.OID, name string) (uint32, error) {
	switch t {
	case types.OIDRegclass:
		x, err := r.relation(name)
		if err != nil {
			return 0, err
		}
		return x.oid, nil
	case types.OIDRegtype:
		return r.regtype(name)
	case types.OIDRegproc:
		return r.regproc(name)
	case types.OIDRegprocedure:
		return r.regprocedure(name)
	case types.OIDRegoper:
		return regoper(name)
	case types.OIDRegoperator:
		return r.regoperator(name)
	}
	parts, err := types.SplitName(name)
	if err != nil {
		return 0, err
	}
	last := parts[len(parts)-1]
	switch t {
	case types.OIDRegnamespace:
		if len(parts) > 1 {
			return 0, errNameSyntax()
		}
		s := r.model().snap.Schema(last)
		if s == nil {
			return 0, errNoSchema(last)
		}
		return s.OID, nil
	case types.OIDRegrole:
		if len(parts) > 1 {
			return 0, errNameSyntax()
		}
		oid, ok := roleByName(r.env, last)
		if !ok {
			return 0, errNoRole(last)
		}
		return oid, nil
	case types.OIDRegcollation:
		for oid, s := range collationNames() {
			if s == last {
				return oid, nil
			}
		}
		return 0, pgerror.New(pgerror.UndefinedObject, "collation \"%s\" for encoding \"UTF8\" does not exist", name)
	}
	if len(parts) == 3 && parts[0] == r.env.Database() {
		parts = parts[1:]
	}
	if len(parts) == 2 && r.model().snap.Schema(parts[0]) == nil {
		return 0, errNoSchema(parts[0])
	}
	return types.TextSearchOID(t, parts)
}

func errNameSyntax() error { return pgerror.New(pgerror.InvalidName, "invalid name syntax") }

func errNoSchema(name string) error {
	return pgerror.New(pgerror.InvalidSchemaName, "schema \"%s\" does not exist", name)
}

// relation finds the relation that a text names.
func (r *Reader) relation(name string) (*rel, error) {
	parts, err := types.SplitName(name)
	if err != nil {
		return nil, err
	}
	if len(parts) > 3 {
		return nil, pgerror.New(pgerror.SyntaxError, "improper relation name (too many dotted names): %s", strings.Join(parts, "."))
	}
	if len(parts) == 3 {
		if parts[0] != r.env.Database() {
			return nil, pgerror.New(pgerror.FeatureNotSupported, "cross-database references are not implemented: \"%s\"", strings.Join(parts, "."))
		}
		parts = parts[1:]
	}
	m := r.model()
	var x *rel
	if len(parts) == 1 {
		x = r.visible(m, parts[0])
	} else {
		if m.snap.Schema(parts[0]) == nil {
			return nil, errNoSchema(parts[0])
		}
		x = m.byName[relName{parts[0], parts[1]}]
	}
	if x == nil {
		return nil, pgerror.New(pgerror.UndefinedTable, "relation \"%s\" does not exist", strings.Join(parts, "."))
	}
	return x, nil
}

// regtype finds a type: a built-in one, or the row type of a relation.
func (r *Reader) regtype(name string) (uint32, error) {
	if !strings.Contains(name, `"`) { // quoted, "integer" is no longer the word of the grammar
		if t, ok := types.ParseName(name); ok {
			return uint32(t.OID), nil
		}
	}
	missing := pgerror.New(pgerror.UndefinedObject, "type \"%s\" does not exist", strings.TrimSpace(name))
	base, array := strings.CutSuffix(strings.TrimSpace(name), "[]")
	parts, err := types.SplitName(base)
	if err != nil || len(parts) > 2 {
		return 0, missing
	}
	missing.Message = "type \"" + strings.Join(parts, ".") + strings.TrimSpace(name)[len(base):] + "\" does not exist"
	m := r.model()
	find := func(schema, nm string) *rel {
		if schema == "" {
			return r.visible(m, nm)
		}
		return m.byName[relName{schema, nm}]
	}
	schema, last := "", parts[len(parts)-1]
	if len(parts) == 2 {
		if schema = parts[0]; m.snap.Schema(schema) == nil {
			return 0, errNoSchema(schema)
		}
	}
	if schema == "" || schema == catalog.SchemaPgCatalog {
		if o, ok := types.ByName(last); ok {
			if array {
				o = o.Array()
			}
			return uint32(o), nil
		}
	}
	if o := m.snap.Resolve(catalog.KindType, schema, last, r.env.SearchPath()); o != nil {
		if array {
			return uint32(o.Def.Array), nil
		}
		return o.OID, nil
	}
	if o := r.moreTypeOID(schema, last, array); o != 0 {
		return o, nil
	}
	x := find(schema, last)
	if x == nil || x.rowType == 0 {
		if elem, ok := strings.CutPrefix(last, "_"); ok && !array {
			if x = find(schema, elem); x != nil && x.rowType != 0 {
				return x.arrayType, nil
			}
		}
		return 0, missing
	}
	if array {
		return x.arrayType, nil
	}
	return x.rowType, nil
}

func (r *Reader) regproc(name string) (uint32, error) {
	parts, err := types.SplitName(name)
	if err != nil {
		return 0, err
	}
	ps := r.procsNamed(parts)
	switch len(ps) {
	case 0:
		return 0, pgerror.New(pgerror.UndefinedFunction, "function \"%s\" does not exist", name)
	case 1:
		return ps[0].oid, nil
	}
	return 0, pgerror.New(pgerror.AmbiguousFunction, "more than one function named \"%s\"", name)
}

// procsNamed are the functions of a name, without a schema those along the
// search path: one hides another of the same arguments behind it.
func (r *Reader) procsNamed(parts []string) []*proc {
	path := r.env.SearchPath()
	if len(parts) > 1 {
		path = parts[len(parts)-2 : len(parts)-1]
	} else if !slices.Contains(path, catalog.SchemaPgCatalog) {
		path = append([]string{catalog.SchemaPgCatalog}, path...)
	}
	name := parts[len(parts)-1]
	var out []*proc
	add := func(p *proc) {
		if !slices.ContainsFunc(out, func(x *proc) bool { return slices.Equal(x.args, p.args) }) {
			out = append(out, p)
		}
	}
	m := r.model()
	for _, schema := range path {
		for _, p := range procs().byName[name] {
			if p.schema() == schema {
				add(p)
			}
		}
		for _, o := range m.snap.Functions(schema, name) {
			add(userProc(o))
		}
	}
	return out
}

// splitCall takes "name(type,type)" apart.
func (r *Reader) splitCall(s string) (name string, args []uint32, err error) {
	name, list, ok := strings.Cut(s, "(")
	if !ok {
		return "", nil, pgerror.New(pgerror.InvalidTextRepresentation, "expected a left parenthesis")
	}
	list, ok = strings.CutSuffix(strings.TrimSpace(list), ")")
	if !ok {
		return "", nil, pgerror.New(pgerror.InvalidTextRepresentation, "expected a right parenthesis")
	}
	if strings.TrimSpace(list) == "" {
		return name, nil, nil
	}
	depth, from := 0, 0
	for i := 0; i <= len(list); i++ {
		switch {
		case i < len(list) && list[i] == '(':
			depth++
		case i < len(list) && list[i] == ')':
			depth--
		case i == len(list) || list[i] == ',' && depth == 0:
			t := strings.TrimSpace(list[from:i])
			oid := uint32(0)
			if !strings.EqualFold(t, "none") {
				if oid, err = r.regtype(t); err != nil {
					return "", nil, err
				}
			}
			args = append(args, oid)
			from = i + 1
		}
	}
	return name, args, nil
}

func (r *Reader) regprocedure(s string) (uint32, error) {
	name, args, err := r.splitCall(s)
	if err != nil {
		return 0, err
	}
	parts, err := types.SplitName(name)
	if err != nil {
		return 0, err
	}
	for _, p := range r.procsNamed(parts) {
		if slices.Equal(p.args, args) {
			return p.oid, nil
		}
	}
	return 0, pgerror.New(pgerror.UndefinedFunction, "function \"%s\" does not exist", s)
}

func regoper(name string) (uint32, error) {
	os := operatorTable().byName[strings.TrimPrefix(name, "pg_catalog.")]
	switch len(os) {
	case 0:
		return 0, pgerror.New(pgerror.UndefinedFunction, "operator does not exist: %s", name)
	case 1:
		return os[0].oid, nil
	}
	return 0, pgerror.New(pgerror.AmbiguousFunction, "more than one operator named %s", name)
}

func (r *Reader) regoperator(s string) (uint32, error) {
	name, args, err := r.splitCall(s)
	if err != nil {
		return 0, err
	}
	if len(args) != 2 {
		return 0, pgerror.New(pgerror.UndefinedParameter, "missing argument").WithHint("Use NONE to denote the missing argument of a unary operator.")
	}
	for _, o := range operatorTable().byName[strings.TrimPrefix(name, "pg_catalog.")] {
		if o.left == args[0] && o.right == args[1] {
			return o.oid, nil
		}
	}
	return 0, pgerror.New(pgerror.UndefinedFunction, "operator does not exist: %s", s)
}

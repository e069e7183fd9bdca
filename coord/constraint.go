package coord

import (
	"fmt"
	"slices"
	"strings"

	"github.com/streamdb/streamdb/catalog"
	"github.com/streamdb/streamdb/sql/expr"
	"github.com/streamdb/streamdb/sql/parser"
	"github.com/streamdb/streamdb/sql/pgerror"
	"github.com/streamdb/streamdb/sql/planner"
	"github.com/streamdb/streamdb/sql/types"
)

// constraint adds a constraint to the table.
func (n *newTable) constraint(c *parser.Constraint) error {
	cols := make([]int, len(c.Columns))
	for i, name := range c.Columns {
		if cols[i] = n.o.Column(name); cols[i] < 0 {
			what := "column \"%s\" named in key does not exist"
			if c.Kind == parser.ConstraintForeignKey {
				what = "column \"%s\" referenced in foreign key constraint does not exist"
			}
			return pgerror.New(pgerror.UndefinedColumn, what, name).At(c.Pos)
		}
		if slices.Contains(cols[:i], cols[i]) && c.Kind != parser.ConstraintForeignKey {
			what := "unique"
			if c.Kind == parser.ConstraintPrimaryKey {
				what = "primary key"
			}
			return pgerror.New(pgerror.DuplicateColumn, "column \"%s\" appears twice in %s constraint", name, what).At(c.Pos)
		}
	}
	if c.Name != "" && constraintNamed(n.o, c.Name) {
		return pgerror.New(pgerror.DuplicateObject, "constraint \"%s\" for relation \"%s\" already exists", c.Name, n.o.Name)
	}
	switch c.Kind {
	case parser.ConstraintPrimaryKey, parser.ConstraintUnique:
		return n.key(c, cols)
	case parser.ConstraintCheck:
		return n.check(c)
	case parser.ConstraintForeignKey:
		return n.foreign(c, cols)
	}
	return nil
}

// constraintNamed reports whether a table has a constraint of that name.
func constraintNamed(o *catalog.Object, name string) bool {
	return slices.ContainsFunc(o.Keys(), func(k catalog.Key) bool { return k.Name == name && !k.Index }) ||
		slices.ContainsFunc(o.Checks, func(c catalog.Check) bool { return c.Name == name }) ||
		slices.ContainsFunc(o.Foreign, func(f catalog.ForeignKey) bool { return f.Name == name })
}

// columnsText joins the names of columns.
func columnsText(o *catalog.Object, cols []int, sep string, quote bool) string {
	out := make([]string, len(cols))
	for i, k := range cols {
		if out[i] = o.Columns[k].Name; quote {
			out[i] = parser.QuoteIdent(out[i])
		}
	}
	return strings.Join(out, sep)
}

// key adds a PRIMARY KEY or UNIQUE constraint, with the index that enforces it
// where the table's own order does not.
func (n *newTable) key(c *parser.Constraint, cols []int) error {
	o := n.o
	primary := c.Kind == parser.ConstraintPrimaryKey
	if c.UsingIndex != "" {
		return pgerror.Unsupported("ADD CONSTRAINT USING INDEX").At(c.Pos)
	}
	if primary && len(o.PrimaryKey) > 0 {
		return pgerror.New(pgerror.InvalidTableDefinition, "multiple primary keys for table \"%s\" are not allowed", o.Name).At(c.Pos)
	}
	for _, k := range cols {
		if t := o.Columns[k].Type; !hasOrder(t) {
			return pgerror.New(pgerror.UndefinedObject, "data type %s has no default operator class for access method \"btree\"", types.Of(t.OID)).
				WithHint("You must specify an operator class for the index or define a default operator class for the data type.")
		}
	}
	name := c.Name
	switch {
	case name == "" && primary:
		name = n.freeName(o.Name, "", "pkey")
	case name == "":
		name = n.freeName(o.Name, columnsText(o, cols, "_", false), "key")
	case n.taken(name):
		return pgerror.New(pgerror.DuplicateTable, "relation \"%s\" already exists", name)
	}
	k := catalog.Key{Name: name, Columns: cols, NullsNotDistinct: c.NullsNotDistinct}
	if !primary || encodedKey(o, cols) {
		info := &catalog.IndexInfo{Unique: true, Constraint: true, Internal: primary}
		x, err := n.index(name, cols, info)
		if err != nil {
			return err
		}
		k.Object = x.ID
	}
	if !primary {
		o.Unique = append(o.Unique, k)
		return nil
	}
	o.PrimaryKey, o.Primary = cols, &k
	for _, c := range cols {
		o.Columns[c].NotNull = true
	}
	return nil
}

// hasOrder reports whether values of a type have an order.
func hasOrder(t types.Type) bool {
	t = t.Storage()
	_, err := expr.NewOp("<", &expr.Column{Typ: t}, &expr.Column{Typ: t}, 0)
	return err == nil
}

// index makes an index that is kept with the table.
func (n *newTable) index(name string, cols []int, info *catalog.IndexInfo) (*catalog.Object, error) {
	return n.indexOf(&catalog.Object{Key: cols}, name, info)
}

// indexOf makes an index, with the key and the rows of x, that is kept with the table.
func (n *newTable) indexOf(x *catalog.Object, name string, info *catalog.IndexInfo) (*catalog.Object, error) {
	x.Schema, x.Name, x.Kind, x.Columns = n.o.Schema, name, catalog.KindIndex, n.o.Columns
	x.Table, x.Index, x.Temporary = n.o.ID, info, n.o.Temporary
	info.Encoded = encodedIndex(x)
	x, err := n.s.c.newObject(x)
	if err != nil {
		return nil, err
	}
	x.Deps = append(x.Deps, n.o.ID)
	if info.Internal { // the name is not one that a user could meet
		x.Name = fmt.Sprintf("%s:%d", name, x.ID)
	}
	x.SQL = indexSQL(n.o, x)
	n.with = append(n.with, x)
	return x, nil
}

// indexSQL writes the CREATE INDEX of an index.
func indexSQL(t, x *catalog.Object) string {
	unique := ""
	if x.UniqueIndex() {
		unique = "UNIQUE "
	}
	text := fmt.Sprintf("CREATE %sINDEX %s ON %s.%s USING btree (%s)", unique, quoteName(x.Name), quoteName(t.Schema), quoteName(t.Name), indexKeyText(t, x))
	for _, k := range t.Unique {
		if k.Object == x.ID && k.NullsNotDistinct {
			text += " NULLS NOT DISTINCT"
		}
	}
	return text + x.WhereText()
}

// indexKeyText lists the key of an index.
func indexKeyText(t, x *catalog.Object) string {
	out := make([]string, len(x.Key))
	for i, k := range x.Key {
		out[i] = x.KeyText(k, t.Columns, quoteName) + x.Order(i).String()
	}
	return strings.Join(out, ", ")
}

func quotedColumns(t *catalog.Object, key []int) string {
	out := make([]string, len(key))
	for i, k := range key {
		out[i] = quoteName(t.Columns[k].Name)
	}
	return strings.Join(out, ", ")
}

// check adds a CHECK constraint.
func (n *newTable) check(c *parser.Constraint) error {
	e, err := planner.BindExpr(n.s.bindContext(nil), n.text, c.Check, n.o, "check constraints", types.Bool)
	if err == nil {
		err = expr.CheckTimedLiterals(e, n.s.exprContext())
	}
	if err != nil {
		return err
	}
	name := c.Name
	if name == "" {
		used := map[int]bool{}
		expr.Walk(e, func(x expr.Expr) bool {
			if col, ok := x.(*expr.Column); ok {
				used[col.Index] = true
			}
			return true
		})
		column := ""
		if len(used) == 1 {
			for i := range used {
				column = n.o.Columns[i].Name
			}
		}
		for i := 0; ; i++ {
			label := "check"
			if i > 0 {
				label = fmt.Sprint("check", i)
			}
			if name = catalog.ObjectName(n.o.Name, column, label); !constraintNamed(n.o, name) {
				break
			}
		}
	}
	n.o.Checks = append(n.o.Checks, catalog.Check{Name: name, Expr: c.Check.SQL, NotValid: c.NotValid})
	return nil
}

// foreign adds a FOREIGN KEY constraint.
func (n *newTable) foreign(c *parser.Constraint, cols []int) error {
	o := n.o
	parent := n.d.cat.Resolve(catalog.KindTable, c.RefTable.Schema, c.RefTable.Name, n.s.relationPath())
	if c.RefTable.Name == o.Name && (c.RefTable.Schema == "" && (parent == nil || parent.ID == o.ID) || c.RefTable.Schema == o.Schema) {
		parent = o
	}
	switch {
	case parent == nil:
		return undefinedRelation(c.RefTable.Schema, c.RefTable.Name)
	case parent.Kind != catalog.KindTable:
		return pgerror.New(pgerror.WrongObjectType, "referenced relation \"%s\" is not a table", parent.Name)
	case parent.Temporary && !o.Temporary:
		return pgerror.New(pgerror.InvalidTableDefinition, "constraints on permanent tables may reference only permanent tables")
	case !parent.Temporary && o.Temporary:
		return pgerror.New(pgerror.InvalidTableDefinition, "constraints on temporary tables may reference only temporary tables")
	}
	fk := catalog.ForeignKey{Name: c.Name, RefTable: parent.ID, OnDelete: c.OnDelete, OnUpdate: c.OnUpdate, MatchFull: c.MatchFull,
		Deferrable: c.Deferrable, Deferred: c.Deferred, NotValid: c.NotValid}
	ref, err := n.referencedKey(parent, c)
	if err != nil {
		return err
	}
	if len(ref) != len(cols) {
		return pgerror.New(pgerror.InvalidForeignKey, "number of referencing and referenced columns for foreign key disagree")
	}
	if fk.Name == "" {
		for i := 0; ; i++ {
			label := "fkey"
			if i > 0 {
				label = fmt.Sprint("fkey", i)
			}
			if fk.Name = catalog.ObjectName(o.Name, columnsText(o, cols, "_", false), label); !constraintNamed(o, fk.Name) {
				break
			}
		}
	}
	fk.RefColumns, fk.Columns = keyOrder(parent, ref, cols)
	for _, name := range c.SetColumns {
		i := o.Column(name)
		if !slices.Contains(cols, i) {
			return pgerror.New(pgerror.InvalidColumnReference, "column \"%s\" referenced in ON DELETE SET action must be part of foreign key", name)
		}
		fk.SetColumns = append(fk.SetColumns, i)
	}
	for j := range cols {
		a, b := o.Columns[cols[j]], parent.Columns[ref[j]]
		if a.Generated != "" && (setsColumns(c.OnUpdate) || setsColumns(c.OnDelete) || c.OnUpdate == "cascade") {
			return pgerror.New(pgerror.SyntaxError, "invalid foreign key action for foreign key constraint containing generated column")
		}
		if err := keyTypes(fk.Name, &a, &b); err != nil {
			return err
		}
	}
	have := *o
	if id, _ := arrangement(n.d.cat, &have, fk.Columns); id == 0 {
		x, err := n.index(fk.Name, fk.Columns, &catalog.IndexInfo{Internal: true})
		if err != nil {
			return err
		}
		fk.Object = x.ID
	}
	o.Foreign = append(o.Foreign, fk)
	return nil
}

// keyFamilies are the types whose values are compared with each other in keys.
var keyFamilies = map[types.OID]int{
	types.OIDInt2: 1, types.OIDInt4: 1, types.OIDInt8: 1, types.OIDFloat4: 2, types.OIDFloat8: 2,
	types.OIDDate: 3, types.OIDTimestamp: 3, types.OIDTimestampTZ: 3, types.OIDText: 4, types.OIDVarchar: 4, types.OIDName: 4,
}

// keyTypes checks that the column a of a foreign key can be compared with b, that it
// refers to.
func keyTypes(name string, a, b *catalog.Column) error {
	eq, err := expr.NewOp("=", &expr.Column{Typ: b.Type.Storage()}, &expr.Column{Typ: a.Type.Storage()}, 0)
	at, bt := a.Type.Storage(), b.Type.Storage()
	fits := expr.CanCoerce(at, bt, expr.CastImplicit) || keyFamilies[at.OID] != 0 && keyFamilies[at.OID] == keyFamilies[bt.OID]
	if err != nil || eq.Type().OID != types.OIDBool || !fits {
		return pgerror.New(pgerror.DatatypeMismatch, "foreign key constraint \"%s\" cannot be implemented", name).
			WithDetail("Key columns \"%s\" and \"%s\" are of incompatible types: %s and %s.", a.Name, b.Name, types.Of(a.Type.OID), types.Of(b.Type.OID))
	}
	return nil
}

func setsColumns(action string) bool { return strings.HasPrefix(action, "set") }

// referencedKey is the columns that a foreign key refers to.
func (n *newTable) referencedKey(parent *catalog.Object, c *parser.Constraint) ([]int, error) {
	if len(c.RefColumns) == 0 {
		if len(parent.PrimaryKey) == 0 {
			return nil, pgerror.New(pgerror.UndefinedObject, "there is no primary key for referenced table \"%s\"", parent.Name)
		}
		return parent.PrimaryKey, nil
	}
	var ref []int
	for _, name := range c.RefColumns {
		i := parent.Column(name)
		if i < 0 {
			return nil, pgerror.New(pgerror.UndefinedColumn, "column \"%s\" referenced in foreign key constraint does not exist", name)
		}
		ref = append(ref, i)
	}
	for _, k := range parent.Keys() {
		if !k.Derived && sameColumns(k.Columns, ref) {
			return ref, nil
		}
	}
	return nil, pgerror.New(pgerror.InvalidForeignKey, "there is no unique constraint matching given keys for referenced table \"%s\"", parent.Name)
}

func sameColumns(a, b []int) bool {
	return slices.Equal(slices.Sorted(slices.Values(a)), slices.Sorted(slices.Values(b)))
}

// keyOrder brings the columns of a foreign key in the order of the key that it
// refers to, by which rows are looked up.
func keyOrder(parent *catalog.Object, ref, cols []int) (orderedRef, orderedCols []int) {
	for _, k := range parent.Keys() {
		if !k.Derived && sameColumns(k.Columns, ref) {
			for _, r := range k.Columns {
				orderedRef = append(orderedRef, r)
				orderedCols = append(orderedCols, cols[slices.Index(ref, r)])
			}
			return orderedRef, orderedCols
		}
	}
	return ref, cols
}

// foreignSQL writes a foreign key as a table constraint.
func foreignSQL(cat *catalog.Snapshot, o *catalog.Object, f *catalog.ForeignKey) string {
	parent := cat.ByID(f.RefTable)
	if f.RefTable == o.ID {
		parent = o
	}
	if parent == nil {
		return ""
	}
	var b strings.Builder
	fmt.Fprintf(&b, "FOREIGN KEY (%s) REFERENCES %s.%s (%s)", quotedColumns(o, f.Columns), quoteName(parent.Schema), quoteName(parent.Name), quotedColumns(parent, f.RefColumns))
	if f.MatchFull {
		b.WriteString(" MATCH FULL")
	}
	if f.OnUpdate != "" {
		b.WriteString(" ON UPDATE " + strings.ToUpper(f.OnUpdate))
	}
	if f.OnDelete != "" {
		b.WriteString(" ON DELETE " + strings.ToUpper(f.OnDelete))
		if f.SetColumns != nil {
			b.WriteString(" (" + quotedColumns(o, f.SetColumns) + ")")
		}
	}
	if f.Deferrable {
		b.WriteString(" DEFERRABLE")
	}
	if f.Deferred {
		b.WriteString(" INITIALLY DEFERRED")
	}
	if f.NotValid {
		b.WriteString(" NOT VALID")
	}
	return b.String()
}

// tableSQL writes the CREATE TABLE of a table.
func tableSQL(cat *catalog.Snapshot, o *catalog.Object) string {
	var b strings.Builder
	fmt.Fprintf(&b, "CREATE TABLE %s.%s (", quoteName(o.Schema), quoteName(o.Name))
	for i, c := range o.Columns {
		if i > 0 {
			b.WriteString(", ")
		}
		fmt.Fprintf(&b, "%s %s", quoteName(c.Name), typeName(c.Type))
		if c.Collation != "" {
			b.WriteString(" COLLATE " + quoteName(c.Collation))
		}
		switch {
		case c.Identity != "":
			fmt.Fprintf(&b, " GENERATED %s AS IDENTITY", strings.ToUpper(c.Identity))
		case c.Generated != "":
			fmt.Fprintf(&b, " GENERATED ALWAYS AS (%s) STORED", c.Generated)
		case c.Default != "":
			b.WriteString(" DEFAULT " + c.Default)
		}
		if c.NotNull {
			b.WriteString(" NOT NULL")
		}
	}
	implied := func(k *catalog.Key, label string) string {
		if k.Name == catalog.ObjectName(o.Name, label, "key") || label == "" && k.Name == catalog.ObjectName(o.Name, "", "pkey") {
			return ""
		}
		return "CONSTRAINT " + quoteName(k.Name) + " "
	}
	if o.Primary != nil {
		fmt.Fprintf(&b, ", %sPRIMARY KEY (%s)", implied(o.Primary, ""), quotedColumns(o, o.PrimaryKey))
	}
	for _, u := range o.Unique {
		if u.Derived {
			continue
		}
		nulls := ""
		if u.NullsNotDistinct {
			nulls = "NULLS NOT DISTINCT "
		}
		fmt.Fprintf(&b, ", %sUNIQUE %s(%s)", implied(&u, columnsText(o, u.Columns, "_", false)), nulls, quotedColumns(o, u.Columns))
	}
	for _, c := range o.Checks {
		fmt.Fprintf(&b, ", CONSTRAINT %s CHECK (%s)", quoteName(c.Name), c.Expr)
	}
	for i := range o.Foreign {
		if text := foreignSQL(cat, o, &o.Foreign[i]); text != "" {
			fmt.Fprintf(&b, ", CONSTRAINT %s %s", quoteName(o.Foreign[i].Name), text)
		}
	}
	b.WriteString(")")
	if o.AppendOnly {
		b.WriteString(" APPEND ONLY")
	}
	if o.OnConflict != "" {
		b.WriteString(" ON CONFLICT " + strings.ToUpper(o.OnConflict))
	}
	if o.Version != nil {
		fmt.Fprintf(&b, " WITH VERSION COLUMN (%s)", quotedColumns(o, o.Version))
	}
	return b.String()
}

// typeName is a type as SQL writes it.
func typeName(t types.Type) string { return t.String() }

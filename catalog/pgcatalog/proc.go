package pgcatalog

import (
	"encoding/binary"
	"slices"
	"sort"
	"strings"
	"sync"

	"github.com/streamdb/streamdb/catalog"
	"github.com/streamdb/streamdb/columnar"
	"github.com/streamdb/streamdb/sql/expr"
	"github.com/streamdb/streamdb/sql/types"
)

func init() {
	keepAll := func(name string) definition {
		return definition{compute: func(_ *model, _ Env, f *filler) { factsOf(name).fill(f, nil) }}
	}
	defs := map[string]definition{
		"pg_proc":      {compute: pgProcs, pathed: true},
		"pg_operator":  {compute: operators},
		"pg_aggregate": {compute: aggregates},
	}
	for _, name := range []string{"pg_am", "pg_language", "pg_collation", "pg_cast", "pg_opfamily", "pg_opclass", "pg_amop", "pg_amproc",
		"pg_ts_config", "pg_ts_config_map", "pg_ts_dict", "pg_ts_parser", "pg_ts_template"} {
		defs[name] = keepAll(name)
	}
	define(defs)
}

// proc is a row of pg_proc: a function that can be called, or one that another
// catalog refers to (that of an operator, a cast, a type).
type proc struct {
	oid                uint32
	name               string
	nsp                string // "" for those that come with the server
	kind               byte   // 'f', 'a', 'w'
	lang               uint32
	cost, rows         float64
	variadic           uint32
	strict, set        bool
	volatile, parallel byte
	ret                uint32
	args, all          []uint32 // input arguments; all, if there are others
	modes              string   // of all
	names              []string // of all, or of args
	defaults           []string // of the last arguments
	src                string
}

// schema is where the function is: the helpers of information_schema begin with _pg_.
func (p *proc) schema() string {
	if p.nsp != "" {
		return p.nsp
	}
	if strings.HasPrefix(p.name, "_pg_") {
		return catalog.SchemaInformation
	}
	return catalog.SchemaPgCatalog
}

// signatureKey identifies an overload.
func signatureKey(name string, args []uint32) string {
	b := append([]byte(name), 0)
	for _, a := range args {
		b = binary.LittleEndian.AppendUint32(b, a)
	}
	return string(b)
}

func typeOIDs(ts []types.Type) []uint32 {
	out := make([]uint32, len(ts))
	for i, t := range ts {
		out[i] = uint32(t.OID)
	}
	return out
}

// procTable is all of pg_proc.
type procTable struct {
	list   []*proc // by OID
	byOID  map[uint32]*proc
	byName map[string][]*proc
}

// firstOwnProc is where the OIDs of functions begin that PostgreSQL does not have.
const firstOwnProc = 14000

var procs = sync.OnceValue(func() *procTable {
	own := ownProcs()
	t := &procTable{byOID: map[uint32]*proc{}, byName: map[string][]*proc{}}
	facts := readRows("pg_proc")
	for i := range facts.rows {
		p := factProc(facts, i)
		sig := signatureKey(p.name, p.args)
		if own[sig] != nil || p.kind == 'w' || facts.get(i, "used") == "1" {
			t.list = append(t.list, p)
		}
		delete(own, sig)
	}
	var rest []string
	for sig := range own {
		rest = append(rest, sig)
	}
	sort.Strings(rest)
	for i, sig := range rest {
		p := own[sig]
		p.oid = firstOwnProc + uint32(i)
		t.list = append(t.list, p)
	}
	for _, p := range t.list {
		t.byOID[p.oid] = p
		t.byName[p.name] = append(t.byName[p.name], p)
	}
	return t
})

// factProc is row i of the facts.
func factProc(t *factRows, i int) *proc {
	get := func(col string) string {
		if s := t.get(i, col); s != factNull {
			return s
		}
		return ""
	}
	p := &proc{
		oid: uint32(number(get("oid"))), name: get("proname"), kind: get("prokind")[0], lang: uint32(number(get("prolang"))),
		cost: float64(number(get("procost"))), rows: float64(number(get("prorows"))), variadic: uint32(number(get("provariadic"))),
		strict: get("proisstrict") == "1", set: get("proretset") == "1", volatile: get("provolatile")[0], parallel: get("proparallel")[0],
		ret: uint32(number(get("prorettype"))), args: oidList(strings.Fields(get("proargtypes"))), src: get("prosrc"),
	}
	p.all = oidList(braceList(get("proallargtypes")))
	p.modes = strings.Join(braceList(get("proargmodes")), "")
	for _, n := range braceList(get("proargnames")) {
		p.names = append(p.names, strings.Trim(n, `"`))
	}
	if d := get("pg_get_expr"); d != "" {
		p.defaults = strings.Split(d, ", ")
	}
	return p
}

// braceList reads an array literal of plain words.
func braceList(s string) []string {
	s = strings.Trim(s, "{}")
	if s == "" {
		return nil
	}
	return strings.Split(s, ",")
}

func oidList(fields []string) []uint32 {
	var out []uint32
	for _, s := range fields {
		out = append(out, uint32(number(s)))
	}
	return out
}

// ownProcs are the functions that can be called, by signature.
func ownProcs() map[string]*proc {
	out := map[string]*proc{}
	add := func(p *proc) {
		p.lang, p.cost, p.parallel, p.src = langInternal, 1, 's', p.name
		out[signatureKey(p.name, p.args)] = p
	}
	volatility := func(v expr.Volatility) byte { return "isv"[v] }
	variadic := func(args []uint32, is bool) uint32 {
		if !is || len(args) == 0 {
			return 0
		}
		last := types.OID(args[len(args)-1])
		if e := last.Elem(); e != 0 {
			return uint32(e)
		}
		if last == types.OIDAnyArray {
			return uint32(types.OIDAnyElement)
		}
		return uint32(last)
	}
	for f := range expr.AllFunctions() {
		p := &proc{name: f.Name, kind: 'f', strict: f.Strict, volatile: volatility(f.Volatility), ret: uint32(f.Ret.OID), args: typeOIDs(f.Args), names: f.ArgNames}
		p.variadic, p.defaults = variadic(p.args, f.Variadic), defaultTexts(f.Defaults)
		add(p)
	}
	for a := range expr.AllAggregates() {
		p := &proc{name: a.Name, kind: 'a', volatile: 'i', ret: uint32(a.Ret.OID), args: typeOIDs(a.Args)}
		p.variadic = variadic(p.args, a.Variadic)
		add(p)
	}
	for f := range expr.AllTableFunctions() {
		p := &proc{name: f.Name, kind: 'f', strict: f.Strict, set: true, rows: 1000, volatile: volatility(f.Volatility), args: typeOIDs(f.Args), names: f.ArgNames,
			ret: uint32(types.OIDRecord)}
		p.variadic, p.defaults = variadic(p.args, f.Variadic), defaultTexts(f.Defaults)
		if len(f.Cols) == 1 {
			p.ret = uint32(f.Cols[0].OID)
		} else {
			p.addColumns(f)
		}
		add(p)
	}
	return out
}

// addColumns gives a function that returns several columns its output arguments.
func (p *proc) addColumns(f *expr.TableFunction) {
	p.all = append(slices.Clone(p.args), typeOIDs(f.Cols)...)
	p.modes = strings.Repeat("i", len(p.args)) + strings.Repeat("o", len(f.Cols))
	names := make([]string, len(p.args))
	copy(names, f.ArgNames)
	p.names = append(names, f.Names...)
}

func defaultTexts(ds []*expr.Const) []string {
	var out []string
	for _, d := range ds {
		out = append(out, expr.String(d, nil))
	}
	return out
}

// supportProc is the OID of a function that is known by its name alone, 0 for "-".
func supportProc(name string) uint32 {
	if name == "-" {
		return 0
	}
	if ps := procs().byName[name]; len(ps) > 0 {
		return ps[0].oid
	}
	return 0
}

func pgProcs(m *model, e Env, f *filler) {
	ps := m.allProcs()
	f.n = len(ps)
	f.oid("oid", func(i int) uint32 { return ps[i].oid })
	f.text("proname", func(i int) string { return ps[i].name })
	f.oid("pronamespace", func(i int) uint32 {
		if s := m.snap.Schema(ps[i].schema()); s != nil {
			return s.OID
		}
		return nspCatalog
	})
	f.all(roleOID, "proowner")
	f.oid("prolang", func(i int) uint32 { return ps[i].lang })
	f.float("procost", func(i int) float64 { return ps[i].cost })
	f.float("prorows", func(i int) float64 { return ps[i].rows })
	f.oid("provariadic", func(i int) uint32 { return ps[i].variadic })
	f.char("prokind", func(i int) byte { return ps[i].kind })
	f.bool("proisstrict", func(i int) bool { return ps[i].strict })
	f.bool("proretset", func(i int) bool { return ps[i].set })
	f.char("provolatile", func(i int) byte { return ps[i].volatile })
	f.char("proparallel", func(i int) byte { return ps[i].parallel })
	f.int("pronargs", func(i int) int64 { return int64(len(ps[i].args)) })
	f.int("pronargdefaults", func(i int) int64 { return int64(len(ps[i].defaults)) })
	f.oid("prorettype", func(i int) uint32 { return ps[i].ret })
	f.extend("proargtypes", func(i int, dst []byte) []byte { return oidVector(dst, ps[i].args) })
	list := func(name string, has func(p *proc) bool, form func(dst []byte, p *proc) []byte) {
		f.each(name, func(i int, b *columnar.Builder) {
			if !has(ps[i]) {
				b.Null()
				return
			}
			b.Extend(func(dst []byte) []byte { return form(dst, ps[i]) })
		})
	}
	list("proallargtypes", func(p *proc) bool { return p.all != nil }, func(dst []byte, p *proc) []byte { return oidArray(dst, p.all) })
	list("proargmodes", func(p *proc) bool { return p.modes != "" }, func(dst []byte, p *proc) []byte {
		return textArray(dst, types.OIDChar, strings.Split(p.modes, ""))
	})
	list("proargnames", func(p *proc) bool { return p.names != nil }, func(dst []byte, p *proc) []byte { return textArray(dst, types.OIDText, p.names) })
	r := NewReader(e)
	f.some("proargdefaults", func(i int) string { return r.defaultList(m, ps[i]) })
	f.text("prosrc", func(i int) string { return ps[i].src })
}

// defaultList lists the defaults of a function's last arguments.
func (r *Reader) defaultList(m *model, p *proc) string {
	out := make([]string, len(p.defaults))
	for i, d := range p.defaults {
		out[i] = r.typedText(m, d, types.Of(types.OID(p.args[len(p.args)-len(p.defaults)+i])))
	}
	return strings.Join(out, ", ")
}

// oper is an operator of pg_operator; left is 0 for a prefix operator.
type oper struct {
	oid, left, right uint32
	name             string
	row              int // of the facts
}

type operTable struct {
	facts  *factRows
	list   []*oper
	byOID  map[uint32]*oper
	byName map[string][]*oper
}

// operatorTable holds the operators that expressions can use.
var operatorTable = sync.OnceValue(func() *operTable {
	have := map[string]bool{}
	for o := range expr.AllOperators() {
		args := typeOIDs(o.Args)
		if len(args) == 1 {
			args = []uint32{0, args[0]}
		}
		have[signatureKey(o.Name, args)] = true
	}
	t := &operTable{facts: readRows("pg_operator"), byOID: map[uint32]*oper{}, byName: map[string][]*oper{}}
	for i := range t.facts.rows {
		num := func(col string) uint32 { return uint32(number(t.facts.get(i, col))) }
		o := &oper{oid: num("oid"), left: num("oprleft"), right: num("oprright"), name: t.facts.get(i, "oprname"), row: i}
		if have[signatureKey(o.name, []uint32{o.left, o.right})] {
			t.list = append(t.list, o)
			t.byOID[o.oid] = o
			t.byName[o.name] = append(t.byName[o.name], o)
		}
	}
	return t
})

func operators(_ *model, _ Env, f *filler) {
	t := operatorTable()
	kept := map[int]bool{}
	for _, o := range t.list {
		kept[o.row] = true
	}
	t.facts.fill(f, func(i int) bool { return kept[i] })
	f.all(nspCatalog, "oprnamespace")
	f.all(roleOID, "oprowner")
}

var collationNames = sync.OnceValue(func() map[uint32]string {
	m := map[uint32]string{}
	t := factsOf("pg_collation")
	for i := range t.rows {
		m[uint32(number(t.get(i, "oid")))] = t.get(i, "collname")
	}
	return m
})

func aggregates(_ *model, _ Env, f *filler) {
	t := factsOf("pg_aggregate")
	t.fill(f, func(i int) bool { return procs().byOID[uint32(number(t.get(i, "aggfnoid")))] != nil })
}

// opclasses are the default operator classes of btree indexes by type.
var opclasses = sync.OnceValue(func() map[types.OID]uint32 {
	m := map[types.OID]uint32{}
	t := factsOf("pg_opclass")
	for i := range t.rows {
		if t.get(i, "opcdefault") == "1" {
			m[types.OID(number(t.get(i, "opcintype")))] = uint32(number(t.get(i, "oid")))
		}
	}
	return m
})

// operatorNamed is the OID of an operator, 0 if there is none for these types.
func operatorNamed(name string, left, right uint32) uint32 {
	for _, o := range operatorTable().byName[name] {
		if o.left == left && o.right == right {
			return o.oid
		}
	}
	return 0
}

// equalityOf is the operator by which keys of a type are equal: that of its operator
// class.
func equalityOf(t types.Type) uint32 {
	class := opclassOf(t)
	for o, c := range opclasses() {
		if c == class {
			return operatorNamed("=", uint32(o), uint32(o))
		}
	}
	return 0
}

// opclassOf is the operator class of an index on a column of the type.
func opclassOf(t types.Type) uint32 {
	o := t.OID
	i := infoOf(t)
	switch {
	case i.Kind == 'd':
		return opclassOf(t.Storage())
	case opclasses()[o] != 0:
	case i.IsArray():
		o = types.OIDAnyArray
	case i.Kind == 'e':
		o = types.OIDAnyEnum
	case i.Kind == 'r':
		o = types.OIDAnyRange
	case i.Kind == 'm':
		o = types.OIDAnyMultirange
	case i.Kind == 'c':
		o = types.OIDRecord
	case i.Category == 'S':
		o = types.OIDText
	case i.Category == 'N': // the aliases of oid
		o = types.OIDOid
	}
	return opclasses()[o]
}

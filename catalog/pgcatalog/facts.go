package pgcatalog

import (
	"embed"
	"fmt"
	"strconv"
	"strings"
	"sync"

	"github.com/streamdb/streamdb/catalog"
	"github.com/streamdb/streamdb/columnar"
	"github.com/streamdb/streamdb/sql/types"
)

// The files in facts/ hold what PostgreSQL 15 says of its own objects: the
// columns of each system relation (relations.tsv), and the rows for built-in
// types, functions, operators and casts. TestFacts compares them with a server
// and writes them.
//
//go:embed facts/*.tsv
var factFiles embed.FS

func factFile(name string) string {
	b, err := factFiles.ReadFile("facts/" + name + ".tsv")
	if err != nil {
		panic(fmt.Sprintf("pgcatalog: %v", err))
	}
	return string(b)
}

// relation is what the facts say of a system relation.
type relation struct {
	schema, name       string
	oid                uint32
	kind               byte // relkind: 'r' or 'v'
	rowType, arrayType uint32
	columns            []catalog.Column
	index              map[string]int // of columns by name
	definition
}

func number(s string) int64 {
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil {
		panic(fmt.Sprintf("pgcatalog: facts: %v", err))
	}
	return n
}

// readRelations reads relations.tsv: a line "@ schema name oid relkind reltype
// typarray" for each relation and one "name type typmod notnull" for each of
// its columns. Types that do not exist here, of columns that are always NULL,
// are text.
func readRelations() []*relation {
	var out []*relation
	var r *relation
	for line := range strings.Lines(factFile("relations")) {
		f := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		if f[0] == "@" {
			r = &relation{schema: f[1], name: f[2], oid: uint32(number(f[3])), kind: f[4][0], rowType: uint32(number(f[5])),
				arrayType: uint32(number(f[6])), index: map[string]int{}}
			out = append(out, r)
			continue
		}
		typ := types.Text
		if o, ok := types.ByName(f[1]); ok {
			typ = types.Type{OID: o, Mod: int32(number(f[2]))}
		}
		r.index[f[0]] = len(r.columns)
		r.columns = append(r.columns, catalog.Column{Name: f[0], Type: typ, NotNull: f[3] == "1"})
	}
	return out
}

// factRows are the rows of a facts file as text.
type factRows struct {
	names  map[string]int    // of the columns that differ between rows
	consts map[string]string // of those that do not
	rows   [][]string
}

const factNull = `\N`

// readRows reads a file of rows. Its first line names the columns; one written
// name=value has that value in each row.
func readRows(name string) *factRows {
	t := &factRows{names: map[string]int{}, consts: map[string]string{}}
	for line := range strings.Lines(factFile(name)) {
		f := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		if len(t.names) > 0 || len(t.consts) > 0 {
			t.rows = append(t.rows, f)
			continue
		}
		for _, h := range f {
			if n, v, ok := strings.Cut(h, "="); ok {
				t.consts[n] = v
			} else {
				t.names[n] = len(t.names)
			}
		}
	}
	return t
}

var keptFacts sync.Map // *factRows by name

// factsOf is a file of rows that is kept once it has been read.
func factsOf(name string) *factRows {
	if t, ok := keptFacts.Load(name); ok {
		return t.(*factRows)
	}
	t, _ := keptFacts.LoadOrStore(name, readRows(name))
	return t.(*factRows)
}

// get is the value of a column in row i.
func (t *factRows) get(i int, col string) string {
	if k, ok := t.names[col]; ok {
		return t.rows[i][k]
	}
	if v, ok := t.consts[col]; ok {
		return v
	}
	panic("pgcatalog: facts: no column " + col)
}

// fill fills the columns that the file has, from the rows for which keep holds.
func (t *factRows) fill(f *filler, keep func(i int) bool) {
	var rows []int
	for i := range t.rows {
		if keep == nil || keep(i) {
			rows = append(rows, i)
		}
	}
	f.n = len(rows)
	parse := func(b *columnar.Builder, typ types.Type, s string) {
		if s == factNull {
			b.Null()
			return
		}
		if strings.Contains(s, `\`) {
			s = copyEscapes.Replace(s)
		}
		if err := types.ParseText(b, typ, s, nil); err != nil {
			panic(fmt.Sprintf("pgcatalog: facts of %s: %v", f.rel.name, err))
		}
	}
	for name, v := range t.consts {
		if c, ok := f.rel.index[name]; ok {
			f.each(name, func(_ int, b *columnar.Builder) { parse(b, f.rel.columns[c].Type, v) })
		}
	}
	for name, k := range t.names {
		if c, ok := f.rel.index[name]; ok {
			f.each(name, func(i int, b *columnar.Builder) { parse(b, f.rel.columns[c].Type, t.rows[rows[i]][k]) })
		}
	}
}

// copyEscapes undoes the escapes of COPY's text format.
var copyEscapes = strings.NewReplacer(`\\`, `\`, `\t`, "\t", `\n`, "\n")

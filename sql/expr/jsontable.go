package expr

import (
	"encoding/json"

	"github.com/streamdb/streamdb/columnar"
	"github.com/streamdb/streamdb/sql/jsonpath"
	"github.com/streamdb/streamdb/sql/jsonpath/eval"
	"github.com/streamdb/streamdb/sql/types"
)

// JSONTablePlan is the row paths of a JSON_TABLE: each row is an item that Path
// finds, with the rows of the nested paths below it.
type JSONTablePlan struct {
	Path   string           `json:"path"`
	Nested []*JSONTablePlan `json:"nested,omitempty"`
	// Names are the variables, Types their types, and Fail says ERROR ON ERROR,
	// at the root.
	Names []string    `json:"names,omitempty"`
	Types []types.OID `json:"types,omitempty"`
	Fail  bool        `json:"fail,omitempty"`
}

// Paths is the number of paths.
func (p *JSONTablePlan) Paths() int {
	n := 1
	for _, c := range p.Nested {
		n += c.Paths()
	}
	return n
}

// Const is the plan as an argument of JSONTable.
func (p *JSONTablePlan) Const() *Const {
	b := columnar.NewBuilder(columnar.KindBytes, 1)
	s, err := json.Marshal(p)
	if err != nil {
		panic(err) // strings and lists of them
	}
	b.Bytes(s)
	return &Const{Val: b.Build(), Typ: types.Text}
}

// JSONTable is the function behind JSON_TABLE: of a document, a plan, and the
// values of the variables. For each path, parents first, it gives the item
// (jsonb) and its number (int4), NULL where a row has none.
var JSONTable = &TableFunction{Name: "json_table", Volatility: Stable, Eval: jsonTableRows}

// jsonScan is a path of a plan and the item that it is at.
type jsonScan struct {
	path   *jsonpath.Path
	nested []*jsonScan
	item   types.JSONDoc // nil: none
	number int32
}

// jsonTable is a plan made ready.
type jsonTable struct {
	text  string
	plan  JSONTablePlan
	root  *jsonScan
	scans []*jsonScan // all, parents first
}

// jsonTable is the plan with that text.
func (x *Eval) jsonTable(text string) (*jsonTable, error) {
	if t := x.table; t != nil && t.text == text {
		return t, nil
	}
	t := &jsonTable{text: text}
	if err := json.Unmarshal([]byte(text), &t.plan); err != nil {
		return nil, err
	}
	var add func(p *JSONTablePlan) (*jsonScan, error)
	add = func(p *JSONTablePlan) (*jsonScan, error) {
		path, err := jsonpath.Parse(p.Path)
		if err != nil {
			return nil, err
		}
		s := &jsonScan{path: path}
		t.scans = append(t.scans, s)
		for _, c := range p.Nested {
			n, err := add(c)
			if err != nil {
				return nil, err
			}
			s.nested = append(s.nested, n)
		}
		return s, nil
	}
	var err error
	if t.root, err = add(&t.plan); err == nil {
		x.table = t
	}
	return t, err
}

func jsonTableRows(x *Eval, args []*columnar.Vec, i int, out []*columnar.Builder) (int, error) {
	a := Args(args)
	if a.Null(0, i) {
		return 0, nil
	}
	t, err := x.jsonTable(string(a.Bytes(1, i)))
	if err != nil {
		return 0, err
	}
	o := eval.Options{Silent: !t.plan.Fail, Named: make(map[string]eval.Value, len(t.plan.Names)), Zone: x.options()}
	for k, name := range t.plan.Names {
		v, row := a.row(2+k, i)
		o.Named[name] = jsonVariable(t.plan.Types[k], v, row)
	}
	r := jsonTableRun{t: t, o: o, out: out}
	return r.scan(t.root, a.Bytes(0, i))
}

// jsonVariable is a value of a variable: a jsonb, or a date or time.
func jsonVariable(t types.OID, v *columnar.Vec, row int) eval.Value {
	switch {
	case v.Null(row):
		return eval.DocValue(jsonNull)
	case t == types.OIDJSONB:
		return eval.DocValue(v.Bytes(row))
	}
	return eval.DateValue(t, v, row)
}

type jsonTableRun struct {
	t   *jsonTable
	o   eval.Options
	out []*columnar.Builder
}

// scan gives the rows of a path over a document.
func (r *jsonTableRun) scan(s *jsonScan, doc types.JSONDoc) (rows int, err error) {
	found, _, err := eval.Find(s.path, doc, r.o)
	if err != nil {
		return 0, err
	}
	defer func() { s.item = nil }()
	for k, v := range found {
		s.item, s.number = v.Doc(), int32(k+1)
		below := 0
		for _, c := range s.nested {
			n, err := r.scan(c, s.item)
			if err != nil {
				return rows, err
			}
			below += n
		}
		if below == 0 {
			r.emit()
			below = 1
		}
		rows += below
	}
	return rows, nil
}

// emit appends the row that the paths are at.
func (r *jsonTableRun) emit() {
	for k, s := range r.t.scans {
		if s.item == nil {
			r.out[2*k].Null()
			r.out[2*k+1].Null()
			continue
		}
		r.out[2*k].Bytes(s.item)
		r.out[2*k+1].Int32(s.number)
	}
}

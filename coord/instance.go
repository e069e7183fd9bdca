package coord

import (
	"slices"

	"github.com/streamdb/streamdb/columnar"
	"github.com/streamdb/streamdb/dataflow"
	"github.com/streamdb/streamdb/dataflow/differential"
	"github.com/streamdb/streamdb/dataflow/render"
	"github.com/streamdb/streamdb/sql/planner/plan"
)

// dataflowInstance is a rendered dataflow with its inputs by collection.
type dataflowInstance struct {
	circuit *differential.Circuit
	ids     []plan.ObjectID
	inputs  map[plan.ObjectID][]render.Import
	shared  []plan.ObjectID // whose arrangements the circuit looks into
	oks     *differential.Output
	errs    *differential.Output
	start   func() // feeds what is part of the plan itself
}

func newInstance(df *render.Dataflow) *dataflowInstance {
	d := &dataflowInstance{
		circuit: df.Circuit,
		inputs:  map[plan.ObjectID][]render.Import{},
		oks:     df.Circuit.Output(df.Oks),
		errs:    df.Circuit.Output(df.Errs),
		start:   df.Start,
	}
	for _, im := range df.Imports {
		id := im.Get.ID
		if !slices.Contains(d.ids, id) {
			d.ids = append(d.ids, id)
		}
		d.inputs[id] = append(d.inputs[id], im)
	}
	for _, sh := range df.Shared {
		if !slices.Contains(d.ids, sh.ID) {
			d.ids = append(d.ids, sh.ID)
		}
		d.shared = append(d.shared, sh.ID)
	}
	return d
}

// reads says whether changes of a collection are pushed to the dataflow: it may
// only look into the collection's own arrangement.
func (d *dataflowInstance) reads(id plan.ObjectID) bool { return len(d.inputs[id]) > 0 }

// imports lists the collections that the dataflow reads, each once.
func (d *dataflowInstance) imports() []plan.ObjectID { return d.ids }

// push gives changes of a collection to the inputs that read it.
func (d *dataflowInstance) push(id plan.ObjectID, ds []*dataflow.Delta) {
	for _, im := range d.inputs[id] {
		for _, x := range ds {
			im.Input.Push(selectCols(x, im.Get))
		}
	}
}

// selectCols is what a read wants of x: some of its columns, shared.
func selectCols(x *dataflow.Delta, get *plan.Get) *dataflow.Delta {
	out := &dataflow.Delta{Batch: columnar.Batch{N: x.N, Cols: make([]*columnar.Vec, len(get.Cols))}, Diffs: x.Diffs}
	for i := range out.Cols {
		out.Cols[i] = x.Cols[get.Source(i)]
	}
	return out
}

// step runs one epoch and gives its output.
func (d *dataflowInstance) step(e dataflow.Epoch) (rows, errs []*dataflow.Delta) {
	d.circuit.Step(e)
	return d.oks.Take(), d.errs.Take()
}

func (d *dataflowInstance) close() { d.circuit.Close() }

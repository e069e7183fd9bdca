package pgcatalog

import (
	"sync"

	"github.com/streamdb/streamdb/catalog"
	"github.com/streamdb/streamdb/columnar"
)

// definition is how the content of a system relation is made. Without one it is
// empty.
type definition struct {
	// compute fills the relation. Unless the relation is live or personal, what
	// it makes depends on the model alone, and it must not ask the session.
	compute func(m *model, e Env, f *filler)
	// patch replaces columns of the kept content at each read.
	patch func(m *model, e Env, b *columnar.Batch) *columnar.Batch
	// live says that the content is computed at each read; personal that it
	// depends on the names of the database and the user, pathed that it depends on
	// the search path.
	live, personal, pathed bool
}

// definitions are those of the relations of pg_catalog by name, and of
// information_schema by name with a dot before it.
var definitions = map[string]definition{}

func define(defs map[string]definition) {
	for name, d := range defs {
		definitions[name] = d
	}
}

// relationFacts are all system relations.
var relationFacts = sync.OnceValue(readRelations)

// relations are all system relations with their definitions.
var relations = sync.OnceValue(func() []*relation {
	rels := relationFacts()
	for _, r := range rels {
		key := r.name
		if r.schema == catalog.SchemaInformation {
			key = "." + key
		}
		r.definition = definitions[key]
	}
	return rels
})

var relationsByOID = sync.OnceValue(func() map[uint32]*relation {
	m := map[uint32]*relation{}
	for _, r := range relations() {
		m[r.oid] = r
	}
	return m
})

func relationByOID(oid uint32) *relation { return relationsByOID()[oid] }

// Tables lists the system relations.
func Tables() []Table {
	rels := relations()
	out := make([]Table, len(rels))
	for i, r := range rels {
		out[i] = Table{Schema: r.schema, Name: r.name, OID: r.oid, Columns: r.columns, Rows: func(e Env) (*columnar.Batch, error) {
			return modelOf(e).read(r, e), nil
		}}
	}
	return out
}

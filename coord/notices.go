package coord

import (
	"sync"

	"github.com/streamdb/streamdb/pgwire"
	"github.com/streamdb/streamdb/sql/pgerror"
)

// notices are what a statement has to tell its client besides the results.
type notices struct {
	mu   sync.Mutex
	list []*pgerror.Error
	told map[notice]bool // of this statement
}

// notice is what is told once: a message about a place of the statement.
type notice struct {
	pos int
	msg string
}

// note keeps a notice for tell.
func (n *notices) note(pos int, e *pgerror.Error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	k := notice{pos, e.Message}
	if n.told[k] {
		return
	}
	if n.told == nil {
		n.told = map[notice]bool{}
	}
	n.told[k] = true
	n.list = append(n.list, e)
}

// tell sends what has been noted; end says that the statement is over.
func (n *notices) tell(w pgwire.ResultWriter, end bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, e := range n.list {
		w.Notice(e)
	}
	n.list = n.list[:0]
	if end {
		clear(n.told)
	}
}

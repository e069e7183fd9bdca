package parser

import (
	"strings"

	"github.com/streamdb/streamdb/sql/pgerror"
)

// tuningWords are what RisingWave's ALTER … SET sets of a job for which there is
// nothing to set here: as many goroutines run as there are processors, and backpressure
// limits rates.
var tuningWords = []string{
	"parallelism", "backfill_parallelism", "source_rate_limit", "backfill_rate_limit", "dml_rate_limit", "sink_rate_limit",
	"resource_group", "retention", "streaming_enable_unaligned_join",
}

// alterTuning reads SET name {= | TO} value [DEFERRED] and RESET name of tuningWords;
// false if that is not next.
func (s *stream) alterTuning(c *AlterCmd) bool {
	for _, w := range tuningWords {
		switch {
		case s.accept("set", w):
			s.alterTo()
			c.Action, c.Column = AlterTuning, w
			if s.accept("default") {
				c.NewName = "default"
			} else {
				c.NewName = s.value().Text
			}
		case s.accept("reset", w):
			c.Action, c.Column = AlterTuning, w
		default:
			continue
		}
		s.accept("deferred")
		return true
	}
	return false
}

// alterConnector refuses the actions of RisingWave and Materialize that change what an
// object reads or writes outside; false if none is next.
func (s *stream) alterConnector(c *AlterCmd, kind ObjectKind) bool {
	pos := s.pos()
	external := kind == ObjectSource || kind == ObjectSink || kind == ObjectConnection
	var what string
	switch {
	case s.accept("refresh", "schema"):
		what = "REFRESH SCHEMA"
	case s.is("drop", "connector") && kind == ObjectTable && s.peekAt(2).kind == tokEOF:
		what = "DROP CONNECTOR"
	case s.is("connector", "with"):
		what = "CONNECTOR WITH"
	case external && s.is("format"):
		what = "FORMAT ... ENCODE"
	case external && s.is("rotate", "keys"):
		what = "ROTATE KEYS"
	case kind == ObjectCluster && s.is("add", "replica"):
		what = "ADD REPLICA"
	case s.is("alter", "watermark"):
		what = "ALTER WATERMARK"
	default:
		return false
	}
	s.refuse(pgerror.Unsupported("ALTER " + strings.ToUpper(string(kind)) + " ... " + what).
		WithHint("Create the object anew under another name, and ALTER ... SWAP WITH it.").At(pos))
	return true
}

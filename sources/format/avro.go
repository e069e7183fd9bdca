package format

import (
	"context"
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/streamdb/streamdb/columnar"
)

// ErrNoSchema is what a SchemaSource returns, wrapped, for an id that does not
// exist, or whose schema cannot be used: trying again would not help.
var ErrNoSchema = errors.New("no such schema")

// SchemaSource finds the schemas of writers by the ids in their records.
type SchemaSource interface {
	// AvroSchema is the text of a schema and of those it refers to, each after
	// those that it refers to itself.
	AvroSchema(ctx context.Context, id int32) (text string, refs []string, err error)
}

// AvroOptions say what an Avro decoder reads.
type AvroOptions struct {
	// Reader is the schema that the columns are made from. It stays the same
	// whatever schemas records are written with.
	Reader *AvroSchema
	// Columns are fields of the reader's schema.
	Columns []Column
	// Writers is where the schemas of writers come from. Records then begin
	// with a zero byte and the four bytes of a schema id (Confluent's wire
	// format). Nil: records are bare, and the reader's schema is the writer's.
	Writers SchemaSource
	// Framed says that records begin so although Writers is nil; their ids are
	// not looked at.
	Framed bool
	// Waiting is told, if not nil, why a schema could not be fetched and is
	// tried again; with nil, that it could.
	Waiting func(error)
}

// maxPrograms bounds the writers' schemas that are kept: a producer that
// registers a schema a record must not fill the memory.
const maxPrograms = 1000

// The waits between attempts to fetch a schema, and how long an id that does
// not exist is believed not to.
const (
	minSchemaWait  = 100 * time.Millisecond
	maxSchemaWait  = 10 * time.Second
	missingForTime = 10 * time.Second
)

// avroPrograms is what clones of a decoder share: programs by schema id.
type avroPrograms struct {
	opts AvroOptions
	mu   sync.Mutex
	byID map[int32]*avroEntry
}

// avroEntry is a program, or the fetch of its schema under way.
type avroEntry struct {
	ready   chan struct{} // closed when program is set, or the fetch was given up
	program *avroProgram
	until   time.Time // of a missing schema: when to ask again
}

// avroDecoder implements Decoder.
type avroDecoder struct {
	shared  *avroPrograms
	bare    *avroProgram
	lastID  int32
	last    *avroProgram
	machine avroMachine
}

// NewAvro makes a decoder of Avro records.
func NewAvro(o AvroOptions) (Decoder, error) {
	d := &avroDecoder{shared: &avroPrograms{opts: o, byID: map[int32]*avroEntry{}}}
	own, err := compileAvro(o.Reader.root, o.Reader.root, o.Columns)
	if err != nil {
		return nil, err
	}
	if o.Writers == nil {
		d.bare = own
	}
	return d, nil
}

func (d *avroDecoder) Clone() Decoder { return &avroDecoder{shared: d.shared, bare: d.bare} }

func (d *avroDecoder) Decode(ctx context.Context, dst []*columnar.Builder, record []byte) error {
	p := d.bare
	if p == nil || d.shared.opts.Framed {
		if len(record) < 5 || record[0] != 0 {
			return badRecord("the record does not begin with a zero byte and a schema id")
		}
	}
	if p == nil {
		id := int32(binary.BigEndian.Uint32(record[1:]))
		if p = d.last; p == nil || id != d.lastID {
			var err error
			if p, err = d.shared.program(ctx, id); err != nil {
				return err
			}
			d.last, d.lastID = nil, id
			if p.err == "" {
				d.last = p
			}
		}
		record = record[5:]
	} else if d.shared.opts.Framed {
		record = record[5:]
	}
	n := 0
	if len(dst) > 0 {
		n = dst[0].Len()
	}
	err := d.machine.run(p, dst, record)
	if err != nil {
		truncate(dst, n)
	}
	return err
}

// program finds or makes the program of a schema id. It waits for the registry
// as long as ctx lives; one fetch serves all that wait.
func (s *avroPrograms) program(ctx context.Context, id int32) (*avroProgram, error) {
	for {
		s.mu.Lock()
		e := s.byID[id]
		if e != nil && e.program != nil && (e.until.IsZero() || time.Now().Before(e.until)) {
			s.mu.Unlock()
			return e.program, nil
		}
		mine := e == nil || e.program != nil
		if mine {
			s.evict()
			e = &avroEntry{ready: make(chan struct{})}
			s.byID[id] = e
		}
		s.mu.Unlock()
		if mine {
			return s.fetch(ctx, id, e)
		}
		select {
		case <-e.ready:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// evict makes room for one more program.
func (s *avroPrograms) evict() {
	for id, e := range s.byID {
		if len(s.byID) < maxPrograms {
			return
		}
		if e.program != nil {
			delete(s.byID, id)
		}
	}
}

func (s *avroPrograms) fetch(ctx context.Context, id int32, e *avroEntry) (*avroProgram, error) {
	p, missing, err := s.compile(ctx, id)
	s.mu.Lock()
	if err != nil {
		delete(s.byID, id)
	} else {
		e.program = p
		if missing {
			e.until = time.Now().Add(missingForTime)
		}
	}
	s.mu.Unlock()
	close(e.ready)
	return p, err
}

// compile fetches a writer's schema, with patience, and resolves it.
func (s *avroPrograms) compile(ctx context.Context, id int32) (p *avroProgram, missing bool, err error) {
	for wait := minSchemaWait; ; wait = min(2*wait, maxSchemaWait) {
		text, refs, err := s.opts.Writers.AvroSchema(ctx, id)
		if err == nil {
			if wait > minSchemaWait && s.opts.Waiting != nil {
				s.opts.Waiting(nil)
			}
			w, err := ParseAvro(text, refs...)
			if err == nil {
				if p, err = compileAvro(w.root, s.opts.Reader.root, s.opts.Columns); err == nil {
					return p, false, nil
				}
			}
			return &avroProgram{err: "schema " + itoa(id) + ": " + err.Error()}, false, nil
		}
		if errors.Is(err, ErrNoSchema) {
			return &avroProgram{err: "schema " + itoa(id) + ": " + err.Error()}, true, nil
		}
		if ctx.Err() != nil {
			return nil, false, context.Cause(ctx)
		}
		if s.opts.Waiting != nil {
			s.opts.Waiting(err)
		}
		t := time.NewTimer(wait/2 + rand.N(wait))
		select {
		case <-t.C:
		case <-ctx.Done():
			t.Stop()
			return nil, false, context.Cause(ctx)
		}
	}
}

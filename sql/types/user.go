package types

import (
	"math"
	"sort"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/streamdb/streamdb/columnar"
	"github.com/streamdb/streamdb/sql/pgerror"
)

// FirstUser is where the OIDs of user-defined types begin.
const FirstUser OID = 16384

// Field is an attribute of a composite type.
type Field struct {
	Name    string
	Type    Type
	Comment string `json:",omitempty"`
}

// Label is a value of an enum type. Order is what is stored for it: the labels
// are ordered by it.
type Label struct {
	Name  string
	Order int64
}

// Check is a CHECK constraint of a domain, over the column VALUE.
type Check struct {
	Name, Expr string
	NotValid   bool   `json:",omitempty"` // values from before it need not satisfy it
	Comment    string `json:",omitempty"`
}

// Definition is what a user has said of a type.
type Definition struct {
	Kind    byte    // typtype: 'e' enum, 'c' composite, 'd' domain, 'r' range
	Array   OID     // the type of arrays of it
	Labels  []Label // of an enum, in order
	Fields  []Field // of a composite
	Base    Type    // of a domain
	NotNull bool
	Checks  []Check
	Default string // SQL text
	Subtype OID    // of a range
	// Multirange and MultirangeArray belong to a range.
	Multirange, MultirangeArray OID
	MultirangeName              string
}

// users are the user-defined types. An OID is given once, so that definitions
// of all databases of the process, and of all versions, can be in one table.
var users struct {
	sync.Mutex
	byOID atomic.Pointer[map[OID]*Info]
}

func lookupUser(o OID) *Info {
	if o.IsRow() {
		return lookupRow(o)
	}
	if m := users.byOID.Load(); m != nil {
		return (*m)[o]
	}
	return nil
}

// Define makes a user-defined type known, or known anew: labels of enums and
// names change.
func Define(o OID, schema, name string, d *Definition) {
	users.Lock()
	defer users.Unlock()
	next := map[OID]*Info{}
	if m := users.byOID.Load(); m != nil {
		for k, v := range *m {
			next[k] = v
		}
	}
	base := *compositeInfo(o, schema, name, d)
	switch d.Kind {
	case 'e':
		base.Category, base.Len, base.ByVal, base.Align, base.Storage = 'E', 4, true, 'i', 'p'
		base.Input, base.Output, base.Receive, base.Send = "enum_in", "enum_out", "enum_recv", "enum_send"
	case mapKind:
		base.Kind, base.Category, base.Align = 'b', 'U', 'i'
	case 'r':
		if s := Lookup(d.Subtype); s == nil || s.Align != 'd' {
			base.Align = 'i'
		}
		base.Category, base.Subtype, base.Multirange = 'R', d.Subtype, d.Multirange
		base.Input, base.Output, base.Receive, base.Send = "range_in", "range_out", "range_recv", "range_send"
		multi := base
		multi.OID, multi.Name, multi.Kind, multi.Array = d.Multirange, d.MultirangeName, 'm', d.MultirangeArray
		multi.Multirange, multi.Range, multi.Definition = 0, o, nil
		multi.Input, multi.Output, multi.Receive, multi.Send = "multirange_in", "multirange_out", "multirange_recv", "multirange_send"
		next[multi.OID], next[multi.Array] = &multi, arrayInfo(&multi)
	case 'd':
		base.Category, base.Align = 0, 'i'
		if b := Lookup(d.Base.OID); b != nil {
			base.Category, base.Len, base.ByVal, base.Align, base.Storage, base.Collation = b.Category, b.Len, b.ByVal, b.Align, b.Storage, b.Collation
			base.Input, base.Output, base.Receive, base.Send = "domain_in", b.Output, "domain_recv", b.Send
		}
	}
	next[o] = &base
	next[d.Array] = arrayInfo(&base)
	users.byOID.Store(&next)
}

// compositeInfo is what is known of a composite type.
func compositeInfo(o OID, schema, name string, d *Definition) *Info {
	return &Info{
		OID: o, Name: name, Schema: schema, Len: -1, Kind: d.Kind, Category: 'C', Array: d.Array, Align: 'd', Storage: 'x',
		Receive: "record_recv", Send: "record_send", Input: "record_in", Output: "record_out", ModIn: "-", ModOut: "-", Subscript: "-", Definition: d,
	}
}

func arrayInfo(elem *Info) *Info {
	return &Info{
		OID: elem.Array, Name: "_" + elem.Name, Schema: elem.Schema, Len: -1, Kind: 'b', Category: 'A', Elem: elem.OID, Align: elem.Align, Storage: 'x',
		Collation: elem.Collation, Input: "array_in", Output: "array_out", Receive: "array_recv", Send: "array_send", ModIn: "-", ModOut: "-",
		Subscript: "array_subscript_handler",
	}
}

// UserDefined are the user-defined types among the OIDs, their arrays and
// multiranges, by OID.
func UserDefined(o OID) []*Info {
	t := lookupUser(o)
	if t == nil {
		return nil
	}
	out := []*Info{t}
	for _, x := range [...]OID{t.Array, t.Multirange} {
		if i := Lookup(x); i != nil && x != 0 {
			out = append(out, i)
		}
	}
	if m := Lookup(t.Multirange); m != nil && t.Multirange != 0 {
		out = append(out, Lookup(m.Array))
	}
	sort.Slice(out, func(i, j int) bool { return out[i].OID < out[j].OID })
	return out
}

// IsDomain reports whether o is a domain.
func (o OID) IsDomain() bool {
	if o < FirstUser {
		return false
	}
	t := lookupUser(o)
	return t != nil && t.Kind == 'd'
}

// Storage is the type that values of t are stored as: for a domain the one
// behind it.
func (t Type) Storage() Type {
	for t.OID >= FirstUser {
		i := lookupUser(t.OID)
		if i == nil || i.Kind != 'd' {
			break
		}
		t = i.Definition.Base
	}
	return t
}

// CheckDomain checks values against the constraints of a domain. It is set by
// those who can evaluate them.
var CheckDomain func(domain OID, v *columnar.Vec) error

// checkDomain checks the parts of a value that is read, if their type is a domain.
func checkDomain(t OID, v *columnar.Vec) error {
	if !t.IsDomain() || CheckDomain == nil {
		return nil
	}
	return CheckDomain(t, v)
}

// Fields are the attributes of a composite type, nil for others.
func (o OID) Fields() []Field {
	if o < FirstUser {
		return nil
	}
	if t := lookupUser(o); t != nil && t.Kind == 'c' {
		return t.Definition.Fields
	}
	return nil
}

// IsComposite reports whether o is a composite type with a name.
func (o OID) IsComposite() bool {
	t := Lookup(o)
	return o >= FirstUser && t != nil && t.Kind == 'c'
}

// Labels are the values of an enum type in order, nil for others.
func (o OID) Labels() []Label {
	if o < FirstUser {
		return nil
	}
	if t := lookupUser(o); t != nil && t.Kind == 'e' {
		return t.Definition.Labels
	}
	return nil
}

// userKind is the physical kind of a user-defined type.
func userKind(o OID) columnar.Kind {
	t := lookupUser(o)
	switch {
	case t == nil:
		return columnar.KindBytes
	case t.Kind == 'e':
		return columnar.KindInt64
	case t.Kind == 'd':
		return t.Definition.Base.Kind()
	}
	return columnar.KindBytes
}

// labelSpace is the distance of labels that are made together: others fit in
// between.
const labelSpace = 1 << 40

// NewLabels are the labels of a new enum.
func NewLabels(names []string) []Label {
	out := make([]Label, len(names))
	for i, n := range names {
		out[i] = Label{n, int64(i) * labelSpace}
	}
	return out
}

// InsertLabel puts a label before the one at position at (or at the end).
func InsertLabel(labels []Label, at int, name string) ([]Label, error) {
	l := Label{Name: name}
	switch {
	case len(labels) == 0:
	case at == len(labels):
		l.Order = labels[at-1].Order + labelSpace
	case at == 0:
		l.Order = labels[0].Order - labelSpace
	default:
		lo, hi := labels[at-1].Order, labels[at].Order
		if l.Order = lo + (hi-lo)/2; l.Order == lo {
			return nil, pgerror.New(pgerror.ProgramLimitExceeded, "too many labels added between two of an enum")
		}
	}
	if l.Order > math.MaxInt64-labelSpace || l.Order < math.MinInt64+labelSpace {
		return nil, pgerror.New(pgerror.ProgramLimitExceeded, "too many labels added to an enum")
	}
	out := append([]Label(nil), labels[:at]...)
	return append(append(out, l), labels[at:]...), nil
}

// appendLabel appends the label of a stored enum value.
func appendLabel(dst []byte, o OID, v int64) []byte {
	ls := o.Labels()
	if i := sort.Search(len(ls), func(i int) bool { return ls[i].Order >= v }); i < len(ls) && ls[i].Order == v {
		return append(dst, ls[i].Name...)
	}
	return dst
}

func parseLabel(o OID, s string) (int64, error) {
	for _, l := range o.Labels() {
		if l.Name == s {
			return l.Order, nil
		}
	}
	return 0, pgerror.New(pgerror.InvalidTextRepresentation, "invalid input value for enum %s: \"%s\"", o, s)
}

// quoteUser is the name of a user-defined type as SQL has it, with its schema
// unless that is public.
func quoteUser(t *Info) string {
	if t.OID.IsAnonymous() {
		return t.Name
	}
	s := quoteTypeName(t.Name)
	if t.Schema != "public" && t.Schema != "" {
		s = quoteTypeName(t.Schema) + "." + s
	}
	return s
}

func quoteTypeName(s string) string {
	plain := s != ""
	for i := range len(s) {
		c := s[i]
		plain = plain && (c == '_' || c >= 'a' && c <= 'z' || i > 0 && (c >= '0' && c <= '9' || c == '$'))
	}
	if plain {
		return s
	}
	return `"` + strings.ReplaceAll(s, `"`, `""`) + `"`
}

package types

import (
	"github.com/streamdb/streamdb/columnar"
)

// Reshape is a change of the fields of a composite type: field i was From[i] before, or
// is new and NULL where that is -1.
type Reshape struct {
	Type   OID
	From   []int
	Fields []Field
}

// Contains reports whether values of type t are, or may have in them, values of the
// composite type o.
func Contains(t Type, o OID) bool {
	t = t.Storage()
	if t.OID == o {
		return true
	}
	if t.OID < FirstUser {
		return false
	}
	if e := t.OID.Elem(); e != 0 {
		return Contains(Of(e), o)
	}
	i := lookupUser(t.OID)
	if i == nil || i.Definition == nil {
		return false
	}
	for _, f := range i.Definition.Fields {
		if Contains(f.Type, o) {
			return true
		}
	}
	return false
}

// Vec gives values of type t, which contains the type that changes, their new form.
func (r *Reshape) Vec(t Type, v *columnar.Vec) *columnar.Vec {
	t = t.Storage()
	out := columnar.NewBuilder(columnar.KindBytes, v.Len())
	for i := range v.Len() {
		if v.Null(i) {
			out.Null()
			continue
		}
		out.Extend(func(dst []byte) []byte { return r.append(dst, t, v.Bytes(i)) })
	}
	return out.Build()
}

func (r *Reshape) append(dst []byte, t Type, b []byte) []byte {
	if !t.OID.IsArray() && !t.OID.IsMap() {
		return r.record(dst, t, b)
	}
	a := ReadArray(b)
	if a.NDim == 0 {
		return append(dst, b...)
	}
	elem := Of(a.Elem).Storage()
	vals := columnar.NewBuilder(columnar.KindBytes, a.N)
	for i := range a.N {
		if a.Null(i) {
			vals.Null()
			continue
		}
		vals.Extend(func(dst []byte) []byte { return r.append(dst, elem, a.Bytes(i)) })
	}
	v := vals.Build()
	return AppendArray(dst, a.Elem, a.Dims[:a.NDim], v, 0, v.Len())
}

func (r *Reshape) record(dst []byte, t Type, b []byte) []byte {
	in := ReadRecord(b)
	out := RecordBuilder{Names: in.Names()}
	if t.OID != r.Type {
		for i := range in.N {
			r.field(&out, &in, i)
		}
		return out.Append(dst)
	}
	if out.Names != nil {
		out.Names = make([]string, len(r.Fields))
	}
	for i, from := range r.From {
		if out.Names != nil {
			out.Names[i] = r.Fields[i].Name
		}
		if from < 0 || from >= in.N {
			out.null(Of(r.Fields[i].Type.Storage().OID))
			continue
		}
		r.field(&out, &in, from)
	}
	return out.Append(dst)
}

func (r *Reshape) field(out *RecordBuilder, in *RecordReader, i int) {
	t := in.Type(i)
	switch {
	case in.Null(i):
		out.null(t)
	case Contains(t, r.Type):
		b := r.append(nil, t.Storage(), in.datum(i).b)
		out.field(t, datum{b: b})
	default:
		out.field(t, in.datum(i))
	}
}

package types

import (
	"encoding/json"
	"testing"

	"github.com/streamdb/streamdb/columnar"
)

// TestAnonymousTypes checks that a form has one number, that a catalog keeps it,
// and that maps are read and written.
func TestAnonymousTypes(t *testing.T) {
	m, err := MapOf(Text, Of(OIDInt4Array))
	if err != nil {
		t.Fatal(err)
	}
	s := StructOf([]Field{{Name: "a", Type: Int4}, {Name: "b B", Type: Of(m)}})
	if again := StructOf([]Field{{Name: "a", Type: Int4}, {Name: "b B", Type: Of(m)}}); again != s {
		t.Errorf("one form has two numbers, %d and %d", s, again)
	}
	if got, want := s.Name(), `struct<a integer, "b B" map(text,integer[])>`; got != want {
		t.Errorf("the name is %s, want %s", got, want)
	}
	for _, o := range []OID{s, m, s.Array(), OIDInt4} {
		text, err := json.Marshal(Field{Name: "f", Type: Of(o)})
		if err != nil {
			t.Fatal(err)
		}
		var back Field
		if err := json.Unmarshal(text, &back); err != nil || back.Type.OID != o {
			t.Errorf("%s is read as %d: %v", text, back.Type.OID, err)
		}
	}
	if _, err := MapOf(Float8, Text); err == nil {
		t.Error("a map with floats as keys is allowed")
	}
	for in, want := range map[string]string{
		"{}": "{}", "{a:{1,2},b:NULL}": "{a:{1,2},b:NULL}", ` { "x:y" => {3} } `: "{x:y:{3}}",
		"{a:{1},a:{2}}": "error", "a:{1}": "error", "{a}": "error", "{NULL:{1}}": "{NULL:{1}}", "{a:x}": "error",
	} {
		b := columnar.NewBuilder(columnar.KindBytes, 1)
		got := "error"
		if err := ParseText(b, Of(m), in, nil); err == nil {
			got = string(AppendText(nil, Of(m), b.Build(), 0, nil))
		}
		if got != want {
			t.Errorf("%s is %s, want %s", in, got, want)
		}
	}
}

package expr

import (
	"bytes"
	"time"

	"github.com/streamdb/streamdb/columnar"
	"github.com/streamdb/streamdb/sql/pgerror"
	"github.com/streamdb/streamdb/sql/types"
)

// relativeWords are the words in date and time literals that refer to now.
var relativeWords = [][]byte{[]byte("now"), []byte("today"), []byte("tomorrow"), []byte("yesterday")}

// anySession are settings such that what reads alike under all of them does so under
// any.
var anySession = [...]*types.Options{
	{},
	{Location: time.FixedZone("", 4980), Style: types.TimeStyle{Order: types.OrderDMY, Interval: types.IntervalSQL}},
	{Location: time.FixedZone("", -4980), Style: types.TimeStyle{Order: types.OrderYMD}},
}

// leafTypes visits the types that values of o are made of.
func leafTypes(o types.OID, visit func(types.OID)) {
	i := types.Lookup(o)
	switch {
	case i == nil:
	case o.IsMap():
		key, value := o.MapTypes()
		leafTypes(key.OID, visit)
		leafTypes(value.OID, visit)
		return
	case i.IsArray():
		leafTypes(i.Elem, visit)
		return
	case i.Subtype != 0:
		leafTypes(i.Subtype, visit)
		return
	case i.Definition != nil && i.Kind == 'd':
		leafTypes(i.Definition.Base.OID, visit)
		return
	case i.Definition != nil && i.Kind == 'c':
		for _, f := range i.Definition.Fields {
			leafTypes(f.Type.OID, visit)
		}
		return
	}
	visit(o)
}

// sessionInput reports whether what the literal s means for a type depends on
// the session: its time zone and styles, the time, or the catalog.
func sessionInput(t types.Type, s []byte) bool {
	timed, named := false, false
	leafTypes(t.OID, func(leaf types.OID) {
		switch {
		case isTimed(leaf):
			timed = true
		case leaf == types.OIDXML, isReg(leaf) && leaf != types.OIDRegconfig && leaf != types.OIDRegdictionary: // of these no session has others
			named = true
		}
	})
	return named || timed && variesBySession(t, s)
}

// isTimed reports whether the text forms of a type depend on the time zone or on
// DateStyle and IntervalStyle.
func isTimed(o types.OID) bool {
	switch o {
	case types.OIDDate, types.OIDTime, types.OIDTimestamp, types.OIDTimestampTZ, types.OIDTimeTZ, types.OIDInterval:
		return true
	}
	return false
}

// isoShape reports whether s has the form of a pattern, in which 0 is a digit.
func isoShape(s []byte, pattern string) bool {
	if len(s) != len(pattern) {
		return false
	}
	for i, c := range s {
		if digit := c >= '0' && c <= '9'; digit != (pattern[i] == '0') || !digit && c != pattern[i] {
			return false
		}
	}
	return true
}

// variesBySession reports whether a literal of a type made of dates and times means
// something else to other sessions, or at other times.
func variesBySession(t types.Type, s []byte) bool {
	if t.OID == types.OIDDate && isoShape(s, "0000-00-00") || t.OID == types.OIDTimestamp && isoShape(s, "0000-00-00 00:00:00") {
		if b := columnar.NewBuilder(t.Kind(), 1); parseText(nil, t.OID, inputMod(t), s, b) == nil {
			return false // what most programs write, which every style reads alike
		}
	}
	low := bytes.ToLower(s)
	for _, w := range relativeWords {
		if bytes.Contains(low, w) {
			return true
		}
	}
	var first *columnar.Vec
	var firstErr error
	mod := inputMod(t)
	for i, opts := range anySession {
		b := columnar.NewBuilder(t.Kind(), 1)
		err := parseText(opts, t.OID, mod, s, b)
		var v *columnar.Vec
		if err == nil {
			v = b.Build()
		}
		switch {
		case i == 0:
			first, firstErr = v, err
		case (v == nil) != (first == nil), v != nil && !columnar.EqualAt(v, 0, first, 0), err != nil && err.Error() != firstErr.Error():
			return true
		}
	}
	return false
}

func isReg(o types.OID) bool {
	switch o {
	case types.OIDRegproc, types.OIDRegprocedure, types.OIDRegclass, types.OIDRegtype, types.OIDRegrole, types.OIDRegnamespace,
		types.OIDRegoper, types.OIDRegoperator, types.OIDRegcollation, types.OIDRegconfig, types.OIDRegdictionary:
		return true
	}
	return false
}

// inputVolatility and outputVolatility are those of the text forms of a type.
func inputVolatility(o types.OID) Volatility {
	out := Immutable
	leafTypes(o, func(leaf types.OID) {
		if isTimed(leaf) || isReg(leaf) || leaf == types.OIDXML {
			out = Stable
		}
	})
	return out
}

func outputVolatility(o types.OID) Volatility {
	out := Immutable
	leafTypes(o, func(leaf types.OID) {
		if leaf == types.OIDDate || leaf == types.OIDTimestamp || leaf == types.OIDTimestampTZ || isReg(leaf) || leaf == types.OIDRecord {
			out = Stable
		}
	})
	return out
}

// styledOutput reports whether settings have a say in the text form of a type for
// which PostgreSQL calls it immutable: IntervalStyle, extra_float_digits, bytea_output.
func styledOutput(o types.OID) bool {
	out := false
	leafTypes(o, func(leaf types.OID) {
		switch leaf {
		case types.OIDInterval, types.OIDFloat4, types.OIDFloat8, types.OIDBytea:
			out = true
		}
	})
	return out
}

// TimedLiteral reports whether all that makes the literal c depend on the session is
// that it has dates or times.
func TimedLiteral(c *Call) bool {
	out := true
	leafTypes(c.Typ.OID, func(leaf types.OID) { out = out && leaf != types.OIDXML && !isReg(leaf) })
	return out
}

// CheckTimedLiterals is the error of the first literal of dates and times in e that the
// session cannot read.
func CheckTimedLiterals(e Expr, session *Context) error {
	var failed error
	Walk(e, func(x Expr) bool {
		if c, ok := x.(*Call); ok && c.Fn.Literal && failed == nil && TimedLiteral(c) {
			if _, err := EvalConst(c, session); err != nil {
				failed = pgerror.As(err).At(c.Pos)
			}
		}
		return failed == nil
	})
	return failed
}

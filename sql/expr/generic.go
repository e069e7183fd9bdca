package expr

import (
	"github.com/streamdb/streamdb/sql/pgerror"
	"github.com/streamdb/streamdb/sql/types"
)

// generic is what the polymorphic types of one call stand for.
type generic struct {
	elem   types.OID // anyelement; its array type is anyarray; 0 if all are unknown
	rng    types.OID // anyrange
	common types.OID // anycompatible
}

// resolveGeneric finds what the polymorphic parameters stand for
// (enforce_generic_type_consistency; manual section 38.2.5).
func resolveGeneric(in, params []types.OID) (generic, error) {
	var g generic
	var elem, array, multi types.OID
	var compat []types.OID
	usesElem, usesCompat, nonArray, enum, plainCommon := false, false, false, false, false
	for i, t := range in {
		switch p := params[i]; p {
		case types.OIDAnyElement, types.OIDAnyNonArray, types.OIDAnyEnum:
			usesElem = true
			nonArray = nonArray || p == types.OIDAnyNonArray
			enum = enum || p == types.OIDAnyEnum
			if t == types.OIDUnknown {
				continue
			}
			if elem != 0 && elem != t {
				return g, notAlike("anyelement", elem, t)
			}
			elem = t
		case types.OIDAnyArray:
			usesElem = true
			if t == types.OIDUnknown {
				continue
			}
			if t.Elem() == 0 {
				return g, pgerror.New(pgerror.DatatypeMismatch, "argument declared %s is not an array but type %s", "anyarray", t)
			}
			if array != 0 && array != t {
				return g, notAlike("anyarray", array, t)
			}
			array = t
		case types.OIDAnyRange, types.OIDAnyMultirange:
			usesElem = true
			if err := g.takeRange(p, t, &multi); err != nil {
				return g, err
			}
		case types.OIDAnyCompatible, types.OIDAnyCompatibleNonArray:
			usesCompat = true
			plainCommon = plainCommon || p == types.OIDAnyCompatibleNonArray
			compat = append(compat, t)
		case types.OIDAnyCompatibleArray:
			usesCompat = true
			if t == types.OIDUnknown {
				continue
			}
			if t.Elem() == 0 {
				return g, pgerror.New(pgerror.DatatypeMismatch, "argument declared %s is not an array but type %s", "anycompatiblearray", t)
			}
			compat = append(compat, t.Elem())
		}
	}
	if usesElem {
		if multi != 0 && g.rng == 0 {
			g.rng = multi.RangeType()
		}
		if err := g.setElem(elem, array, nonArray); err != nil {
			return g, err
		}
		if enum && !g.elem.IsEnum() {
			return g, pgerror.New(pgerror.DatatypeMismatch, "type matched to anyenum is not an enum type: %s", g.elem)
		}
	}
	if usesCompat {
		c, ok := commonOID(compat)
		if !ok {
			return g, pgerror.New(pgerror.DatatypeMismatch, "arguments of anycompatible family cannot be cast to a common type")
		}
		if g.common = c; plainCommon && c.Elem() != 0 {
			return g, pgerror.New(pgerror.DatatypeMismatch, "type matched to anycompatiblenonarray is an array type: %s", c)
		}
	}
	return g, nil
}

// takeRange takes an argument of a range or multirange parameter into account.
func (g *generic) takeRange(param, t types.OID, multi *types.OID) error {
	have, what, is := &g.rng, "anyrange", t.IsRange()
	if param == types.OIDAnyMultirange {
		have, what, is = multi, "anymultirange", t.IsMultirange()
	}
	switch {
	case t == types.OIDUnknown:
		return nil
	case !is:
		return pgerror.New(pgerror.DatatypeMismatch, "argument declared %s is not a %s type but type %s", what, what[3:], t)
	case *have != 0 && *have != t:
		return notAlike(what, *have, t)
	}
	*have = t
	if g.rng != 0 && *multi != 0 && multi.RangeType() != g.rng {
		return pgerror.New(pgerror.DatatypeMismatch, "argument declared %s is not consistent with argument declared %s", "anymultirange", "anyrange").
			WithDetail("%s versus %s", types.Of(*multi), types.Of(g.rng))
	}
	return nil
}

func (g *generic) setElem(elem, array types.OID, nonArray bool) error {
	switch {
	case array != 0 && elem == 0:
		elem = array.Elem()
	case array != 0 && array.Elem() != elem:
		return pgerror.New(pgerror.DatatypeMismatch, "argument declared %s is not consistent with argument declared %s", "anyarray", "anyelement").
			WithDetail("%s versus %s", types.Of(array), types.Of(elem))
	}
	if g.rng != 0 {
		switch sub := g.rng.Subtype(); {
		case elem == 0:
			elem = sub
		case elem != sub:
			return pgerror.New(pgerror.DatatypeMismatch, "argument declared %s is not consistent with argument declared %s", "anyrange", "anyelement").
				WithDetail("%s versus %s", types.Of(g.rng), types.Of(elem))
		}
	}
	if nonArray && elem.Elem() != 0 {
		return pgerror.New(pgerror.DatatypeMismatch, "type matched to anynonarray is an array type: %s", elem)
	}
	g.elem = elem
	return nil
}

func notAlike(what string, a, b types.OID) error {
	return pgerror.New(pgerror.DatatypeMismatch, "arguments declared \"%s\" are not all alike", what).
		WithDetail("%s versus %s", types.Of(a), types.Of(b))
}

// actual is the type that a parameter or result type stands for.
func (g *generic) actual(t types.Type) (types.Type, error) {
	var o types.OID
	base := g.elem
	switch t.OID {
	case types.OIDAnyElement, types.OIDAnyNonArray, types.OIDAnyEnum:
		o = g.elem
	case types.OIDAnyRange:
		base, o = g.rng, g.rng
	case types.OIDAnyMultirange:
		base, o = g.rng, g.rng.Multirange()
	case types.OIDAnyArray:
		o = g.elem.Array()
	case types.OIDAnyCompatible, types.OIDAnyCompatibleNonArray:
		o = g.common
	case types.OIDAnyCompatibleArray:
		base, o = g.common, g.common.Array()
	default:
		return t, nil
	}
	if o != 0 {
		return types.Of(o), nil
	}
	if base == 0 && g.elem != 0 && (t.OID == types.OIDAnyRange || t.OID == types.OIDAnyMultirange) {
		return t, pgerror.New(pgerror.DatatypeMismatch, "could not determine polymorphic type %s because input has type unknown", t.OID)
	}
	if base == 0 {
		return t, pgerror.New(pgerror.DatatypeMismatch, "could not determine polymorphic type because input has type unknown")
	}
	return t, pgerror.New(pgerror.UndefinedObject, "could not find array type for data type %s", base)
}

// commonOID is select_common_type over type OIDs; unknown alone becomes text.
func commonOID(in []types.OID) (types.OID, bool) {
	typ := types.OIDUnknown
	for _, t := range in {
		switch {
		case t == types.OIDUnknown || t == typ:
		case typ == types.OIDUnknown:
			typ = t
		case categoryOf(t) != categoryOf(typ):
			return 0, false
		case !preferred(typ) && canCoerce(typ, t, CastImplicit) && !canCoerce(t, typ, CastImplicit):
			typ = t
		}
	}
	if typ == types.OIDUnknown {
		return types.OIDText, true
	}
	for _, t := range in {
		if !canCoerce(t, typ, CastImplicit) {
			return 0, false
		}
	}
	return typ, true
}

package pgcatalog

import (
	"slices"
	"strings"

	"github.com/streamdb/streamdb/sql/pgerror"
	"github.com/streamdb/streamdb/sql/types"
)

// The has_…_privilege functions: the one role may do everything, so that what
// is left to find out is whether the object exists.

// privilegeObject says what an object of a kind is: find reports whether the one
// that an argument names or numbers exists, an error for a name without object.
type privilegeObject struct {
	rights string
	find   func(c *call, i int) (bool, error)
}

const relationRights = "SELECT INSERT UPDATE DELETE TRUNCATE REFERENCES TRIGGER"

var privilegeObjects = map[string]privilegeObject{
	"table":                {relationRights, findRel},
	"any_column":           {"SELECT INSERT UPDATE REFERENCES", findRel},
	"column":               {"SELECT INSERT UPDATE REFERENCES", findRel},
	"sequence":             {"USAGE SELECT UPDATE", findSequence},
	"schema":               {"CREATE USAGE", findSchema},
	"function":             {"EXECUTE", findReg(types.OIDRegprocedure)},
	"type":                 {"USAGE", findReg(types.OIDRegtype)},
	"database":             {"CREATE CONNECT TEMPORARY TEMP", findDatabase},
	"language":             {"USAGE", findLanguage},
	"tablespace":           {"CREATE", findTablespace},
	"foreign_data_wrapper": {"USAGE", findNothing("foreign-data wrapper")},
	"server":               {"USAGE", findNothing("server")},
	// The owner may set what there will be, too.
	"parameter": {"SET ALTER SYSTEM", func(*call, int) (bool, error) { return true, nil }},
}

func findRel(c *call, i int) (bool, error) {
	x, err := c.rel(i)
	return x != nil, err
}

func findSequence(c *call, i int) (bool, error) {
	x, err := c.rel(i)
	if x != nil && x.kind != 'S' {
		return false, pgerror.New(pgerror.WrongObjectType, "\"%s\" is not a sequence", x.name)
	}
	return x != nil, err
}

func findReg(t types.OID) func(c *call, i int) (bool, error) {
	return func(c *call, i int) (bool, error) {
		if isOID(c.args[i]) {
			_, ok := c.r.RegName(t, c.oid(i))
			return ok, nil
		}
		_, err := c.r.RegOID(t, c.args[i])
		return err == nil, err
	}
}

func findSchema(c *call, i int) (bool, error) {
	s := c.args[i]
	if isOID(s) {
		_, ok := c.r.RegName(types.OIDRegnamespace, c.oid(i))
		return ok, nil
	}
	if c.m.snap.Schema(s) == nil {
		return false, errNoSchema(s)
	}
	return true, nil
}

func findDatabase(c *call, i int) (bool, error) {
	s := c.args[i]
	if isOID(s) {
		return slices.Contains(databaseOIDs[:len(c.r.env.Databases())], c.oid(i)), nil
	}
	if _, ok := databaseByName(c.r.env, s); !ok {
		return false, errNoDatabase(s)
	}
	return true, nil
}

func findLanguage(c *call, i int) (bool, error) {
	t := factsOf("pg_language")
	for k := range t.rows {
		if t.get(k, "oid") == c.args[i] || t.get(k, "lanname") == c.args[i] {
			return true, nil
		}
	}
	if isOID(c.args[i]) {
		return false, nil
	}
	return false, pgerror.New(pgerror.UndefinedObject, "language \"%s\" does not exist", c.args[i])
}

func findTablespace(c *call, i int) (bool, error) {
	switch s := c.args[i]; {
	case isOID(s):
		return c.oid(i) == tablespaceOID || c.oid(i) == tablespaceOID+1, nil
	case s != "pg_default" && s != "pg_global":
		return false, errNoTablespace(s)
	}
	return true, nil
}

func findNothing(what string) func(c *call, i int) (bool, error) {
	return func(c *call, i int) (bool, error) {
		if isOID(c.args[i]) {
			return false, nil
		}
		return false, pgerror.New(pgerror.UndefinedObject, "%s \"%s\" does not exist", what, c.args[i])
	}
}

// checkRights checks a list of privileges: "SELECT, INSERT WITH GRANT OPTION".
func checkRights(list, allowed string) error {
	for _, s := range strings.Split(list, ",") {
		right := strings.TrimSpace(s)
		name, _, _ := strings.Cut(strings.ToUpper(right), " WITH GRANT OPTION")
		ok := false
		for _, a := range strings.Fields(allowed) {
			ok = ok || a == name
		}
		ok = ok || name == "ALTER SYSTEM" && strings.HasSuffix(allowed, name)
		if !ok {
			return pgerror.New(pgerror.InvalidParameterValue, "unrecognized privilege type: \"%s\"", right)
		}
	}
	return nil
}

func errNoRole(name string) error {
	return pgerror.New(pgerror.UndefinedObject, "role \"%s\" does not exist", name)
}

// checkRole checks that a role exists, if it is given by its name.
func (c *call) checkRole(i int) error {
	s := c.args[i]
	if _, ok := roleByName(c.r.env, s); ok || isOID(s) || s == "public" {
		return nil
	}
	return errNoRole(s)
}

func hasPrivilege(kind string, o privilegeObject) func(c *call) result {
	own := 2 // arguments without the role
	if kind == "column" {
		own = 3
	}
	return func(c *call) result {
		at := len(c.args) - own
		if at == 1 {
			if err := c.checkRole(0); err != nil {
				return failed(err)
			}
		}
		ok, err := o.find(c, at)
		if err == nil && ok && kind == "column" {
			ok, err = c.findColumn(at)
		}
		if err == nil {
			err = checkRights(c.args[len(c.args)-1], o.rights)
		}
		switch {
		case err != nil:
			return failed(err)
		case !ok:
			return none
		}
		return boolean(true)
	}
}

// findColumn looks for the column after the relation at argument i.
func (c *call) findColumn(i int) (bool, error) {
	x, err := c.rel(i)
	if err != nil || x == nil {
		return false, err
	}
	if isOID(c.args[i+1]) {
		return x.attrNum(c.number(i+1)) != nil, nil
	}
	if x.attr(c.args[i+1]) == nil {
		return false, errNoColumn(c.args[i+1], x)
	}
	return true, nil
}

func hasRoleCall(c *call) result {
	for i := range len(c.args) - 1 {
		if err := c.checkRole(i); err != nil {
			return failed(err)
		}
	}
	right := c.args[len(c.args)-1]
	if name, _, _ := strings.Cut(strings.ToUpper(right), " WITH "); name != "MEMBER" && name != "USAGE" {
		return failed(pgerror.New(pgerror.InvalidParameterValue, "unrecognized privilege type: \"%s\"", right))
	}
	return boolean(true)
}

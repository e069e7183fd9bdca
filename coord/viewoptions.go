package coord

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/streamdb/streamdb/catalog"
	"github.com/streamdb/streamdb/sql/parser"
	"github.com/streamdb/streamdb/sql/pgerror"
	"github.com/streamdb/streamdb/sql/planner"
)

// viewOptions gives a view its options: of WITH (…), WITH CHECK OPTION and ALTER VIEW
// … SET. Those about security are kept and shown; there is nothing here that they would
// change.
func (s *Session) viewOptions(d *ddlState, o *catalog.Object, opts []parser.Option) error {
	o.Options = maps.Clone(o.Options)
	for _, x := range opts {
		value := strings.ToLower(x.Value.Text)
		switch x.Name {
		case "check_option":
			if value != "local" && value != "cascaded" {
				return pgerror.New(pgerror.InvalidParameterValue, "invalid value for enum option \"check_option\": %s", x.Value.Text).
					WithDetail("Valid values are \"local\" and \"cascaded\".")
			}
			if why := planner.NotUpdatable(s.c.bindContext(d.cat), o); why != "" {
				return pgerror.New(pgerror.FeatureNotSupported, "WITH CHECK OPTION is supported only on automatically updatable views").WithHint("%s", why)
			}
		case "security_barrier", "security_invoker":
			if value == "" {
				value = "true"
			}
			if _, ok := boolOption(value); !ok {
				return pgerror.New(pgerror.InvalidParameterValue, "invalid value for boolean option \"%s\": %s", x.Name, x.Value.Text)
			}
		default:
			return pgerror.New(pgerror.InvalidParameterValue, "unrecognized parameter \"%s\"", x.Name)
		}
		if o.Options == nil {
			o.Options = map[string]string{}
		}
		o.Options[x.Name] = value
	}
	return nil
}

// boolOption reads a value of an option that is on or off.
func boolOption(value string) (on, ok bool) {
	switch value {
	case "on", "yes":
		return true, true
	case "off", "no":
		return false, true
	}
	on, err := strconv.ParseBool(value)
	return on, err == nil
}

// alterViewOptions runs ALTER VIEW … SET (…) and RESET (…); c is a copy to change.
func (s *Session) alterViewOptions(d *ddlState, a *parser.AlterCmd, c *catalog.Object) error {
	if a.Action == parser.AlterResetOptions {
		c.Options = maps.Clone(c.Options)
		for _, x := range a.Options {
			delete(c.Options, x.Name)
		}
	} else if err := s.viewOptions(d, c, a.Options); err != nil {
		return err
	}
	c.SQL = viewSQL(c)
	d.apply(catalog.Change{Put: c})
	return nil
}

// viewOptionsSQL is the WITH (…) of a view.
func viewOptionsSQL(o *catalog.Object) string {
	var list []string
	for _, k := range slices.Sorted(maps.Keys(o.Options)) {
		if o.Kind == catalog.KindView && k != "check_option" {
			list = append(list, k+" = "+o.Options[k])
		}
	}
	if list == nil {
		return ""
	}
	return " WITH (" + strings.Join(list, ", ") + ")"
}

func checkOptionSQL(o *catalog.Object) string {
	if c := o.Options["check_option"]; c != "" {
		return " WITH " + strings.ToUpper(c) + " CHECK OPTION"
	}
	return ""
}

package types

import (
	"strings"

	"github.com/streamdb/streamdb/sql/pgerror"
	"github.com/streamdb/streamdb/sql/textsearch"
)

// TextSearchOID finds the configuration or dictionary of text search that the
// parts of a name denote.
func TextSearchOID(t OID, parts []string) (uint32, error) {
	what, name := "dictionary", parts[len(parts)-1]
	if len(parts) == 1 || len(parts) == 2 && parts[0] == "pg_catalog" {
		if t == OIDRegconfig {
			if c := textsearch.ConfigByName(name); c != nil {
				return c.OID, nil
			}
		} else if d := textsearch.DictByName(name); d != nil {
			return d.OID, nil
		}
	}
	switch {
	case len(parts) == 3:
		return 0, pgerror.New(pgerror.FeatureNotSupported, "cross-database references are not implemented: %s", strings.Join(parts, "."))
	case len(parts) > 3:
		return 0, pgerror.New(pgerror.SyntaxError, "improper qualified name (too many dotted names): %s", strings.Join(parts, "."))
	case t == OIDRegconfig:
		what = "configuration"
	}
	return 0, pgerror.New(pgerror.UndefinedObject, "text search %s \"%s\" does not exist", what, strings.Join(parts, "."))
}

// parseTextSearch reads the name of a configuration or dictionary.
func parseTextSearch(t OID, s string) (uint32, error) {
	parts, err := SplitName(s)
	if err != nil {
		return 0, err
	}
	return TextSearchOID(t, parts)
}

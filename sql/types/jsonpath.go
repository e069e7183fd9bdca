package types

import "github.com/streamdb/streamdb/sql/jsonpath"

// parseJSONPath appends the form in which a path is stored: a text that says
// the same when it is parsed again.
func parseJSONPath(dst []byte, s string) ([]byte, error) {
	p, err := jsonpath.Parse(s)
	if err != nil {
		return dst, err
	}
	return p.Append(dst, AppendJSONString[string]), nil
}

// appendJSONPath appends the text form of a path as PostgreSQL shows it, which
// lacks parentheses here and there.
func appendJSONPath(dst, stored []byte) []byte {
	p, err := jsonpath.Parse(string(stored))
	if err != nil { // not stored by parseJSONPath
		return append(dst, stored...)
	}
	return p.AppendShown(dst, AppendJSONString[string])
}

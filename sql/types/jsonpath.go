package types

import "github.com/streamdb/streamdb/sql/jsonpath"

// appendJSONPath appends the canonical text of a path: the form it is stored in.
func appendJSONPath(dst []byte, s string) ([]byte, error) {
	p, err := jsonpath.Parse(s)
	if err != nil {
		return dst, err
	}
	return p.Append(dst, AppendJSONString[string]), nil
}

package types

func appendJSONPath(dst []byte, s string) ([]byte, error) { return append(dst, s...), nil }

package expr

import "strings"

// newer are the functions that PostgreSQL 16 to 18 added.
var newer = func() map[string]bool {
	m := map[string]bool{}
	for _, name := range strings.Fields(`
		json_agg_strict jsonb_agg_strict json_object_agg_strict jsonb_object_agg_strict json_object_agg_unique
		jsonb_object_agg_unique json_object_agg_unique_strict jsonb_object_agg_unique_strict
		array_reverse array_sort crc32 crc32c gamma lgamma`) {
		m[name] = true
	}
	return m
}()

// Newer reports whether a function came to PostgreSQL after version 15, the one
// that is reported to clients.
func Newer(name string) bool { return newer[name] }

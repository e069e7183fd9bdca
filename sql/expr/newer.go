package expr

import "strings"

// newer are the functions that PostgreSQL 16 to 18 added.
var newer = func() map[string]bool {
	m := map[string]bool{}
	for _, name := range strings.Fields(`
		json_agg_strict jsonb_agg_strict json_object_agg_strict jsonb_object_agg_strict json_object_agg_unique
		jsonb_object_agg_unique json_object_agg_unique_strict jsonb_object_agg_unique_strict
		array_reverse array_sort crc32 crc32c gamma lgamma
		any_value array_sample array_shuffle date_add date_subtract erf erfc jsonb_populate_record_valid pg_basetype pg_input_error_info
		pg_input_is_valid random_normal system_user to_bin to_oct to_regtypemod unicode_assigned unicode_version
		uuid_extract_timestamp uuid_extract_version uuidv4 uuidv7 xmltext`) {
		m[name] = true
	}
	return m
}()

// Newer reports whether a function came to PostgreSQL after version 15, the one
// that is reported to clients.
func Newer(name string) bool { return newer[name] }

package pgcatalog

// Tables lists the system relations.
func Tables() []Table { return nil }

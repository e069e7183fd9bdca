package expr

// Files are initialized in the order of their names: this one is the last.
func init() { registerAliases() }

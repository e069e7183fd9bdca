package expr

import (
	"iter"
	"maps"
	"slices"
)

// overloads gives the overloads in a map by name, in the order of their names.
func overloads[T any](m map[string][]*T) iter.Seq[*T] {
	return func(yield func(*T) bool) {
		for _, name := range slices.Sorted(maps.Keys(m)) {
			for _, f := range m[name] {
				if !yield(f) {
					return
				}
			}
		}
	}
}

// AllFunctions gives every overload of every scalar function: what pg_proc
// shows, with AllAggregates and AllTableFunctions.
func AllFunctions() iter.Seq[*Function] { return overloads(registry.funcs) }

// AllOperators gives every overload of every operator.
func AllOperators() iter.Seq[*Function] { return overloads(registry.ops) }

// AllAggregates gives every overload of every aggregate.
func AllAggregates() iter.Seq[*Aggregate] { return overloads(registry.aggs) }

// AllTableFunctions gives every overload of every set-returning function.
func AllTableFunctions() iter.Seq[*TableFunction] { return overloads(registry.tables) }

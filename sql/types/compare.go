package types

import "cmp"

func cmpOrdered[T cmp.Ordered](a, b T) int { return cmp.Compare(a, b) }

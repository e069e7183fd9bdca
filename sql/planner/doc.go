// Package planner turns statements into plans: it binds names and types
// against a catalog snapshot (bind*.go), lowers the bound tree by decorrelating
// it (lower*.go, subquery.go, extract.go), and rewrites it by named rules
// (optimize.go and the rules' own files). It does no I/O and knows neither
// epochs nor dataflows.
package planner

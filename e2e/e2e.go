// Package e2e tests the built binary from outside, as its users meet it: over
// the wire, with psql and pgx, against real brokers and databases, and through
// kill -9.
package e2e

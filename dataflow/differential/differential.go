// Package differential is data in motion: operators over deltas, exchange
// between partitions, and the circuit that runs them one epoch at a time. It
// knows no SQL, no storage, no clock, and starts no goroutine: parallel work
// goes to an Executor that is passed in.
package differential

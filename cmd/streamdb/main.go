// Command streamdb is an incremental streaming SQL database that speaks the
// PostgreSQL wire protocol.
package main

import "os"

func main() { os.Exit(run(os.Args[1:], os.Stdout, os.Stderr)) }

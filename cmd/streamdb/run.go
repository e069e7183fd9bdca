package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/streamdb/streamdb/coord"
	"github.com/streamdb/streamdb/sqllogictest"
)

// Exit codes.
const (
	exitOK    = 0
	exitError = 1
	exitUsage = 2
)

const usage = `streamdb is an incremental streaming SQL database. Connect with any PostgreSQL client.

usage: streamdb COMMAND [flags]

commands:
  demo      start a server with a built-in, running load and views over it
  serve     start a server
  slt       run sqllogictest files
  bench     run the end-to-end benchmarks
  version   print the version
  help      print this text

` + "`streamdb COMMAND --help` lists a command's flags.\n"

// run executes a command line and returns the exit code.
func run(args []string, stdout, stderr io.Writer) int {
	if len(args) == 0 {
		fmt.Fprint(stderr, usage)
		return exitUsage
	}
	switch cmd, rest := args[0], args[1:]; cmd {
	case "serve":
		return runServe(rest, stdout, stderr)
	case "demo":
		return runDemo(rest, stdout, stderr)
	case "bench":
		return runBench(rest, stdout, stderr)
	case "slt":
		return sqllogictest.Main(rest, sqllogictest.Env{Stdout: stdout, Stderr: stderr, Open: openEmbedded})
	case "version", "--version", "-v":
		fmt.Fprintf(stdout, "streamdb %s\n", coord.Version)
		return exitOK
	case "help", "--help", "-h":
		fmt.Fprint(stdout, usage)
		return exitOK
	default:
		fmt.Fprintf(stderr, "streamdb: unknown command %q%s\n\n%s", cmd, didYouMean(cmd), usage)
		return exitUsage
	}
}

func didYouMean(cmd string) string {
	for _, c := range []string{"demo", "serve", "slt", "bench", "version", "help"} {
		if strings.HasPrefix(c, cmd) || strings.HasPrefix(cmd, c) {
			return fmt.Sprintf(" (did you mean %q?)", c)
		}
	}
	return ""
}

// parseFlags parses a command's flags. done says that the command ends here,
// with the exit code given.
func parseFlags(fs *flag.FlagSet, args []string, stdout, stderr io.Writer) (code int, done bool) {
	fs.SetOutput(stderr)
	name := fs.Name()
	fs.Usage = func() {}
	err := fs.Parse(args)
	switch {
	case errors.Is(err, flag.ErrHelp):
		fmt.Fprintf(stdout, "usage: streamdb %s [flags]\n\nflags:\n", name)
		fs.SetOutput(stdout)
		fs.PrintDefaults()
		return exitOK, true
	case err != nil:
		fmt.Fprintf(stderr, "Run `streamdb %s --help` for the flags.\n", name)
		return exitUsage, true
	case fs.NArg() > 0:
		fmt.Fprintf(stderr, "streamdb %s: unexpected argument %q\nRun `streamdb %s --help` for the flags.\n", name, fs.Arg(0), name)
		return exitUsage, true
	}
	return exitOK, false
}

// byteSize is a flag that takes a size such as 512MiB or 4GB.
type byteSize int64

func (b *byteSize) String() string { return strconv.FormatInt(int64(*b), 10) }

func (b *byteSize) Set(s string) error {
	n, err := parseBytes(s)
	if err != nil {
		return err
	}
	*b = byteSize(n)
	return nil
}

func parseBytes(s string) (int64, error) {
	units := []struct {
		suffix string
		mult   int64
	}{{"kib", 1 << 10}, {"mib", 1 << 20}, {"gib", 1 << 30}, {"tib", 1 << 40}, {"kb", 1e3}, {"mb", 1e6}, {"gb", 1e9}, {"tb", 1e12},
		{"k", 1 << 10}, {"m", 1 << 20}, {"g", 1 << 30}, {"t", 1 << 40}, {"b", 1}, {"", 1}}
	low := strings.ToLower(strings.TrimSpace(s))
	for _, u := range units {
		num, ok := strings.CutSuffix(low, u.suffix)
		if !ok {
			continue
		}
		f, err := strconv.ParseFloat(strings.TrimSpace(num), 64)
		if err != nil || !(f >= 0) || f*float64(u.mult) > 1<<62 {
			return 0, fmt.Errorf("not a size: %q (give one such as 512MiB or 4GB)", s)
		}
		return int64(f * float64(u.mult)), nil
	}
	return 0, fmt.Errorf("not a size: %q", s)
}

package expr_test

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/streamdb/streamdb/catalog"
	"github.com/streamdb/streamdb/internal/datadriven"
	"github.com/streamdb/streamdb/internal/oracle"
	"github.com/streamdb/streamdb/sql/expr"
	"github.com/streamdb/streamdb/sql/parser"
	"github.com/streamdb/streamdb/sql/pgerror"
	"github.com/streamdb/streamdb/sql/planner"
	"github.com/streamdb/streamdb/sql/types"
)

// TestValues evaluates the expressions in testdata/values, one a line, as text.
// The results in the files were written by PostgreSQL 15.
func TestValues(t *testing.T) {
	datadriven.Walk(t, "testdata/values", func(*testing.T) func(c *datadriven.Case) string {
		return func(c *datadriven.Case) string {
			var out strings.Builder
			for line := range strings.Lines(c.Input) {
				out.WriteString(valueOf(strings.TrimSuffix(line, "\n")) + "\n")
			}
			return out.String()
		}
	})
}

// TestValuesItself compares the results in the files with a server's; with
// -rewrite it writes them.
func TestValuesItself(t *testing.T) {
	s := oracle.Connect(t)
	datadriven.Walk(t, "testdata/values", func(t *testing.T) func(c *datadriven.Case) string {
		return func(c *datadriven.Case) string {
			var out strings.Builder
			for _, r := range s.Eval(t, strings.Split(strings.TrimSuffix(c.Input, "\n"), "\n")) {
				out.WriteString(show(r.Text, r.Null, r.Code, r.Message) + "\n")
			}
			return out.String()
		}
	})
}

func show(text string, null bool, code, message string) string {
	switch {
	case code != "":
		return "ERROR " + code + ": " + message
	case null:
		return "NULL"
	}
	return strconv.Quote(text)
}

func valueOf(text string) string {
	fail := func(err error) string {
		e := pgerror.As(err)
		return show("", false, e.Code, e.Message)
	}
	e, err := parser.ParseExpr(text)
	if err != nil {
		return fail(err)
	}
	ctx := &planner.Context{Catalog: catalog.Empty(), Database: "db", SearchPath: []string{"public"}}
	bound, err := planner.BindExpr(ctx, text, &e, nil, "values", types.Unknown)
	if err == nil {
		bound, err = expr.Coerce(bound, types.Text, expr.CastExplicit, 0)
	}
	if err != nil {
		return fail(err)
	}
	c, err := expr.EvalConst(bound, &expr.Context{Now: time.Unix(0, 0), Location: time.UTC})
	if err != nil {
		return fail(err)
	}
	if c.Val.Null(0) {
		return show("", true, "", "")
	}
	return show(string(c.Val.Bytes(0)), false, "", "")
}

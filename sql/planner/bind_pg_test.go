package planner

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/streamdb/streamdb/internal/datadriven"
	"github.com/streamdb/streamdb/internal/oracle"
	"github.com/streamdb/streamdb/sql/pgerror"
	"github.com/streamdb/streamdb/sql/planner/plan"
	"github.com/streamdb/streamdb/sql/types"
)

// TestPostgres runs testdata/postgres: for each statement the parameter and
// result types, or the error, must be PostgreSQL's. The expectations in the
// files were written by PostgreSQL 15; `differs` marks what is our own on
// purpose, with the reason above it.
func TestPostgres(t *testing.T) {
	datadriven.Walk(t, "testdata/postgres", func(t *testing.T) func(c *datadriven.Case) string {
		cat := newTestCatalog()
		return func(c *datadriven.Case) string {
			if c.Cmd == "ddl" {
				if err := cat.ddl(c.Input); err != nil {
					return formatError(err)
				}
				return "ok\n"
			}
			return describeOurs(cat, c.Input)
		}
	})
}

// TestPostgresItself checks the expectations of testdata/postgres against a
// real PostgreSQL; with -rewrite it writes them.
func TestPostgresItself(t *testing.T) {
	srv := oracle.Connect(t)
	ctx := context.Background()
	conn := srv.Conn.PgConn()
	run := func(t *testing.T, sql string) {
		if _, err := conn.Exec(ctx, sql).ReadAll(); err != nil {
			t.Fatalf("%s: %v", sql, err)
		}
	}
	datadriven.Walk(t, "testdata/postgres", func(t *testing.T) func(c *datadriven.Case) string {
		run(t, "ROLLBACK; BEGIN; DROP SCHEMA IF EXISTS public, s2 CASCADE; CREATE SCHEMA public")
		t.Cleanup(func() { run(t, "ROLLBACK") })
		return func(c *datadriven.Case) string {
			switch c.Cmd {
			case "ddl":
				run(t, c.Input)
				return "ok\n"
			case "differs":
				return c.Want
			}
			run(t, "SAVEPOINT s")
			defer run(t, "ROLLBACK TO s")
			sd, err := conn.Prepare(ctx, "", c.Input, nil)
			if err != nil {
				return formatError(postgresError(err))
			}
			return describeTheirs(sd)
		}
	})
}

func postgresError(err error) error {
	var e *pgconn.PgError
	if !errors.As(err, &e) {
		return err
	}
	return &pgerror.Error{Code: e.Code, Message: e.Message, Detail: e.Detail, Hint: e.Hint, Pos: int(e.Position)}
}

func describeTheirs(sd *pgconn.StatementDescription) string {
	var params, cols []string
	for _, o := range sd.ParamOIDs {
		params = append(params, types.Of(types.OID(o)).String())
	}
	for _, f := range sd.Fields {
		cols = append(cols, f.Name+" "+types.Type{OID: types.OID(f.DataTypeOID), Mod: f.TypeModifier}.String()+number(f.TableAttributeNumber))
	}
	return describe(params, cols)
}

func describe(params, cols []string) string {
	s := "columns: " + strings.Join(cols, ", ") + "\n"
	if len(params) > 0 {
		s += "params: " + strings.Join(params, ", ") + "\n"
	}
	return s
}

func number(att uint16) string {
	if att == 0 {
		return ""
	}
	return fmt.Sprintf(" (%d)", att)
}

func describeOurs(cat *testCatalog, sql string) string {
	b, err := cat.bindText(sql)
	if err != nil {
		return formatError(err)
	}
	var ps []types.Type
	var rc []ResultColumn
	switch b := b.(type) {
	case *Query:
		ps, rc = b.Params, b.Columns
		checkPlan(b.Rel)
		checkPlan(b.Collection())
	case *Write:
		ps, rc = b.Params, columnsOf(b.Returning)
		checkPlan(b.Rows())
	}
	var params, cols []string
	for _, p := range ps {
		params = append(params, p.String())
	}
	for _, c := range rc {
		cols = append(cols, c.Name+" "+c.Type.String()+number(uint16(c.AttrNum)))
	}
	return describe(params, cols)
}

func columnsOf(r *Returning) []ResultColumn {
	if r == nil {
		return nil
	}
	return r.Columns
}

// checkPlan panics if a plan refers to columns that are not there.
func checkPlan(r plan.Rel) { validate(r, nil) }

package main

import (
	"context"

	"github.com/streamdb/streamdb/sources"
	"github.com/streamdb/streamdb/sources/kafka"
	"github.com/streamdb/streamdb/sources/loadgen"
	"github.com/streamdb/streamdb/sources/postgres"
	"github.com/streamdb/streamdb/sql/pgerror"
)

// newSource makes the source of a connector: the one place that knows them all.
func newSource(ctx context.Context, connector string, cfg sources.Config) (sources.Source, error) {
	switch connector {
	case "load generator":
		name := cfg.Options["generator"]
		opts := map[string]string{}
		for k, v := range cfg.Options {
			if k != "generator" && k != "connector" && k != "envelope" && k != "upstream" && k != "dialect" {
				opts[k] = v
			}
		}
		return loadgen.New(name, opts, cfg.Columns())
	case "kafka":
		return kafka.New(ctx, cfg)
	case "postgres":
		return postgres.New(ctx, cfg)
	}
	return nil, pgerror.Unsupported("connector '" + connector + "'")
}

// checkConnection checks the options of a connection by themselves.
func checkConnection(connector string, opts map[string]string) error {
	switch connector {
	case "kafka":
		return kafka.Check(opts)
	case "confluent schema registry":
		return kafka.CheckRegistry(opts)
	}
	return postgres.Check(opts)
}

// validateConnection tries whether the other side of a connection answers.
func validateConnection(ctx context.Context, connector string, opts map[string]string) error {
	switch connector {
	case "kafka":
		return kafka.Validate(ctx, opts)
	case "confluent schema registry":
		return kafka.ValidateRegistry(ctx, opts)
	case "postgres":
		return postgres.Validate(ctx, opts)
	}
	return pgerror.Unsupported("VALIDATE CONNECTION for " + connector)
}

#!/usr/bin/env bash
# Runs every test with the real services. Services that were running before are
# left running. With STREAMDB_REQUIRE_ALL=1 a service that cannot be had is an
# error; otherwise its tests are skipped.
set -euo pipefail
cd "$(dirname "$0")/.."
started=0
if [ ! -s .run/kafka.pid ]; then started=1; fi
if ! scripts/services.sh up; then
  [ "${STREAMDB_REQUIRE_ALL:-}" = 1 ] && { echo "test services could not be started" >&2; exit 1; }
fi
[ $started = 1 ] && trap 'scripts/services.sh down' EXIT
eval "$(scripts/services.sh env)"
go build -o bin/streamdb ./cmd/streamdb
go test -count=1 -timeout 30m "$@" ./...

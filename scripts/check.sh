#!/usr/bin/env bash
# Static checks, then the race detector on the packages named as arguments.
set -euo pipefail
cd "$(dirname "$0")/.."
bad=$(git ls-files '*.go' | xargs -r gofmt -l)
[ -z "$bad" ] || { echo "gofmt differs:"; echo "$bad"; exit 1; }
go mod tidy -diff >/dev/null || { echo "go.mod is not tidy"; exit 1; }
go vet ./...
mkdir -p bin
(cd tools && go build -o ../bin/staticcheck honnef.co/go/tools/cmd/staticcheck)
bin/staticcheck ./...
if [ $# -gt 0 ]; then
  go test -race -short -count=1 -timeout 20m "$@"
fi

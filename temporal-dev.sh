#!/usr/bin/env bash
# A local Temporal for development: server, UI and CLI in one process, its data in a file that outlives it.
#
#   ./temporal-dev.sh            run it (Ctrl-C stops it)
#   ./temporal-dev.sh install    only make sure there is a CLI, and print its path
#
# The CLI is ./bin/temporal, or else `temporal` from PATH, or else the pinned version built into ./bin (under 4 minutes).
# Settings: TEMPORAL_IP (127.0.0.1) TEMPORAL_PORT (7233) TEMPORAL_UI_PORT (8233) TEMPORAL_DB (.run/temporal.db)
# TEMPORAL_LOG_LEVEL (error). Extra arguments go to `temporal server start-dev`.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
version=v1.5.1 # server 1.29.1

cli() {
  if [ -x "$here/bin/temporal" ]; then
    echo "$here/bin/temporal"
  elif command -v temporal >/dev/null; then
    command -v temporal
  else
    echo "building the Temporal CLI with its dev server and UI, ./bin/temporal $version: under 4 minutes, once" >&2
    go=$here/internal/tools/go-progress.sh
    [ -x "$go" ] || go=go
    GOBIN="$here/bin" "$go" install -v "github.com/temporalio/cli/cmd/temporal@$version" >&2 ||
      exit # $(cli) does not heed set -e
    echo "$here/bin/temporal"
  fi
}

temporal=$(cli)
if [ "${1:-}" = install ]; then
  echo "$temporal"
  exit 0
fi
db=${TEMPORAL_DB:-$here/.run/temporal.db}
mkdir -p "$(dirname "$db")"
# By default a shard looks for tasks at most 20 times a second, which is meant for one of hundreds. This server has one, and
# a scale-out takes a dozen looks in a row.
exec "$temporal" server start-dev \
  --ip "${TEMPORAL_IP:-127.0.0.1}" --port "${TEMPORAL_PORT:-7233}" --ui-port "${TEMPORAL_UI_PORT:-8233}" \
  --db-filename "$db" --log-level "${TEMPORAL_LOG_LEVEL:-error}" \
  --search-attribute LiqoGroup=Keyword --search-attribute LiqoInstance=Keyword \
  --search-attribute LiqoProvider=Keyword \
  --dynamic-config-value history.transferProcessorMaxPollRPS=1000 \
  "$@"

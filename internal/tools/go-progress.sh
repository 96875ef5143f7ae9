#!/usr/bin/env bash
# Runs go with the arguments, which must have -v, and prints a line every ten seconds while go compiles.
#
#   internal/tools/go-progress.sh build -v -o bin/ ./cmd/liqo-autoscaler
set -euo pipefail

count() {
  local started=0 downloaded=0 next=10 latest='' status line
  while true; do
    status=0
    IFS= read -r -t 2 line || status=$?
    if [ $status -eq 0 ]; then
      case $line in
        "go: downloading "*) downloaded=$((downloaded + 1)) latest=$line ;;
        "" | *[!A-Za-z0-9._~/-]*) echo "$line" ;; # not the path of a package: an error
        *) started=$((started + 1)) latest=$line ;;
      esac
    elif [ $status -le 128 ]; then # the end of the output; a larger status is the time limit of read
      return
    fi
    if [ $SECONDS -ge $next ] && [ -n "$latest" ]; then
      next=$((SECONDS + 10))
      echo "  $SECONDS s: $started packages, $downloaded modules downloaded; now $latest"
    fi
  done
}

go "$@" 2>&1 | count >&2

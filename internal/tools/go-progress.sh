#!/usr/bin/env bash
# Runs go with the arguments, which must have -v and end with the packages, and prints a line every ten seconds while go
# compiles. PACKAGES is the number of packages with an empty cache; without it the script counts them.
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
      PACKAGES=${PACKAGES:-$(go list -deps "$1" 2>/dev/null | wc -l)}
      echo "  $SECONDS s: $started of at most $PACKAGES packages, $downloaded modules downloaded; now $latest"
    fi
  done
}

go "$@" 2>&1 | count "${@: -1}" >&2

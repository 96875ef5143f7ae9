#!/usr/bin/env bash
# Runs each test of random cases, those that call testkit.Cases, and prints its seed. LIQO_AUTOSCALER_TEST_CASES is how
# many cases.
set -euo pipefail
cd "$(dirname "$0")/../.."
files=$(grep -rlE '[(:= ]testkit\.Cases\(' --include='*_test.go' --exclude-dir=e2e .)
tests=$(awk '/^func Test/ { sub(/^func /, ""); sub(/\(.*/, ""); name = $0 } /testkit\.Cases\(/ { print name }' $files)
go test -count=1 -timeout 30m -v -run "^($(paste -sd'|' <<<"$tests"))\$" $(xargs -n1 dirname <<<"$files" | sort -u) |
	grep -v '^=== '

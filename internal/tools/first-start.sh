#!/usr/bin/env bash
# Measures the first `make run`: builds its two programs in a copy of the repository, with an empty build cache. It prints
# the time, and the compiled packages that needed most CPU time, in seconds. Modules that are missing are downloaded first.
set -euo pipefail
cd "$(dirname "$0")/../.."
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
export GOCACHE=$dir/cache
git ls-files -z | tar --null -T- -c | tar -x -C "$dir" --one-top-level=copy
go mod download
version=$(sed -n 's/^version=\(v[^ ]*\).*/\1/p' temporal-dev.sh)
GOFLAGS=-mod=mod go mod download "github.com/temporalio/cli@$version"

# A go that also writes its graph of actions.
mkdir "$dir/path"
cat >"$dir/path/go" <<END
#!/bin/sh
command=\$1
case \$command in
  build | install) shift; exec $(command -v go) \$command -debug-actiongraph=$dir/\$\$.json "\$@" ;;
  *) exec $(command -v go) "\$@" ;;
esac
END
chmod +x "$dir/path/go"
begun=$(date +%s)
PATH=$dir/path:/usr/bin:/bin make -C "$dir/copy" --no-print-directory ready
echo "$(($(date +%s) - begun)) s in all"
cat "$dir"/*.json | awk -F'": ' '
  /^\t\t"Mode"/ { mode = $2; package = ""; cpu = 0 }
  /^\t\t"Package"/ { package = $2 }
  /^\t\t"Cmd(User|Sys)"/ { cpu += $2 / 1e9 }
  /^\t}/ && cpu > 0 { gsub(/[",]/, "", mode); gsub(/[",]/, "", package); n++; all += cpu; print cpu, mode, package }
  END { printf "%.0f of CPU time in %d packages and programs\n", all, n >"/dev/stderr" }' | sort -rn |
  awk 'NR <= 30 { printf "| %.1f | %s%s |\n", $1, $2 == "link" ? "linking " : "", $3 }'

#!/bin/sh
# For `go test -toolexec`: go test links a test binary each time it runs it, also one that is up to date. This takes it from
# the folder in the first argument, which keeps the last binary of each package, if its build ID is the one that is asked
# for: Go makes it from all that goes into the binary.
set -eu
kept=$1
shift
[ "${1##*/} ${2-}" = "link -o" ] || exec "$@"
kept=$kept/$(sed -n 's/^packagefile \(.*\.test\)=.*/\1/p' "$5")
id=$(expr "$*" : '.*-buildid=\([^ ]*\)' | tr / .)
cp "$kept/$id" "$3" 2>/dev/null && exit
"$@"
rm -rf "$kept"
mkdir -p "$kept"
cp "$3" "$kept/.$id.$$"
mv "$kept/.$id.$$" "$kept/$id"

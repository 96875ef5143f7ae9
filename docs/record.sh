#!/usr/bin/env bash
# Records docs/images/failover.svg, a terminal in which a provider hangs and an instance switches to another one, and
# docs/images/temporal-ui.png, where there is chromium. All of it runs, so it needs the ports of `make run`. It also needs
# asciinema (apt-get install asciinema) and npm, which fetches svg-term-cli.
#
#   docs/record.sh         record: make recording
#   docs/record.sh play    what is recorded: run in a terminal of 100 columns and 30 lines
set -euo pipefail
cd "$(dirname "$0")/.."
svg_term=svg-term-cli@2.1.1

say() { printf '\e[32m$\e[0m \e[1m%s\e[0m\n' "$1"; sleep 1; }
show() { say "$1"; bash -c "$1"; sleep 2; }

play() {
  clear
  show "bin/liqo-autoscaler dev slow milan"
  say "bin/liqo-autoscaler demo --keep &"
  bin/liqo-autoscaler demo --keep >/dev/null &
  demo=$!
  say "make watch"
  bin/liqo-autoscaler status --watch &
  watch=$!
  sleep 7
  until bin/temporal workflow cancel -w peering/milan >/dev/null 2>&1; do sleep 1; done # as from another terminal
  wait $demo
  sleep 4
  kill $watch
  wait $watch
  show "bin/liqo-autoscaler dev heal milan"
  show "bin/liqo-autoscaler demo --return"
  sleep 3
}
[ "${1:-}" != play ] || { play; exit; }

command -v asciinema >/dev/null || { echo "asciinema is missing: apt-get install asciinema"; exit 1; }
make build temporal
dir=$(mktemp -d)
mv .run "$dir/run" 2>/dev/null || true # a fresh world; the old one comes back
bin/liqo-autoscaler dev >"$dir/out" 2>&1 &
dev=$!
trap 'kill $dev; wait $dev || true; rm -rf .run; mv "$dir/run" .run 2>/dev/null || true; rm -rf "$dir"' EXIT
until grep -q "Ctrl-C stops everything" "$dir/out"; do
  kill -0 $dev || { cat "$dir/out"; exit 1; }
  sleep 0.2
done
asciinema rec --quiet --overwrite --cols 100 --rows 30 --idle-time-limit 2 -c "docs/record.sh play" "$dir/cast"
npm exec --yes --package $svg_term -- svg-term --in "$dir/cast" --out docs/images/failover.svg --window --no-cursor

if command -v chromium >/dev/null; then # milan hangs again, for the picture of the Temporal UI
  bin/liqo-autoscaler dev slow milan
  bin/liqo-autoscaler demo --keep >/dev/null &
  until bin/liqo-autoscaler status | grep -q "waiting for tenant"; do sleep 1; done
  chromium --headless --no-sandbox --hide-scrollbars --window-size=1400,900 --virtual-time-budget=20000 \
    --screenshot=docs/images/temporal-ui.png http://127.0.0.1:8233/namespaces/default/workflows 2>/dev/null
fi
ls -l docs/images

#!/usr/bin/env bash
# Records the pictures in docs/images: failover.svg, a terminal in which a provider hangs and an instance switches to
# another one; temporal-ui.png and timeline.png, two pages of the Temporal UI; dashboard.png, the chart's dashboard with
# the data of this run. All of it runs, so it needs the ports of `make run` and port 9091. It also needs Debian's packages
# asciinema, chromium and prometheus, and npm, which fetches svg-term-cli and uPlot.
#
#   docs/record.sh         record: make recording
#   docs/record.sh play    what is recorded: run in a terminal of 100 columns and 30 lines
set -euo pipefail
cd "$(dirname "$0")/.."
svg_term=svg-term-cli@2.1.1
uplot=uplot@1.6.32

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
  until bin/temporal workflow describe -w peering/milan >/dev/null 2>&1; do sleep 1; done
  say "temporal workflow cancel -w peering/milan"
  bin/temporal workflow cancel -w peering/milan
  wait $demo
  sleep 4
  kill $watch
  wait $watch
  show "bin/liqo-autoscaler dev heal milan"
  show "bin/liqo-autoscaler demo --return"
  sleep 3
}
[ "${1:-}" != play ] || { play; exit; }

for needed in asciinema chromium prometheus npm; do
  command -v $needed >/dev/null || { echo "$needed is missing: apt-get install $needed"; exit 1; }
done
make build temporal
dir=$(mktemp -d)
mv .run "$dir/run" 2>/dev/null || true # a fresh world; the old one comes back
bin/liqo-autoscaler dev >"$dir/out" 2>&1 &
dev=$!
trap 'kill $dev ${prometheus:-}; wait $dev || true; rm -rf .run; mv "$dir/run" .run 2>/dev/null || true; rm -rf "$dir"' EXIT
until grep -q "Ctrl-C stops everything" "$dir/out"; do
  kill -0 $dev || { cat "$dir/out"; exit 1; }
  sleep 0.2
done
asciinema rec --quiet --overwrite --cols 100 --rows 30 --idle-time-limit 2 -c "docs/record.sh play" "$dir/cast"
npm exec --yes --package $svg_term -- svg-term --in "$dir/cast" --out docs/images/failover.svg --window --no-cursor

# picture FILE HEIGHT URL
picture() {
  chromium --headless --no-sandbox --hide-scrollbars --window-size=1440,$2 --virtual-time-budget=20000 \
    --screenshot="docs/images/$1" "$3" 2>/dev/null
}
ui=http://127.0.0.1:8233/namespaces/default/workflows

bin/liqo-autoscaler dev slow milan # milan hangs again
bin/liqo-autoscaler demo --keep >/dev/null &
until bin/liqo-autoscaler status | grep -q "waiting for tenant"; do sleep 1; done
picture temporal-ui.png 900 $ui
bin/temporal workflow cancel -w peering/milan >/dev/null
wait $!
instance=$(bin/liqo-autoscaler status | awk '$3 == "Ready" { print $1; exit }')
run=$(bin/temporal workflow describe -w "scale-out/$instance" -o json | awk -F'"' '/"runId"/ { print $4; exit }')
picture timeline.png 1080 "$ui/scale-out%2F$instance/$run/history"
bin/liqo-autoscaler dev heal milan
bin/liqo-autoscaler demo --return >/dev/null

# The dashboard: ten minutes of scale-outs and scale-ins, of which some fail over.
cat >"$dir/prometheus.yml" <<END
global: { scrape_interval: 5s }
scrape_configs:
  - job_name: liqo-autoscaler
    static_configs: [{ targets: [$(grep -o '127.0.0.1:[0-9]*/metrics' "$dir/out" | sed "s|\(.*\)/metrics|'\1'|" | paste -sd,)], labels: { namespace: demo } }]
END
prometheus --config.file="$dir/prometheus.yml" --storage.tsdb.path="$dir/tsdb" --web.listen-address=127.0.0.1:9091 \
  >"$dir/prometheus.out" 2>&1 &
prometheus=$!
end=$((SECONDS + 600))
for ((i = 0; SECONDS < end; i++)); do
  [ $((i % 4)) != 3 ] || bin/liqo-autoscaler dev break milan
  bin/liqo-autoscaler demo --keep >/dev/null || true
  bin/liqo-autoscaler demo --keep --group gpu >/dev/null || true
  sleep 20
  bin/liqo-autoscaler demo --return >/dev/null || true
  bin/liqo-autoscaler demo --return --group gpu >/dev/null || true
  bin/liqo-autoscaler dev heal milan
done
npm install --silent --no-save --prefix "$dir" $uplot
node docs/dashboard.mjs http://127.0.0.1:9091 10 "$dir/node_modules/uplot" 52 >"$dir/dashboard.html"
picture dashboard.png 2020 "file://$dir/dashboard.html"
ls -l docs/images

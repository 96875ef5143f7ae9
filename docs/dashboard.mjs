// Draws the chart's Grafana dashboard with the data of a Prometheus server, as one HTML page. The panels, their queries
// and their places are the dashboard's own. The lines are drawn by uPlot, as in Grafana.
//
//   node docs/dashboard.mjs http://127.0.0.1:9091 MINUTES UPLOT_DIRECTORY HEIGHT > dashboard.html
//
// HEIGHT is the number of the dashboard's rows to draw. docs/record.sh makes a picture of the page.
import { readFileSync } from "node:fs";

const [prometheus, minutes, uplot, height] = process.argv.slice(2);
const board = JSON.parse(readFileSync(new URL("../deploy/helm/liqo-autoscaler/files/dashboard.json", import.meta.url)));
const to = Math.floor(Date.now() / 1000), from = to - 60 * minutes, step = Math.max(5, Math.ceil((to - from) / 200));
// The values of the dashboard's variables: all, but for the namespace that record.sh gives to its targets.
const values = { $__rate_interval: "1m", $namespace: "demo", $job: ".*", $hub: ".*", $task_queue: ".*", $group: ".*" };
const colors = ["#3274d9", "#e0752d", "#56a64b", "#a352cc", "#e02f44", "#37872d", "#8f3bb8", "#b7950b"];

async function query(target) {
  const expr = Object.entries(values).reduce((e, [name, value]) => e.replaceAll(name, value), target.expr);
  const answer = await fetch(`${prometheus}/api/v1/query_range`, {
    method: "POST", body: new URLSearchParams({ query: expr, start: from, end: to, step }),
  }).then((r) => r.json());
  if (answer.status !== "success") throw new Error(`${expr}: ${answer.error}`);
  return answer.data.result.map((series) => ({
    name: (target.legendFormat ?? "").replace(/{{(\w+)}}/g, (_, label) => series.metric[label] ?? ""),
    at: new Map(series.values.map(([time, value]) => [time, Number.isFinite(+value) ? +value : null])),
  }));
}

const times = Array.from({ length: Math.floor((to - from) / step) + 1 }, (_, i) => from + i * step);
const panels = [];
for (const p of board.panels.filter((p) => p.gridPos.y + p.gridPos.h <= height)) {
  const series = (await Promise.all(p.targets.map(query))).flat();
  panels.push({
    title: p.title, type: p.type, place: p.gridPos, unit: p.fieldConfig.defaults.unit, names: series.map((s) => s.name),
    data: [times, ...series.map((s) => times.map((t) => s.at.get(t) ?? null))],
  });
}

console.log(`<!doctype html><meta charset="utf-8"><title>${board.title}</title>
<style>${readFileSync(`${uplot}/dist/uPlot.min.css`)}
body { margin: 8px; width: 1400px; background: #f4f5f5; font: 13px sans-serif; color: #24292e; }
#board { display: grid; grid-template-columns: repeat(24, 1fr); grid-auto-rows: 30px; gap: 8px; }
section { background: white; border: 1px solid #dcdedf; padding: 6px 10px; overflow: hidden; }
h2 { font-size: 13px; font-weight: 600; margin: 0 0 4px; }
.number { font-size: 38px; color: #37872d; text-align: center; margin-top: 14px; }
.u-legend { font-size: 11px; text-align: left !important; }
</style><div id="board"></div><script>${readFileSync(`${uplot}/dist/uPlot.iife.min.js`)}</script><script>
const panels = ${JSON.stringify(panels)}, colors = ${JSON.stringify(colors)};
const short = (v, unit) => v == null ? "-" : (Math.abs(v) >= 100 ? v.toFixed(0) : String(+v.toPrecision(2))) + (unit === "s" ? " s" : "");
for (const p of panels) {
  const at = document.getElementById("board").appendChild(document.createElement("section"));
  at.style.gridColumn = (p.place.x + 1) + " / span " + p.place.w;
  at.style.gridRow = (p.place.y + 1) + " / span " + p.place.h;
  at.appendChild(document.createElement("h2")).textContent = p.title;
  if (p.type === "stat") {
    const n = at.appendChild(document.createElement("div"));
    n.className = "number";
    n.textContent = p.data.slice(1).map((s, i) =>
      short(s.findLast((v) => v != null)) + (p.names.length && p.unit === "none" ? " " + p.names[i] : "")).join(", ") || "-";
    continue;
  }
  new uPlot({
    width: at.clientWidth - 20, height: at.clientHeight - 60, cursor: { show: false }, legend: { live: false },
    scales: { y: { range: (u, min, max) => [Math.min(0, min ?? 0), (max ?? 0) > 0 ? max * 1.05 : 1] } },
    axes: [{ grid: { stroke: "#eee" } }, { size: 60, grid: { stroke: "#eee" }, values: (u, all) => all.map((v) => short(v, p.unit)) }],
    series: [{}, ...p.names.map((label, i) => ({ label, stroke: colors[i % colors.length], width: 1.5, spanGaps: false }))],
  }, p.data, at);
}
</script>`);

// The page of a run of an automation: its graph, and beside it the run or one of its nodes.

import { Details } from "/pages/details.js";
import { Drawing } from "/pages/drawing.js";
import { at, followed, runId, showHead } from "/pages/follow.js";
import { element, icon, plain, STATES } from "/pages/words.js";

const OPEN = ["queued", "running", "waiting"];

const details = new Details(at("details"));
const drawing = new Drawing(at("graph"), at("scroller"), choose);

let shown = null;
let known = new Map();
let chosen = null;

/** The address names the node of the panel, so that a link leads to it. */
function choose(nodeId) {
  chosen = chosen === nodeId ? null : nodeId;
  history.replaceState(null, "", chosen === null ? location.pathname : `#${encodeURIComponent(chosen)}`);
  drawing.mark(chosen);
  showDetails();
}

function showDetails() {
  const node = shown.graph.nodes.find((one) => one.id === chosen);
  if (node) details.showNode(shown.run, node, known.get(node.id));
  else details.showRun(shown, known);
}

function showHeader() {
  const { run, automation, version } = shown;
  at("version").textContent = `v${version}`;
  showHead(automation.label, run, run.metadata.temporal, { Source: plain(run.source) });
  showAttributes(run);
}

function showAttributes({ workspaceId, attributes = {} }) {
  const filter = (key, value) => encodeURIComponent(`${key}:${value.replace(/[\\,]/g, "\\$&")}`);
  at("attributes").replaceChildren(...Object.entries(attributes).sort().map(([key, value]) =>
    element("div", {}, element("dt", {}, key), element("dd", {}, element("a",
      { href: `/workspaces/${workspaceId}/runs?attribute=${filter(key, value)}` }, value)))));
}

function showLegend() {
  const counts = new Map();
  for (const node of shown.graph.nodes) {
    const status = known.get(node.id)?.status;
    if (status) counts.set(status, (counts.get(status) ?? 0) + 1);
  }
  at("legend").replaceChildren(...STATES.filter((state) => state !== "timed_out").map((state) =>
    element("li", { "data-status": state }, icon(state), plain(state),
      counts.has(state) ? element("b", {}, String(counts.get(state))) : null)));
}

function show() {
  showHeader();
  drawing.show(known);
  showLegend();
}

/** The actions on the run may have changed, which the server knows. */
const tellChanged = () => document.body.dispatchEvent(new Event("changed"));

function take(found, first) {
  shown = found;
  if (!first || OPEN.includes(found.run.status) || at("status").dataset.status !== found.run.status) {
    tellChanged();
  }
  known = new Map(found.nodes.map((node) => [node.nodeId, node]));
  if (first) {
    drawing.draw(found.graph);
    const named = decodeURIComponent(location.hash.slice(1));
    if (found.graph.nodes.some((node) => node.id === named)) chosen = named;
    drawing.mark(chosen);
  }
  show();
  showDetails();
}

function heard(data) {
  const { waiting, metadata, ...run } = data.run;
  const before = JSON.stringify(shown.run);
  const told = `${shown.run.status} ${JSON.stringify(shown.run.metadata.waiting)}`;
  Object.assign(shown.run, run);
  const { waitingForWorkerSince } = metadata;
  Object.assign(shown.run.metadata, { waiting, waitingForWorkerSince });
  for (const node of data.nodes) known.set(node.nodeId, node);
  if (told !== `${run.status} ${JSON.stringify(waiting)}`) tellChanged();
  show();
  const news = chosen === null
    ? JSON.stringify(shown.run) !== before
    : data.nodes.some((node) => node.nodeId === chosen);
  if (news) showDetails();
}

for (const button of document.querySelectorAll("[data-zoom]")) {
  button.addEventListener("click", () => drawing.zoom(button.dataset.zoom));
}
document.addEventListener("keydown", (event) => {
  if (event.key === "Escape" && chosen !== null) choose(chosen);
});
window.addEventListener("hashchange", () => location.reload());

followed(`/v1/runs/${encodeURIComponent(runId)}`, {
  take, heard, tick: show, isOpen: () => OPEN.includes(shown.run.status),
});

// The page of a run: asks for a key, shows the run, and follows it until it ends.

import * as client from "/pages/client.js";
import { Details } from "/pages/details.js";
import { Drawing } from "/pages/drawing.js";
import { duration, element, icon, moment, plain, span, STATES } from "/pages/words.js";

const OPEN = ["queued", "running", "waiting"];
const PAUSES = [500, 1000, 2000, 5000, 10_000];
/** Refusals that another try with the same key does not change. */
const FINAL = [401, 403, 404];

const runId = decodeURIComponent(location.pathname.split("/").pop());
const at = (id) => document.getElementById(id);
const details = new Details(at("details"));
const drawing = new Drawing(at("graph"), at("scroller"), choose);

let shown = null;
let known = new Map();
let chosen = null;
/** From a key to its end: aborted, it takes along whatever was asked for with the key. */
let stay = new AbortController();

/** What the panel shows is in the address, so that a link leads to a node. */
function choose(nodeId) {
  chosen = chosen === nodeId ? null : nodeId;
  history.replaceState(null, "", chosen === null ? location.pathname : `#${encodeURIComponent(chosen)}`);
  drawing.mark(chosen);
  showDetails();
}

function showDetails() {
  const node = shown.graph.nodes.find((one) => one.id === chosen);
  if (node) details.showNode(shown.run, node, known.get(node.id));
  else details.showRun(shown);
}

function showHeader() {
  const { run, automation, version } = shown;
  document.title = `${plain(run.status)} · ${automation.label}`;
  at("label").textContent = automation.label;
  at("version").textContent = `v${version}`;
  const status = at("status");
  if (status.dataset.status !== run.status) {
    status.dataset.status = run.status;
    status.replaceChildren(icon(run.status), plain(run.status));
  }
  const took = span(run.startedAt, run.completedAt);
  const facts = {
    source: plain(run.source),
    started: run.startedAt ? moment(run.startedAt) : "not yet",
    took: took === null ? "" : duration(took),
  };
  at("facts").replaceChildren(...Object.entries(facts).filter(([, value]) => value).map(
    ([name, value]) => element("div", {}, element("dt", {}, name), element("dd", {}, value))));
  problem(run.error);
  const { uiUrl } = run.metadata.temporal;
  at("temporal").hidden = !/^https?:/.test(uiUrl ?? "");
  if (!at("temporal").hidden) at("temporal").href = uiUrl;
}

function problem(text) {
  at("error").hidden = !text;
  at("error").textContent = text ?? "";
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

function live(state) {
  const words = { live: "live", lost: "reconnecting", over: "" };
  at("live").dataset.live = state;
  at("live").hidden = state === "over";
  at("live").textContent = words[state];
}

async function load(signal) {
  const found = await client.overview(runId, signal);
  const first = shown === null;
  shown = found;
  known = new Map(found.nodes.map((node) => [node.nodeId, node]));
  at("entry").hidden = true;
  at("header").hidden = at("main").hidden = false;
  if (first) {
    drawing.draw(found.graph);
    const named = decodeURIComponent(location.hash.slice(1));
    if (found.graph.nodes.some((node) => node.id === named)) chosen = named;
    drawing.mark(chosen);
  }
  show();
  showDetails();
}

function heard(name, data) {
  if (name !== "state") return;
  live("live");
  const { waiting, ...run } = data.run;
  const before = JSON.stringify(shown.run);
  Object.assign(shown.run, run);
  shown.run.metadata.waiting = waiting;
  for (const node of data.nodes) known.set(node.nodeId, node);
  show();
  const news = chosen === null
    ? JSON.stringify(shown.run) !== before
    : data.nodes.some((node) => node.nodeId === chosen);
  if (news) showDetails();
}

/** Follow the run until it has ended; streams end now and then, and connections break. */
async function follow(signal) {
  for (let failures = 0; OPEN.includes(shown.run.status);) {
    try {
      await client.watch(runId, (name, data) => {
        failures = 0;
        heard(name, data);
      }, signal);
    } catch (error) {
      if (signal.aborted || FINAL.includes(error.status)) throw error;
      live("lost");
    }
    if (!OPEN.includes(shown.run.status)) break;
    await new Promise((done) => setTimeout(done, PAUSES[Math.min(failures, PAUSES.length - 1)]));
    signal.throwIfAborted();
    failures += 1;
  }
  await load(signal);
  live("over");
}

function ask(error) {
  stay.abort();
  client.forget();
  shown = null;
  at("header").hidden = at("main").hidden = at("error").hidden = true;
  at("entry").hidden = false;
  at("refusal").textContent = error ? error.message : "";
  at("token").focus();
}

async function start() {
  stay.abort();
  if (client.token() === null) return ask(null);
  const { signal } = (stay = new AbortController());
  try {
    await load(signal);
    await follow(signal);
  } catch (error) {
    if (signal.aborted) return;
    if (!(error instanceof client.Refused)) throw error;
    if (FINAL.includes(error.status)) return ask(error);
    if (shown === null) problem(error.message);
    else live("lost");
    setTimeout(() => signal.aborted || start(), PAUSES[2]);
  }
}

at("entry").addEventListener("submit", (event) => {
  event.preventDefault();
  client.remember(at("token").value.trim());
  at("token").value = "";
  start();
});
at("forget").addEventListener("click", () => ask(null));
for (const button of document.querySelectorAll("[data-zoom]")) {
  button.addEventListener("click", () => drawing.zoom(button.dataset.zoom));
}
document.addEventListener("keydown", (event) => {
  if (event.key === "Escape" && chosen !== null) choose(chosen);
});
window.addEventListener("hashchange", () => location.reload());
// What goes on takes longer every second.
setInterval(() => {
  if (shown !== null && OPEN.includes(shown.run.status)) show();
}, 1000);

start();

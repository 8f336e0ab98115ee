// The panel beside the graph: the run, or one node with its iterations, attempts and values.

import { nodeRuns, Refused } from "/pages/client.js";
import {
  duration, element, moment, mono, pairs, plain, present, section, span, STATES, tag,
} from "/pages/words.js";

const SHOWN = 20_000;
const PAGE = 50;
const RELATIONS = { parent: "Started by", child: "Started", replayed: "Retry of", failure: "Handled by" };

export class Details {
  constructor(panel) {
    this.panel = panel;
    this.nodeId = null;
  }

  /** Shows these; what is there already stays, for the reader may be about to click it. */
  show(...parts) {
    const next = element("div", {}, ...parts);
    if (next.innerHTML !== this.panel.innerHTML) this.panel.replaceChildren(...next.childNodes);
  }

  /** The run itself: its payload, its output, and the runs around it. */
  showRun({ run, links, graph }, known) {
    this.nodeId = null;
    const { waiting = [], waitingForWorkerSince: lost } = run.metadata;
    this.show(...present(
      element("h2", {}, "Overview"),
      pairs({
        "Run ID": mono(run.id),
        Workflow: mono(run.metadata.temporal.workflowId),
        Created: moment(run.createdAt),
        Ended: run.completedAt && moment(run.completedAt),
        "Started at node": run.startNodeId,
        Record: recordOf(run.triggerPayload),
      }),
      links.length > 0 && section("Related runs", ...links.map((link) =>
        element("p", {}, `${RELATIONS[link.relation]} `,
          element("a", { href: `/runs/${link.runId}` }, link.automationLabel), " ", tag(link.status)))),
      timeline(run, graph, known),
      lost && section("Waiting", element("p", { class: "problem" },
        `Waiting for a worker since ${moment(lost)}`)),
      waiting.length > 0 && section("Waiting for", ...waiting.map((wait) => element("p", {},
        `${wait.nodeId} (${plain(wait.reason)})${wait.until ? ` until ${moment(wait.until)}` : ""}`))),
      run.error && section("Error", element("p", { class: "problem" }, run.error)),
      section("Trigger payload", json(run.triggerPayload)),
      section("Output", json(run.output)),
    ));
  }

  /** A node, with its node runs as they are now. */
  async showNode(run, node, progress) {
    const again = this.nodeId === node.id;
    this.nodeId = node.id;
    if (!again) Object.assign(this, { status: "", chosen: null, found: [], cursor: null });
    this.run = run;
    this.node = node;
    this.progress = progress;
    // While the reader pages on, the pages stay as they are.
    if (again && this.found.length > PAGE) return;
    // One question at a time is enough; what is new by its answer is asked for after it.
    this.news = true;
    if (this.loading) return;
    this.loading = true;
    try {
      while (this.news && this.nodeId !== null) {
        this.news = false;
        await this.load(null);
      }
    } finally {
      this.loading = false;
    }
  }

  async load(cursor) {
    const { nodeId } = this;
    try {
      const page = await nodeRuns(this.run, { nodeId, status: this.status, cursor });
      if (nodeId !== this.nodeId) return;
      this.found = cursor === null ? page.nodeRuns : [...this.found, ...page.nodeRuns];
      this.cursor = page.cursor;
      this.draw();
    } catch (error) {
      if (!(error instanceof Refused)) throw error;
      this.show(element("p", { class: "problem" }, error.message));
    }
  }

  draw() {
    const { node, progress, found } = this;
    const key = this.chosen ?? found[0]?.scopeKey;
    const one = found.find((each) => each.scopeKey === key) ?? found[0];
    const many = Object.values(progress?.counts ?? {}).reduce((sum, count) => sum + count, 0) > 1;
    this.show(...present(
      element("div", { class: "heading" }, element("h2", {}, node.label ?? node.id),
        progress && tag(progress.status)),
      pairs({ Kind: plain(node.kind), ID: mono(node.id), Disabled: node.disabled ? "yes" : null }),
      this.panel.dataset.fromNode && element("p", {}, element("a", { class: "button small",
        href: `${this.panel.dataset.fromNode}?nodeId=${encodeURIComponent(node.id)}` }, "Run from here")),
      !progress && element("p", { class: "quiet" }, "Not reached yet"),
      (many || this.status) && this.iterations(one),
      ...(one ? nodeRun(one, this.waitOf(one)) : []),
    ));
  }

  waitOf({ nodeId, scopeKey }) {
    const { waiting = [] } = this.run.metadata;
    return waiting.find((wait) => wait.nodeId === nodeId && wait.scopeKey === scopeKey);
  }

  iterations(chosen) {
    const states = STATES.filter((state) => this.progress.counts[state]);
    const select = element("select", { "aria-label": "Status", onchange: (event) => {
      this.status = event.target.value;
      this.chosen = null;
      this.load(null);
    } }, element("option", { value: "" }, "All statuses"), ...states.map((state) =>
      element("option", { value: state, selected: state === this.status },
        `${plain(state)} (${this.progress.counts[state]})`)));
    const whole = [this.run.startedAt, this.run.completedAt];
    const rows = this.found.map((one) => element("tr", { "aria-selected": String(one === chosen) },
      element("td", {}, element("button", { type: "button", onclick: () => {
        this.chosen = one.scopeKey;
        this.draw();
      } }, one.scopeKey || "—")),
      element("td", {}, tag(one.status)),
      element("td", {}, took(one)),
      element("td", {}, bar(one, whole))));
    return section("Iterations",
      element("div", { class: "filters" }, select),
      table(["Scope", "Status", "Duration", "Timeline"], rows),
      this.cursor && element("p", {}, element("button", { type: "button",
        onclick: () => this.load(this.cursor) }, "Show more")));
  }
}

/** Everything about one node in one scope. */
function nodeRun(one, wait) {
  return [
    section("Timeline",
      pairs({
        Started: one.startedAt && moment(one.startedAt),
        Ended: one.completedAt && moment(one.completedAt),
        Duration: took(one),
        "Waiting until": wait?.until && moment(wait.until),
        Approvers: one.metadata.wait?.required && asked(one.metadata.wait),
        "Editors can approve": one.metadata.wait?.required
          && (one.metadata.wait.allowEditors ? "yes" : "no"),
        Attempt: String(one.attempt),
        Reused: one.metadata.reused ? "from the retried run" : null,
      })),
    one.error && section("Error", element("p", { class: "problem" }, one.error),
      one.metadata.errorCode && element("p", { class: "quiet mono" }, one.metadata.errorCode)),
    one.attempts.length > 0 && section("Earlier attempts", table(["Attempt", "Duration", "Error"],
      one.attempts.map((attempt) => element("tr", {},
        element("td", {}, String(attempt.attempt)), element("td", {}, took(attempt)),
        element("td", { class: "problem" }, attempt.error))))),
    section("Input", json(one.input)),
    section("Output", json(one.output)),
  ];
}

/** Whose decision an approval waits for. */
const asked = ({ assignees, role, required }) => [
  role && `members with the role ${role}`,
  assignees?.length > 0 && `${assignees.length} ${assignees.length === 1 ? "person" : "people"}`,
].filter(Boolean).join(" and ") + (required > 1 ? `; ${required} must approve` : "");

const table = (heads, rows) => element("table", { class: "rows" },
  element("thead", {}, element("tr", {}, ...heads.map((head) => element("th", {}, head)))),
  element("tbody", {}, ...rows));

const took = ({ startedAt, completedAt }) => {
  const ms = span(startedAt, completedAt);
  return ms === null ? "" : duration(ms);
};

/** When a node ran within its run; a part that only waits has a colour of its own. */
function bar(one, [from, to], part = null) {
  const inner = element("i");
  const whole = Math.max(1, span(from, to) ?? 1);
  const start = one.startedAt ? Date.parse(one.startedAt) - Date.parse(from) : 0;
  const left = Math.min(98, (100 * start) / whole);
  inner.style.left = `${left}%`;
  inner.style.width = `${Math.min(100 - left, (100 * (span(one.startedAt, one.completedAt) ?? 0)) / whole)}%`;
  return element("div", { class: "span", "data-status": one.status, "data-part": part }, inner);
}

const WAITING = ["delay", "approval", "wait_event", "call_automation"];
const MOST_BARS = 40;

/** The whole run from when it was created: the queue, and each node. */
function timeline(run, graph, known) {
  const began = graph.nodes
    .filter(({ id }) => known.get(id)?.startedAt)
    .map((node) => ({ node, ...known.get(node.id) }))
    .sort((a, b) => Date.parse(a.startedAt) - Date.parse(b.startedAt));
  if (began.length === 0 && run.completedAt) return null;
  const whole = [run.createdAt, run.completedAt];
  const queue = { startedAt: run.createdAt, completedAt: run.startedAt ?? run.completedAt, status: "queued" };
  const row = (name, one, part) => element("tr", {},
    element("td", {}, name), element("td", {}, bar(one, whole, part)), element("td", {}, took(one)));
  return section("Timeline", element("table", { class: "rows timeline" }, element("tbody", {},
    row("Queue", queue, "queue"),
    ...began.slice(0, MOST_BARS).map((one) => row(one.node.label ?? one.node.id, one,
      WAITING.includes(one.node.kind) ? "wait" : "work")))),
  element("p", { class: "parts-key" }, ...["queue", "wait", "work"].map((part) =>
    element("span", { "data-part": part }, { queue: "queued", wait: "waiting", work: "running" }[part]))),
  began.length > MOST_BARS && element("p", { class: "quiet" }, `and ${began.length - MOST_BARS} more nodes`));
}

/** The record whose change started a run. */
function recordOf(payload) {
  const id = payload?.record?.id;
  return typeof id === "string" && /^[0-9a-f-]{36}$/.test(id)
    ? element("a", { href: `/records/${id}` }, payload.record.title || id) : null;
}

const TOKENS = /("(?:[^"\\]|\\.)*")(\s*:)?|\b(?:true|false|null)\b|-?\d+(?:\.\d+)?(?:e[+-]?\d+)?/gi;

/** A value as coloured JSON; a long one is cut until all is asked for. */
function json(value) {
  if (value === null || value === undefined) return element("p", { class: "quiet" }, "(none)");
  const whole = JSON.stringify(value, null, 2);
  const shown = element("pre", { tabindex: 0 });
  const fill = (text) => {
    const parts = [];
    let last = 0;
    for (const match of text.matchAll(TOKENS)) {
      const kind = match[1] ? (match[2] ? "key" : "string") : "other";
      const token = match[1] ?? match[0];
      parts.push(text.slice(last, match.index), element("span", { class: kind }, token));
      last = match.index + token.length;
    }
    shown.replaceChildren(...parts, text.slice(last));
  };
  fill(whole.slice(0, SHOWN));
  if (whole.length <= SHOWN) return shown;
  const more = element("button", { type: "button", onclick: () => {
    fill(whole);
    more.remove();
  } }, `Show all ${whole.length.toLocaleString()} characters`);
  return element("div", {}, shown, more);
}

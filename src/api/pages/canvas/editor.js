// The editor of an automation: what is opened, walked through, tested and published; and how it begins.

import { Arrangement } from "./arrangement.js";
import { worded } from "./bars.js";
import { Draft } from "./draft.js";
import * as graph from "./graph.js";
import { listen, towards } from "./keys.js";
import { Testing } from "./testing.js";
import { meet } from "./together.js";
import { workbench } from "./workbench.js";

const { createApp, nextTick, shallowReactive, watch, watchEffect } = Vue;
const { TRIGGER } = graph;

const root = window.document.getElementById("editor");
const { api, page, run: shownRun, tab, user } = root.dataset;

async function catalogOf() {
  const answer = await fetch(`${page}/edit/catalog`, { headers: { Accept: "text/html" } });
  if (!answer.ok) throw new Error("The editor could not be loaded. Reload the page.");
  return answer.json();
}

/** Everything that the parts share: the document and the draft, what is on the canvas, and the run. */
class Editor extends Arrangement {
  constructor(given) {
    super(given);
    this.run = shallowReactive({ run: null, isOpen: false, nodes: new Map(), data: new Map(), payload: null, dataRunId: null, problem: "" });
    this.testing = new Testing(api, this.run);
    /** The canvas as it was drawn last: behind the JSON it stays so. */
    this.drawn = null;
  }

  /** Open the menu of a node, a note or the canvas at a place of the window. */
  menu({ x, y, id }) {
    if (id && !this.selection.value.nodes.has(id)) this.select([id]);
    if (id) this.at.focused = id;
    this.at.menu = { x, y, id };
  }

  /** Open the panel of a node, which stays in view beside it. */
  open(id, isNew = false) {
    if (graph.isNote(id)) return this.write(id);
    this.history.settle();
    Object.assign(this.at, { opened: id, place: null });
    this.selection.value = { nodes: new Set([id]), edges: new Set() };
    nextTick(() => {
      const shown = window.document.querySelector(".panel-of");
      this.canvas.value.show(id, shown?.offsetWidth ?? 0);
      if (isNew) begin(shown);
    });
    return null;
  }

  close() {
    const { opened } = this.at;
    this.history.settle();
    this.at.opened = null;
    if (opened === null) return;
    nextTick(async () => {
      this.canvas.value.focus(opened);
      await this.canvas.value.back(opened);
      if (this.at.opened === null) this.canvas.value.show(opened);
    });
  }

  /** Lead to a problem: its node is brought into view and opened. */
  lead(issue) {
    const { nodeId } = issue;
    this.at.dialog = null;
    if (this.json) nextTick(() => this.json.lead(issue));
    if (this.json) return;
    if (nodeId !== TRIGGER && !graph.nodeOf(this.document.value, nodeId)) return;
    this.open(nodeId);
  }

  /** Move the focus along the edges and between branches, as on the page of a run. */
  step(key) {
    const { focused } = this.at;
    const document = this.document.value;
    const entries = graph.entriesOf(document);
    const notes = graph.notesOf(document).map((note) => [graph.keyOfNote(note), { ...note, ...note.position }]);
    const boxes = new Map([...this.canvas.value.boxes(), ...notes]);
    if (!focused || !boxes.has(focused)) return this.canvas.value.focus(TRIGGER);
    if (graph.isNote(focused)) return this.canvas.value.focus(towards(boxes, focused, key) ?? focused);
    const next = {
      ArrowRight: () => (focused === TRIGGER ? entries[0] : graph.edgesOf(document).find((edge) => edge.from === focused)?.to),
      ArrowLeft: () => graph.edgesOf(document).find((edge) => edge.to === focused)?.from ?? (entries.includes(focused) ? TRIGGER : undefined),
      ArrowDown: () => this.beside(boxes, 1), ArrowUp: () => this.beside(boxes, -1),
    }[key]();
    if (next !== undefined && boxes.has(next)) this.canvas.value.focus(next);
    return null;
  }

  beside(boxes, sign) {
    const own = boxes.get(this.at.focused);
    return [...boxes].filter(([, box]) => sign * (box.y - own.y) > 1 && Math.abs(box.x - own.x) < own.width)
      .sort(([, a], [, b]) => sign * (a.y - b.y))[0]?.[0];
  }

  async test(wanted) {
    this.at.dialog = null;
    await this.tried(async () => {
      if (!(await this.flush())) throw new Error("The draft isn't saved yet. Fix its problems, then test it.");
      this.refuse();
      await this.testing.test(this.document.value, wanted);
    });
  }

  /** What publishing would refuse, a run of the draft does, too: the list of problems says where each is. */
  refuse() {
    const errors = this.shown.issues.filter((one) => one.severity !== "warning");
    if (errors.length > 0) throw new Error(`Fix ${errors.length === 1 ? "this problem" : `these ${errors.length} problems`} first. ${errors.slice(0, 3).map((one) => worded(this, one)).join(" · ")}`);
  }

  async from(nodeId, isAlone) {
    await this.tried(async () => {
      if (!(await this.flush())) throw new Error("The draft isn't saved yet. Fix its problems, then run it.");
      this.refuse();
      await this.testing.from(nodeId, this.shown.draftVersionId ?? this.shown.publishedVersionId, isAlone);
    });
  }

  async retry() {
    await this.tried(async () => {
      if (!(await this.flush())) throw new Error("The draft isn't saved yet. Fix its problems, then retry.");
      this.refuse();
      await this.testing.retry(this.shown.draftVersionId ? "draft" : "published");
    });
  }

  async tried(work) {
    try {
      await work();
    } catch (error) {
      this.run.problem = saidOf(error);
    }
  }

  async publish(note) {
    const { at } = this;
    Object.assign(at, { isBusy: true, problem: "" });
    try {
      if (!(await this.flush())) throw new Error("The draft isn't saved yet.");
      if (!this.shown.draftVersionId) throw new Error("No changes to publish");
      await this.draft.publish(note);
      at.dialog = null;
      this.say(`Version ${this.shown.version} published`);
    } catch (error) {
      at.problem = saidOf(error);
    } finally {
      at.isBusy = false;
    }
  }

  keep(payload) {
    const document = this.document.value;
    const taken = new Set((document.graph.testPayloads ?? []).map((one) => one.id));
    const id = graph.unique("example", taken);
    const name = `Example ${taken.size + 1}`;
    this.edit(graph.changeGraph(document, { testPayloads: [...(document.graph.testPayloads ?? []), { id, name, payload }] }));
    this.say(`${name} saved`);
  }
}

/** Put the cursor where a new node wants something: into its first field, its label if it has none. */
function begin(shown) {
  const fields = [...(shown?.querySelectorAll(".panel-middle .panel-rows :is(input:not([type=checkbox]), select, textarea)") ?? [])];
  (fields.find((one) => one.checkVisibility()) ?? shown?.querySelector(".panel-middle input"))?.focus();
}

/** What is said of an error: its message, and of its details those that the message lacks. */
function saidOf({ message, details = [] }) {
  return [message, ...details.map((one) => one.message).filter((one) => !message.includes(one)).slice(0, 3)].join(" ");
}

/** The version in the head of the page, which saving and publishing change. */
function showVersion({ draftVersionId, publishedVersionId, version }) {
  const [title, note] = window.document.querySelectorAll(".head .lead h1, .head .lead > .quiet");
  title.textContent = draftVersionId ? "Draft" : "New draft";
  if (draftVersionId) note.textContent = `Version ${version}, unpublished`;
  else if (publishedVersionId) note.textContent = `Based on version ${version}, which stays published until you publish another.`;
  window.document.getElementById("editor-discard").hidden = !draftVersionId;
}

function showTab(isJson) {
  const [canvas, json] = window.document.querySelectorAll("#editor-tabs a");
  (isJson ? canvas : json).removeAttribute("aria-current");
  (isJson ? json : canvas).setAttribute("aria-current", "page");
}

async function start() {
  const shown = shallowReactive({ state: "saved", message: "", issues: [], draftVersionId: null, publishedVersionId: null, version: null, automation: null, isSignedOut: false });
  const draft = new Draft(api, shown, user);
  const [catalog, document] = await Promise.all([catalogOf(), draft.load()]);
  const editor = new Editor({ catalog, document, draft, shown, tab });
  draft.moved = (theirs) => editor.moved(theirs);
  createApp({ render: () => workbench(editor) }).mount(root);
  listen(editor);
  watchEffect(() => showVersion(shown));
  watchEffect(() => showTab(editor.at.isJson));
  root.dataset.ready = "true";
  const restored = draft.restored();
  if (restored) {
    editor.edit(restored);
    editor.say("Changes that were not saved are restored from this browser.");
  }
  const ask = meet(page, (news) => {
    const { changedBy, changedAt } = news;
    editor.at.changed = changedBy ? { ...changedBy, at: changedAt } : null;
    if (JSON.stringify(news.editors) !== JSON.stringify(editor.at.others)) editor.at.others = news.editors;
    draft.hear(news);
  });
  watch(() => shown.state === "conflict", (isConflict) => {
    if (!isConflict) return;
    // Until it is known, nobody is named.
    editor.at.changed = null;
    ask();
  }, { immediate: true });
  const data = shownRun ? editor.testing.open(shownRun) : editor.testing.latest();
  await data.catch((error) => { editor.run.problem = shownRun ? error.message : ""; });
  // A run that is opened to be fixed shows where it failed.
  const failed = [...editor.run.nodes.values()].find(({ status }) => status === "failed");
  if (failed) editor.lead(failed);
}

start().catch((error) => {
  root.replaceChildren(Object.assign(window.document.createElement("p"), { className: "banner", role: "alert", textContent: error.message }));
});

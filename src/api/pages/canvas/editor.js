// The editor of an automation: it loads the draft and the catalog, and wires everything together.
import { banners, button, head, issuesOf, nameOf, someone, tools, whenOf, worded } from "./bars.js";
import { Canvas } from "./canvas.js";
import { ConnectDialog, HelpDialog, PublishDialog, RunDialog } from "./dialogs.js";
import { Draft } from "./draft.js";
import * as graph from "./graph.js";
import { forget, JsonView } from "./json-view.js";
import { listen, towards } from "./keys.js";
import { ContextMenu } from "./menu.js";
import { menuOf } from "./menus.js";
import { names } from "./names.js";
import { NodePanel } from "./node-panel.js";
import { NOTE_KIND } from "./notes.js";
import { Palette } from "./palette.js";
import { freeFor, roomFor, settled } from "./places.js";
import { meet } from "./together.js";
import { Testing } from "./testing.js";
import { TestDialog } from "./test-dialog.js";
import { TriggerPanel } from "./trigger-panel.js";

const { createApp, h, nextTick, ref, shallowReactive, shallowRef, watch, watchEffect } = Vue;
const { TRIGGER } = graph;

const root = window.document.getElementById("editor");
const { api, page, run: shownRun, tab, user } = root.dataset;
const none = () => ({ nodes: new Set(), edges: new Set() });

async function catalogOf() {
  const answer = await fetch(`${page}/edit/catalog`, { headers: { Accept: "text/html" } });
  if (!answer.ok) throw new Error("The editor could not be loaded. Reload the page.");
  return answer.json();
}

/** Everything that the parts share: the document with its history, the draft, the run, what is chosen. */
class Editor {
  constructor(catalog, document, draft, shown) {
    this.catalog = catalog;
    this.kinds = new Map(catalog.kinds.map((kind) => [kind.kind, kind]));
    this.triggers = new Map(catalog.triggers.map((kind) => [kind.kind, kind]));
    this.history = new graph.History(document);
    this.document = shallowRef(document);
    this.steps = shallowReactive({ canUndo: false, canRedo: false });
    this.draft = draft;
    this.shown = shown;
    this.run = shallowReactive({ run: null, isOpen: false, nodes: new Map(), data: new Map(), payload: null, dataRunId: null, problem: "" });
    this.testing = new Testing(api, this.run);
    this.selection = shallowRef(none());
    this.at = shallowReactive({ opened: null, focused: null, place: null, dialog: null, isPaletteOpen: window.innerWidth > 900 && graph.nodesOf(document).length === 0, said: "", others: [], changed: null, edited: null, menu: null, isJson: tab === "json", fault: null, canRedoText: false });
    this.canvas = ref(null);
    this.palette = ref(null);
    /** The canvas as it was drawn last: behind the JSON it stays so. */
    this.drawn = null;
    this.begunAt = null;
    this.json = null;
  }

  /** Take an edit: it can be undone, and is saved soon. */
  edit(document, key = null) {
    if (this.history.push(document, key)) this.sync();
  }

  sync() {
    const { history } = this;
    this.document.value = history.document;
    Object.assign(this.steps, { canUndo: history.past.length > 0, canRedo: history.future.length > 0 });
    this.draft.change(history.document);
    const { opened } = this.at;
    if (opened !== null && opened !== TRIGGER && !graph.nodeOf(history.document, opened)) this.close();
  }

  undo() {
    if (!this.json?.step("undo") && this.history.undo()) this.sync();
  }

  redo() {
    if (!this.json?.step("redo") && this.history.redo()) this.sync();
  }

  /** Save what is not saved; false while the JSON is no document. */
  async flush() {
    return this.at.fault === null && this.draft.flush();
  }

  /** Show the draft as JSON, from what is chosen on, or on the canvas. */
  turn(isJson) {
    if (isJson === this.at.isJson) return;
    this.history.settle();
    this.begunAt = this.at.opened ?? this.chosen[0] ?? null;
    this.deselect();
    Object.assign(this.at, { isJson, opened: null, edited: null, menu: null, place: null, isPaletteOpen: false });
    const address = new URL(window.location);
    if (isJson) address.searchParams.set("tab", "json");
    else address.searchParams.delete("tab");
    window.history.replaceState(null, "", address);
  }

  /** Forget a text that is no document. */
  discard() {
    forget();
    this.at.fault = null;
  }

  /** The document with every node where it is seen: what is added beside them stays beside them. */
  get settled() {
    return settled(this.document.value, this.canvas.value.boxes());
  }

  /** What is selected of nodes and notes, else what has the focus. */
  get picked() {
    const ids = [...this.selection.value.nodes];
    const { focused } = this.at;
    return (ids.length > 0 || !focused ? ids : [focused]).filter((id) => id !== TRIGGER);
  }

  get chosen() {
    return this.picked.filter((id) => !graph.isNote(id));
  }

  get chosenNotes() {
    return this.picked.filter(graph.isNote);
  }

  select(ids) {
    this.selection.value = { nodes: new Set(ids), edges: new Set() };
  }

  add(kind, place) {
    const { canvas } = this;
    if (kind === NOTE_KIND.kind) {
      this.note(place);
      return;
    }
    if (graph.nodesOf(this.document.value).length >= graph.MOST_NODES) {
      this.say(`An automation can have ${graph.MOST_NODES} nodes.`);
      return;
    }
    const boxes = canvas.value.boxes();
    const { document, position } = roomFor(this.settled, boxes, place);
    const { title, outcomes } = this.kinds.get(kind);
    const main = outcomes.map((one) => one.name).find((name) => !["success", "failure", "finally", "case", "item"].includes(name));
    const made = graph.add(document, { kind, title, position, after: place.after, into: place.into, outcome: main ?? "always" });
    this.edit(made.document);
    this.select([made.id]);
    this.at.place = null;
    if (window.innerWidth <= 900) this.at.isPaletteOpen = false;
    nextTick(() => this.open(made.id, true));
  }

  /** Add a note and write it: at a point, above the node that is named, or where the canvas shows most. */
  note({ at, after } = {}) {
    const { canvas } = this;
    const { width, height } = graph.NOTE_SIZE;
    const box = after && canvas.value.boxOf(after.from);
    const middle = at ?? canvas.value.middle();
    const position = freeFor(box ? { x: box.x, y: box.y - height - 24 } : { x: middle.x - width / 2, y: middle.y - height / 2 },
      graph.NOTE_SIZE, [...canvas.value.boxes().values(), ...graph.notesOf(this.document.value).map((note) => ({ ...note, ...note.position }))], box ? -1 : 1);
    const made = graph.addNote(this.document.value, position);
    if (made === null) {
      this.say(`An automation can have ${graph.MOST_NOTES} notes.`);
      return;
    }
    this.edit(made.document);
    this.at.place = null;
    if (window.innerWidth <= 900) this.at.isPaletteOpen = false;
    this.write(made.id);
  }

  /** Type the text of a note where it is. */
  write(id) {
    this.history.settle();
    Object.assign(this.at, { opened: null, edited: id, focused: id });
    this.select([id]);
    nextTick(() => this.canvas.value.reveal(id));
  }

  /** A note is typed no more, or another one is; the focus may go back to it. */
  wrote(id, focused) {
    this.history.settle();
    this.at.edited = id;
    if (id !== null) this.select([id]);
    if (focused) nextTick(() => this.canvas.value.focus(focused));
  }

  resize(x, y) {
    const [id] = this.chosenNotes;
    const note = id && graph.noteOf(this.document.value, id);
    if (note) this.edit(graph.changeNote(this.document.value, id, { width: note.width + x, height: note.height + y }), `size ${id}`);
  }

  /** Where a node goes that is chosen in the palette: after the last one that was added or chosen. */
  get nextPlace() {
    if (this.at.place) return this.at.place;
    const [id] = this.chosen;
    const node = id && graph.nodeOf(this.document.value, id);
    const [way] = node ? this.waysOn(id) : [];
    if (way) return way.place;
    if (graph.nodesOf(this.document.value).length === 0 || this.at.focused === TRIGGER) return { after: { from: TRIGGER } };
    return { at: this.canvas.value.middle() };
  }

  /** The ways out of a node, or of the trigger, that lead nowhere yet, each with the place behind it. */
  waysOn(id) {
    const document = this.document.value;
    const own = (way) => ({ ...way, place: { after: { from: id, outcome: way.outcome, caseKey: way.caseKey } } });
    if (id === TRIGGER) return graph.nodesOf(document).length === 0 ? [own({ key: "always", label: "Next" })] : [];
    const used = new Set(graph.edgesOf(document).filter((edge) => edge.from === id).map(graph.wayOf));
    const node = graph.nodeOf(document, id);
    return graph.waysOf(document, node, this.kinds.get(node.kind))
      .filter((one) => !used.has(one.key) && !["failure", "finally"].includes(one.outcome)).map(own);
  }

  drop(kind, x, y) {
    const { canvas } = this;
    if (!canvas.value.isOver(x, y)) return;
    const over = window.document.elementsFromPoint(x, y).map((one) => one.closest?.(".vue-flow__edge")?.dataset.id).find(Boolean);
    const at = canvas.value.pointAt(x, y);
    if (!over) this.add(kind, { at });
    else if (over.startsWith(`${TRIGGER}/`)) this.add(kind, { into: { entry: over.slice(TRIGGER.length + 1) } });
    else this.add(kind, { into: { edge: over } });
  }

  ask(place) {
    Object.assign(this.at, { place, isPaletteOpen: true, opened: null });
    nextTick(() => this.palette.value.start());
  }

  connect(edge) {
    const refused = graph.refusal(this.document.value, edge);
    if (refused) this.say(refused);
    else this.edit(graph.connect(this.document.value, edge));
  }

  /** Remove edges by their ids on the canvas, where those of the trigger begin with its id. */
  disconnect(ids) {
    let document = graph.disconnect(this.document.value, ids);
    for (const id of ids) {
      if (id.startsWith(`${TRIGGER}/`)) document = graph.leave(document, id.slice(TRIGGER.length + 1));
    }
    return document;
  }

  deselect() {
    this.selection.value = none();
  }

  remove() {
    const edges = [...this.selection.value.edges];
    const isEdges = edges.length > 0 && this.selection.value.nodes.size === 0;
    const [nodes, notes] = isEdges ? [[], []] : [this.chosen, this.chosenNotes];
    if (nodes.length + notes.length + edges.length === 0) return;
    const next = graph.remove(this.disconnect(edges), { nodes, notes });
    this.edit(JSON.stringify(next) === JSON.stringify(this.document.value) ? this.document.value : next);
    this.deselect();
    if ([...nodes, ...notes].includes(this.at.focused)) this.at.focused = null;
  }

  paste(text) {
    const made = graph.paste(this.settled, text, this.canvas.value.middle());
    if (made === null) return this.say(graph.readCopied(text) ? `An automation can have ${graph.MOST_NODES} nodes and ${graph.MOST_NOTES} notes.` : "The clipboard has no nodes.");
    this.edit(made.document);
    this.select(made.ids);
    return null;
  }

  selectAll() {
    this.select([...graph.nodesOf(this.document.value).map((node) => node.id), ...graph.notesOf(this.document.value).map(graph.keyOfNote)]);
  }

  /** Copy what is selected, from the menu; keys copy by the event of the browser. */
  async copy() {
    const text = graph.copy(this.document.value, this.picked);
    await navigator.clipboard.writeText(text).catch(() => this.say("The browser doesn't allow copying here. Press Ctrl+C."));
  }

  async pasteCopied() {
    const text = await navigator.clipboard.readText().catch(() => null);
    if (text === null) this.say("The browser doesn't allow pasting here. Press Ctrl+V.");
    else this.paste(text);
  }

  duplicate() {
    if (this.picked.length === 0) return;
    const made = graph.duplicate(this.chosen.length > 0 ? this.settled : this.document.value, this.picked);
    if (!made) return;
    this.edit(made.document);
    this.select(made.ids);
  }

  disable() {
    if (this.chosen.length > 0) this.edit(graph.toggle(this.document.value, this.chosen));
  }

  tidy() {
    if (graph.nodesOf(this.document.value).length === 0) return;
    this.edit(graph.move(this.document.value, this.canvas.value.arranged()));
    nextTick(() => this.canvas.value.fit());
  }

  nudge(x, y) {
    const boxes = this.canvas.value.boxes();
    const ids = this.selection.value.nodes.size > 0 ? [...this.selection.value.nodes] : [this.at.focused].filter(Boolean);
    const at = (id) => boxes.get(id) ?? graph.noteOf(this.document.value, id)?.position;
    this.move(new Map(ids.filter(at).map((id) => [id, { x: at(id).x + x, y: at(id).y + y }])), `nudge ${ids}`);
  }

  /** Put nodes and notes at places. Notes alone leave nodes where they are drawn. */
  move(places, key = null) {
    if (places.size === 0) return;
    const isNotes = [...places.keys()].every(graph.isNote);
    this.edit(graph.move(isNotes ? this.document.value : this.settled, places), key);
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

  say(text) {
    this.at.said = text;
    clearTimeout(this.saying);
    this.saying = setTimeout(() => { this.at.said = ""; }, 6000);
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

  /** What publishing would refuse, a test does, too: the list of problems says where each is. */
  refuse() {
    const errors = this.shown.issues.filter((one) => one.severity !== "warning");
    if (errors.length > 0) throw new Error(`Fix ${errors.length === 1 ? "this problem" : `these ${errors.length} problems`} first. ${errors.slice(0, 3).map((one) => worded(this, one)).join(" · ")}`);
  }

  async from(nodeId, isAlone) {
    await this.tried(async () => {
      if (!(await this.flush())) throw new Error("The draft isn't saved yet. Fix its problems, then run it.");
      await this.testing.from(nodeId, this.shown.draftVersionId ?? this.shown.publishedVersionId, isAlone);
    });
  }

  async retry() {
    await this.tried(async () => {
      if (!(await this.flush())) throw new Error("The draft isn't saved yet. Fix its problems, then retry.");
      await this.testing.retry(this.shown.draftVersionId ? "draft" : "published");
    });
  }

  async tried(work) {
    try {
      await work();
    } catch (error) {
      const details = (error.details ?? []).map((one) => one.message);
      this.run.problem = [error.message, ...details.slice(0, 3)].join(" ");
    }
  }

  async publish(note) {
    const { at } = this;
    Object.assign(at, { isBusy: true, problem: "" });
    try {
      if (!(await this.flush())) throw new Error("The draft isn't saved yet.");
      if (!this.shown.draftVersionId) throw new Error("No changes to publish.");
      await this.draft.publish(note);
      at.dialog = null;
      this.say(`Version ${this.shown.version} published`);
    } catch (error) {
      at.problem = [error.message, ...(error.details ?? []).map((one) => one.message).slice(0, 3)].join(" ");
    } finally {
      at.isBusy = false;
    }
  }

  /** After a conflict: whose draft it is. The other one is a step before it, for undo. */
  async settle(choice) {
    const { mine, theirs, document, clashes } = await this.draft.settled(choice);
    this.history.push(choice === "theirs" ? mine : theirs);
    this.history.push(document);
    this.sync();
    const lost = { mine: "Your draft is kept. Undo shows theirs.", theirs: "Their draft is shown. Undo brings yours back.",
      both: clashes.length === 0 ? "Both drafts are merged." : `Both drafts are merged. Both changed ${clashes.slice(0, 3).join(", ")}: check it.` };
    this.say(lost[choice]);
  }

  /** Someone else saved while nothing here was unsaved: their draft is shown. */
  moved(document) {
    if (this.history.push(document)) this.sync();
    this.say(`${someone(this)} changed this draft${whenOf(this)}. You see it as it is now.`);
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

/** Earlier nodes whose outputs a node can read, the nearest last, and the trigger. */
function outputsOf(editor, id) {
  const document = editor.document.value;
  const payload = editor.run.payload ?? document.graph.testPayloads?.[0]?.payload ?? null;
  const earlier = graph.nodesOf(document).filter((node) => node.id !== id && graph.leads(document, node.id, id));
  const stated = (kind) => kind?.output?.keys.map(({ name }) => name) ?? [];
  return [
    { id: TRIGGER, label: "Trigger", output: payload, keys: editor.triggers.get(document.trigger.kind)?.keys ?? [] },
    ...earlier.map((node) => ({ id: node.id, kind: node.kind, label: node.label ?? node.id, output: editor.run.data.get(node.id)?.output ?? null, keys: stated(editor.kinds.get(node.kind)) })),
  ];
}

/** The key that differs, with dots between keys: typing into one field is one step to undo. */
function changedKey(before, after) {
  const isObject = (value) => value !== null && typeof value === "object" && !Array.isArray(value);
  const keys = new Set([...Object.keys(before), ...Object.keys(after)]);
  const key = [...keys].find((one) => JSON.stringify(before[one]) !== JSON.stringify(after[one]));
  if (key === undefined || !isObject(before[key]) || !isObject(after[key])) return key ?? "";
  return `${key}.${changedKey(before[key], after[key])}`;
}

function panel(editor, issues) {
  const { opened } = editor.at;
  if (opened === null) return null;
  const shared = { catalog: editor.catalog, names, issues: issues.get(opened) ?? [], readonly: false, onClose: () => editor.close() };
  const inner = opened === TRIGGER
    ? h(TriggerPanel, { ...shared, key: opened, trigger: editor.document.value.trigger, automation: editor.shown.automation, outputs: outputsOf(editor, opened),
      onChange: (trigger) => editor.edit(graph.changeTrigger(editor.document.value, trigger), `trigger ${changedKey(editor.document.value.trigger, trigger)}`) })
    : h(NodePanel, { ...shared, key: opened, node: graph.nodeOf(editor.document.value, opened), kind: editor.kinds.get(graph.nodeOf(editor.document.value, opened).kind),
      data: editor.run.data.get(opened) ?? null, outputs: outputsOf(editor, opened),
      onChange: (node) => {
        const next = graph.changeNode(editor.document.value, opened, node);
        const index = graph.nodesOf(editor.document.value).findIndex((one) => one.id === opened);
        editor.edit(next, `node ${opened} ${changedKey(graph.nodeOf(editor.document.value, opened), node)}`);
        const { id } = graph.nodesOf(next)[index];
        if (id !== opened) editor.open(id);
      } });
  const ways = editor.waysOn(opened);
  const onKeydown = (event) => {
    if (event.key !== "Enter" || !(event.ctrlKey || event.metaKey) || ways.length === 0) return;
    event.preventDefault();
    editor.ask(ways[0].place);
  };
  return h("section", { class: "panel-of", "aria-label": opened === TRIGGER ? "Trigger" : "Node", onKeydown }, [inner, ways.length === 0 ? null : h("footer", { class: "panel-next" }, [
    ways.length > 1 ? h("span", { class: "quiet" }, "Add next node") : null,
    ...ways.map((way, index) => button(ways.length > 1 ? way.label : "Add next node", () => editor.ask(way.place), {
      class: "small", key: way.key, "aria-label": ways.length > 1 ? `Add next node: ${way.label}` : undefined, title: index === 0 ? "Add next node (Ctrl+Enter)" : undefined })),
  ])]);
}

function dialog(editor) {
  const { at } = editor;
  const close = () => { at.dialog = null; };
  const errors = editor.shown.issues.filter((one) => one.severity !== "warning");
  switch (at.dialog?.name) {
    case "test": return h(TestDialog, { document: editor.document.value, names, keys: editor.triggers.get(editor.document.value.trigger.kind)?.keys ?? [], data: editor.run.data, payload: editor.run.payload, earlier: editor.testing.earlier,
      stopAt: at.dialog.stopAt, onTest: (wanted) => editor.test(wanted), onExample: (payload) => editor.keep(payload), onClose: close });
    case "publish": return h(PublishDialog, { errors: errors.map((one) => ({ ...one, text: worded(editor, one) })), changes: `${page}/edit/changes`, problem: at.problem, isBusy: at.isBusy,
      onPublish: (note) => editor.publish(note), onLead: (one) => editor.lead(one), onClose: close });
    case "connect": return h(ConnectDialog, { document: editor.document.value, kinds: editor.kinds, from: at.dialog.from,
      onConnect: (edge) => editor.connect(edge), onRemove: (id) => editor.edit(editor.disconnect([id])), onClose: close });
    case "run": return h(RunDialog, { name: nameOf(editor, at.dialog.from), isAlone: at.dialog.isAlone, hasData: editor.run.dataRunId !== null,
      onRun: () => { const { from, isAlone } = at.dialog; close(); editor.from(from, isAlone); }, onClose: close });
    case "help": return h(HelpDialog, { onClose: close });
    default: return null;
  }
}

function drawn(editor, issues) {
  const { at } = editor;
  if (at.isJson && editor.drawn) return editor.drawn;
  editor.drawn = h(Canvas, { ref: editor.canvas, document: editor.document.value, kinds: editor.kinds, triggers: editor.triggers, issues,
    progress: editor.run.run ? editor.run.nodes : new Map(), selection: editor.selection.value, edited: at.edited, isReadonly: false,
    onMove: (places) => editor.move(places), onNote: (id, changes, key) => editor.edit(graph.changeNote(editor.document.value, id, changes), key),
    onEdit: (id, focused) => editor.wrote(id, focused), onMenu: (place) => editor.menu(place), onConnect: (edge) => editor.connect(edge),
    onOpen: (id) => editor.open(id), onSelect: (found) => { editor.selection.value = found; },
    onMore: (place) => editor.ask(place), onFocus: (id) => { at.focused = id; },
    onClear: () => { at.place = null; if (at.opened !== null) editor.close(); } });
  return editor.drawn;
}

function view(editor) {
  const { at } = editor;
  const issues = issuesOf(editor);
  const isEmpty = graph.nodesOf(editor.document.value).length === 0;
  const placeName = at.place?.after ? `After ${at.place.after.from === TRIGGER ? "the trigger" : graph.nodeOf(editor.document.value, at.place.after.from)?.label ?? at.place.after.from}`
    : at.place?.into ? "Into the connection" : "";
  return [
    head(editor),
    banners(editor),
    h("div", { class: "workbench" }, [
      at.isJson ? h(JsonView, { editor }) : null,
      h(Palette, { ref: editor.palette, inert: at.isJson, kinds: [...editor.catalog.kinds, NOTE_KIND], place: placeName, isOpen: at.isPaletteOpen,
        onPick: (kind) => editor.add(kind, editor.nextPlace), onDrop: (kind, x, y) => editor.drop(kind, x, y),
        onClose: () => { Object.assign(at, { isPaletteOpen: false, place: null }); editor.canvas.value.focus(at.focused ?? TRIGGER); } }),
      h("div", { class: "stage", inert: at.isJson }, [
        drawn(editor, issues),
        isEmpty ? h("p", { class: "begin" }, "Add the first node from the palette, or press N.") : null,
        tools(editor),
        h("div", { class: "zoom", role: "group", "aria-label": "View" }, [
          button("Add node", () => editor.ask(null), { class: "small primary", "aria-keyshortcuts": "n" }),
          button("Add note", () => editor.note(), { class: "small", "aria-keyshortcuts": "s" }),
          button("−", () => editor.canvas.value.zoomOut(), { class: "small", "aria-label": "Zoom out" }),
          button("Fit", () => editor.canvas.value.fit(), { class: "small" }),
          button("+", () => editor.canvas.value.zoomIn(), { class: "small", "aria-label": "Zoom in" }),
          button("?", () => { at.dialog = { name: "help" }; }, { class: "small", "aria-label": "Keyboard shortcuts" }),
        ]),
        panel(editor, issues),
      ]),
    ]),
    dialog(editor),
    at.menu ? h(ContextMenu, { key: `${at.menu.x} ${at.menu.y} ${at.menu.id}`, x: at.menu.x, y: at.menu.y, ...menuOf(editor, at.menu),
      onClose: (isBack) => { const { id } = at.menu; at.menu = null; if (isBack) editor.canvas.value.focus(id ?? at.focused ?? TRIGGER); } }) : null,
  ];
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
  const editor = new Editor(catalog, document, draft, shown);
  draft.moved = (theirs) => editor.moved(theirs);
  createApp({ render: () => view(editor) }).mount(root);
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
}

start().catch((error) => {
  root.replaceChildren(Object.assign(window.document.createElement("p"), { className: "banner", role: "alert", textContent: error.message }));
});

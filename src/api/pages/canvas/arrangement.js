// What one does with the nodes, notes and edges of the canvas: add, select, connect, copy, move and remove them.

import { Edits } from "./edits.js";
import * as graph from "./graph.js";
import { NOTE_KIND } from "./notes.js";
import { freeFor, roomFor, settled } from "./places.js";

const { nextTick, ref, shallowRef } = Vue;
const { TRIGGER } = graph;
const none = () => ({ nodes: new Set(), edges: new Set() });

export class Arrangement extends Edits {
  constructor(given) {
    super(given);
    const { catalog } = given;
    this.catalog = catalog;
    this.kinds = new Map(catalog.kinds.map((kind) => [kind.kind, kind]));
    this.triggers = new Map(catalog.triggers.map((kind) => [kind.kind, kind]));
    this.selection = shallowRef(none());
    this.canvas = ref(null);
    this.palette = ref(null);
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

  deselect() {
    this.selection.value = none();
  }

  selectAll() {
    this.select([...graph.nodesOf(this.document.value).map((node) => node.id), ...graph.notesOf(this.document.value).map(graph.keyOfNote)]);
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
    const left = key === null && this.canvas.value.leftBy(places);
    const moved = graph.move(isNotes ? this.document.value : this.settled, left ? this.followed(places, left) : places);
    const freed = left ? this.freed(moved, [...places.keys()], left) : moved;
    this.edit(key === null && places.size === 1 ? this.looped(freed, ...places, left?.body) : freed, key);
  }

  /** These places, and those of the bodies of loops that leave another loop: they keep their distance. */
  followed(places, { ids }) {
    const { boxOf } = this.canvas.value;
    const [[first, { x, y }]] = [...places].filter(([id]) => ids.includes(id));
    const [right, down] = [x - boxOf(first).x, y - boxOf(first).y];
    const others = ids.filter((id) => !places.has(id)).map((id) => [id, { x: boxOf(id).x + right, y: boxOf(id).y + down }]);
    return new Map([...places, ...others]);
  }

  /** Nodes that are dropped away from the frame of their loop are no part of it any more. */
  freed(document, dragged, { id, ids }) {
    const chosen = new Set(ids);
    const removed = graph.edgesOf(document).filter((edge) => chosen.has(edge.from) !== chosen.has(edge.to)).length;
    const name = (one) => graph.nodeOf(document, one)?.label ?? one;
    const who = dragged.length === 1 ? name(dragged[0]) : `${dragged.length} nodes`;
    const connections = removed === 1 ? "a connection was removed. Undo restores it." : `${removed} connections were removed. Undo restores them.`;
    this.say(`${who} left the loop ${name(id)}, and ${connections}`);
    return graph.detach(document, ids);
  }

  /** A node without edges that is dropped into the frame of a loop runs in it, after the nearest end of its body. */
  looped(document, [id, { x, y }], besides = new Set()) {
    const isAlone = graph.nodeOf(document, id) && !graph.edgesOf(document).some((edge) => edge.from === id || edge.to === id);
    const box = this.canvas.value.boxOf(id);
    const loop = isAlone && this.canvas.value.loopAt({ x: x + box.width / 2, y: y + box.height / 2 });
    if (!loop) return document;
    const far = (one) => {
      const other = this.canvas.value.boxOf(one);
      return Math.hypot(other.x + other.width - x, other.y - y);
    };
    const [way] = loop.body.filter((one) => one !== id && !besides.has(one)).sort((a, b) => far(a) - far(b)).flatMap((one) => this.waysOn(one));
    if (!way) return document;
    const { label = loop.id } = graph.nodeOf(document, loop.id);
    this.say(`The node is a part of the loop ${label} now.`);
    return graph.leave(graph.connect(document, { ...way.place.after, to: id }), id);
  }
}

// The document that the editor changes: a graph and its trigger. Every edit returns a new document.
//
// Nothing here knows of a browser. Keys that an edit does not concern are kept, also unknown ones.

/** The id of the trigger among the nodes of a canvas; no node of a graph may have it. */
export const TRIGGER = ":trigger";
/** A copied part of a graph in the clipboard. */
const COPIED = "workspace.nodes/1";
const LONGEST_ID = 64;
export const MOST_NODES = 200;
/** The names by which a canvas has notes begin with it; no node of a graph can have such an id. */
const NOTE = `${TRIGGER}/note/`;
export const MOST_NOTES = 100;
export const NOTE_SIZE = { width: 240, height: 120 };
export const NOTE_COLORS = ["yellow", "blue", "green", "red", "gray"];

export const nodesOf = ({ graph }) => graph.nodes ?? [];
export const edgesOf = ({ graph }) => graph.edges ?? [];
export const nodeOf = (document, id) => nodesOf(document).find((node) => node.id === id);
export const notesOf = ({ graph }) => graph.notes ?? [];
export const keyOfNote = ({ id }) => NOTE + id;
export const isNote = (key) => typeof key === "string" && key.startsWith(NOTE);
export const noteOf = (document, key) => notesOf(document).find((note) => keyOfNote(note) === key);
export const outcomeOf = (edge) => edge.outcome ?? "always";

const withGraph = (document, changes) => ({ ...document, graph: { ...document.graph, ...changes } });
const without = (object, key) => {
  const { [key]: removed, ...others } = object;
  return others;
};

const withNotes = (document, notes) =>
  (notes.length > 0 ? withGraph(document, { notes }) : { ...document, graph: without(document.graph, "notes") });
const whole = ({ x, y }) => ({ x: Math.round(x), y: Math.round(y) });

/** Add a note at a point, as far as there may be another. Answers the document and the name of the note. */
export function addNote(document, position, note = {}) {
  if (notesOf(document).length >= MOST_NOTES) return null;
  const id = unique("note", new Set(notesOf(document).map((one) => one.id)));
  const made = { text: "", ...NOTE_SIZE, color: NOTE_COLORS[0], ...note, id, position: whole(position) };
  return { document: withNotes(document, [...notesOf(document), made]), id: keyOfNote(made) };
}

/** Change parts of a note; its size stays within what the API takes. */
export function changeNote(document, key, changes) {
  const size = (value) => Math.min(2000, Math.max(60, Math.round(value)));
  const sizes = Object.fromEntries(["width", "height"].filter((name) => name in changes).map((name) => [name, size(changes[name])]));
  return withNotes(document, notesOf(document).map((one) => (keyOfNote(one) === key ? { ...one, ...changes, ...sizes } : one)));
}

/** `name`, or with the first number that makes it another than those taken. */
export function unique(name, taken, longest = LONGEST_ID) {
  const short = name.slice(0, longest - 5);
  for (let number = 1; ; number += 1) {
    const found = number === 1 ? short : `${short}_${number}`;
    if (!taken.has(found)) return found;
  }
}

/** A text as an id that expressions can read: `HTTP request` is `http_request`. */
export const slug = (text) =>
  text.normalize("NFKD").toLowerCase().replace(/[^a-z0-9]+/g, "_").replace(/^[_0-9]+|_+$/g, "") || "node";

const takenIds = (document) => new Set(nodesOf(document).map((node) => node.id));
const takenEdges = (document) => new Set(edgesOf(document).map((edge) => edge.id));

function newEdge(document, from, to, outcome, caseKey) {
  const taken = takenEdges(document);
  let number = taken.size + 1;
  while (taken.has(`edge-${number}`)) number += 1;
  const edge = { id: `edge-${number}`, from, to, outcome: outcome ?? "always" };
  return caseKey === undefined || caseKey === null ? edge : { ...edge, caseKey };
}

const isSame = (a, b) => a.from === b.from && a.to === b.to
  && outcomeOf(a) === outcomeOf(b) && (a.caseKey ?? null) === (b.caseKey ?? null);

/** The nodes at which a run begins: the named ones, or else those that nothing leads to. */
export function entriesOf(document) {
  const named = document.graph.entryNodeIds ?? [];
  if (named.length > 0) return [...new Set(named)];
  const targets = new Set(edgesOf(document).map((edge) => edge.to));
  return nodesOf(document).map((node) => node.id).filter((id) => !targets.has(id));
}

const hasEntries = (document) => (document.graph.entryNodeIds ?? []).length > 0;
const entered = (document, ids) => withGraph(document, { entryNodeIds: [...new Set(ids)] });

/** True when there is a way from one node to another, or they are the same. */
export function leads(document, from, to) {
  const next = new Map();
  for (const edge of edgesOf(document)) next.set(edge.from, [...(next.get(edge.from) ?? []), edge.to]);
  const found = new Set([from]);
  for (const id of found) {
    if (id === to) return true;
    for (const one of next.get(id) ?? []) found.add(one);
  }
  return false;
}

/** Why two nodes cannot be joined, or null. */
export function refusal(document, { from, to, outcome, caseKey }) {
  if (!nodeOf(document, to)) return "Connect it to a node.";
  if (from === TRIGGER) {
    return entriesOf(document).includes(to) ? "The trigger starts this node already." : null;
  }
  if (leads(document, to, from)) return "Nodes can't form a cycle. Use a loop to repeat nodes.";
  const edge = { from, to, outcome, caseKey };
  return edgesOf(document).some((one) => isSame(one, edge)) ? "These nodes are already connected." : null;
}

/** Join a node, or the trigger, to another; what cannot be joined stays as it is. */
export function connect(document, edge) {
  if (refusal(document, edge) !== null) return document;
  if (edge.from === TRIGGER) return entered(document, [...entriesOf(document), edge.to]);
  const made = newEdge(document, edge.from, edge.to, edge.outcome, edge.caseKey);
  return withGraph(document, { edges: [...edgesOf(document), made] });
}

export function disconnect(document, edgeIds) {
  const ids = new Set(edgeIds);
  return withGraph(document, { edges: edgesOf(document).filter((edge) => !ids.has(edge.id)) });
}

/** The trigger starts this node no more, as far as it was named. */
export const leave = (document, id) =>
  withGraph(document, { entryNodeIds: (document.graph.entryNodeIds ?? []).filter((one) => one !== id) });

/** Add a node: alone, after a place (`after`), or into an edge (`into`, the id of an edge or the entry that the trigger starts).
 * Answers the new document and the id of the node. */
export function add(document, { kind, title, config = {}, position, after, into, outcome = "always" }) {
  const taken = takenIds(document);
  const id = unique(slug(title ?? kind), taken);
  const number = id.match(/_(\d+)$/)?.[1];
  const label = title && (number && !slug(title).endsWith(number) ? `${title} ${number}` : title);
  const node = { id, kind, ...(label ? { label } : {}), config, ...(position ? { position } : {}) };
  let next = withGraph(document, { nodes: [...nodesOf(document), node], edges: edgesOf(document) });
  const edge = edgesOf(document).find((one) => one.id === into?.edge);
  if (edge) next = inserted(next, edge, id, outcome);
  else if (into?.entry && nodeOf(document, into.entry)) next = insertedFirst(next, into.entry, id, outcome);
  else if (after && after.from !== TRIGGER) next = connect(next, { ...after, to: id });
  else if (after && hasEntries(document)) next = entered(next, [...next.graph.entryNodeIds, id]);
  return { document: next, id };
}

function inserted(document, edge, id, outcome) {
  const edges = edgesOf(document).map((one) => (one.id === edge.id ? { ...one, to: id } : one));
  const next = withGraph(document, { edges });
  return withGraph(next, { edges: [...edges, newEdge(next, id, edge.to, outcome)] });
}

function insertedFirst(document, entry, id, outcome) {
  const next = withGraph(document, {
    edges: [...edgesOf(document), newEdge(document, id, entry, outcome)],
  });
  if (!hasEntries(document)) return next;
  return entered(next, next.graph.entryNodeIds.map((one) => (one === entry ? id : one)));
}

/** Put nodes and notes where these positions say, by id; the trigger among them. */
export function move(document, positions) {
  const placed = (one, key) => (positions.has(key) ? { ...one, position: whole(positions.get(key)) } : one);
  const nodes = nodesOf(document).map((node) => placed(node, node.id));
  const trigger = positions.get(TRIGGER);
  const next = withGraph(document, { nodes, ...(trigger ? { triggerPosition: whole(trigger) } : {}) });
  return notesOf(document).length > 0 ? withNotes(next, notesOf(document).map((note) => placed(note, keyOfNote(note)))) : next;
}

/** Remove nodes, edges and notes. What led to a removed node leads to what followed it, where only one did. */
export function remove(document, { nodes = [], edges = [], notes = [] }) {
  let next = disconnect(document, edges);
  for (const id of nodes) next = withoutNode(next, id);
  const gone = new Set(notes);
  return gone.size > 0 ? withNotes(next, notesOf(next).filter((note) => !gone.has(keyOfNote(note)))) : next;
}

function withoutNode(document, id) {
  const edges = edgesOf(document);
  const after = new Set(edges.filter((edge) => edge.from === id && edge.to !== id).map((edge) => edge.to));
  const [only] = after.size === 1 ? after : [null];
  const kept = [];
  for (const edge of edges) {
    if (edge.from === id || (edge.to === id && only === null)) continue;
    const one = edge.to === id ? { ...edge, to: only } : edge;
    if (!kept.some((other) => isSame(other, one))) kept.push(one);
  }
  const next = withGraph(document, {
    nodes: nodesOf(document).filter((node) => node.id !== id), edges: kept,
  });
  if (!hasEntries(document)) return next;
  const named = document.graph.entryNodeIds.flatMap((one) => (one === id ? only ?? [] : one));
  return entered(next, named);
}

/** Free nodes of their edges to others. What led to one of them leads to what followed it, where only one did. */
export function detach(document, ids) {
  const chosen = new Set(ids);
  const within = edgesOf(document).filter((edge) => chosen.has(edge.from) && chosen.has(edge.to));
  const rest = remove(document, { nodes: ids });
  const next = withGraph(rest, { nodes: nodesOf(document), edges: [...edgesOf(rest), ...within] });
  if (!hasEntries(document)) return next;
  const targets = new Set(within.map((edge) => edge.to));
  return entered(next, [...rest.graph.entryNodeIds, ...ids.filter((id) => !targets.has(id))]);
}

/** Change a node as a whole. With another id, what reads it or leads to it follows. */
export function changeNode(document, id, node) {
  if (node.id === id) {
    return withGraph(document, { nodes: nodesOf(document).map((one) => (one.id === id ? node : one)) });
  }
  const taken = takenIds(document);
  taken.delete(id);
  const named = { ...node, id: unique(node.id || "node", taken) };
  const nodes = nodesOf(document).map((one) => (one.id === id ? named : one));
  return renamed(withGraph(document, { nodes }), new Map([[id, named.id]]));
}

export const changeTrigger = (document, trigger) => ({ ...document, trigger });

/** Keys of the graph as a whole, such as its variables; undefined removes one. */
export function changeGraph(document, changes) {
  let next = withGraph(document, changes);
  for (const [key, value] of Object.entries(changes)) {
    if (value === undefined) next = { ...next, graph: without(next.graph, key) };
  }
  return next;
}

/** Disable nodes, or enable them if all of them are disabled. */
export function toggle(document, ids) {
  const chosen = new Set(ids);
  const isOff = nodesOf(document).filter((node) => chosen.has(node.id)).every((node) => node.disabled);
  return withGraph(document, {
    nodes: nodesOf(document).map((node) => (chosen.has(node.id) ? { ...node, disabled: !isOff } : node)),
  });
}

/** Nodes, the edges between them, and notes as a text. */
export function copy(document, ids) {
  const chosen = new Set(ids);
  const notes = notesOf(document).filter((note) => chosen.has(keyOfNote(note)));
  const nodes = nodesOf(document).filter((node) => chosen.has(node.id));
  const edges = edgesOf(document).filter((edge) => chosen.has(edge.from) && chosen.has(edge.to));
  return JSON.stringify({ format: COPIED, nodes, edges, ...(notes.length > 0 ? { notes } : {}) }, null, 2);
}

/** A note of a copied text with the keys that a note has; null for what is none. */
function readNote(value) {
  const { text, position, width = NOTE_SIZE.width, height = NOTE_SIZE.height, color } = value ?? {};
  const isPlaced = Number.isFinite(position?.x) && Number.isFinite(position?.y);
  if (typeof text !== "string" || text.length > 4000 || !isPlaced || !Number.isFinite(width) || !Number.isFinite(height)) return null;
  return { text, position, width, height, color: NOTE_COLORS.includes(color) ? color : NOTE_COLORS[0] };
}

/** The nodes, edges and notes that a text holds, or null; also those of a whole graph. */
export function readCopied(text) {
  let value;
  try {
    value = JSON.parse(text);
  } catch {
    return null;
  }
  const part = value?.graph ?? value;
  if (!part || !Array.isArray(part.nodes)) return null;
  const notes = (Array.isArray(part.notes) ? part.notes : []).map(readNote).filter(Boolean);
  if (part.nodes.length === 0 && notes.length === 0) return null;
  const isNode = (node) => typeof node?.id === "string" && typeof node.kind === "string"
    && (node.label === undefined || typeof node.label === "string")
    && (node.config === undefined || (typeof node.config === "object" && node.config !== null));
  if (!part.nodes.every(isNode)) return null;
  const ids = new Set(part.nodes.map((node) => node.id));
  const edges = (Array.isArray(part.edges) ? part.edges : [])
    .filter((edge) => ids.has(edge?.from) && ids.has(edge?.to));
  return { nodes: part.nodes, edges, notes };
}

/** Add copied nodes and notes beside `at`, each with an id of its own. Answers the document and the new ids. */
export function paste(document, text, at) {
  const part = readCopied(text);
  if (part === null || nodesOf(document).length + part.nodes.length > MOST_NODES) return null;
  if (notesOf(document).length + part.notes.length > MOST_NOTES) return null;
  const taken = takenIds(document);
  const names = new Map();
  for (const { id } of part.nodes) {
    const name = unique(id.replace(/_\d+$/, "") || "node", taken);
    names.set(id, name);
    taken.add(name);
  }
  const places = [...part.nodes, ...part.notes].map((one) => one.position).filter(Boolean);
  const corner = {
    x: Math.min(...places.map((place) => place.x)), y: Math.min(...places.map((place) => place.y)),
  };
  const moved = (place) => (place && at
    ? { x: Math.round(at.x + place.x - corner.x), y: Math.round(at.y + place.y - corner.y) } : place ?? at);
  const copied = { graph: { nodes: part.nodes, edges: [] }, trigger: {} };
  const nodes = nodesOf(renamed(copied, names)).map((node) => {
    const position = moved(node.position);
    return { ...node, id: names.get(node.id), ...(position ? { position } : {}) };
  });
  let next = withGraph(document, { nodes: [...nodesOf(document), ...nodes], edges: edgesOf(document) });
  for (const edge of part.edges) {
    const { id } = newEdge(next, "", "");
    const made = { ...edge, id, from: names.get(edge.from), to: names.get(edge.to) };
    next = withGraph(next, { edges: [...edgesOf(next), made] });
  }
  if (hasEntries(document)) {
    const targets = new Set(edgesOf(next).map((edge) => edge.to));
    const first = [...names.values()].filter((id) => !targets.has(id));
    next = entered(next, [...document.graph.entryNodeIds, ...first]);
  }
  const ids = [...names.values()];
  for (const { position, ...note } of part.notes) {
    const made = addNote(next, moved(position), {});
    next = changeNote(made.document, made.id, note);
    ids.push(made.id);
  }
  return { document: next, ids };
}

export function duplicate(document, ids, by = { x: 40, y: 90 }) {
  const places = [...nodesOf(document).filter((node) => ids.includes(node.id) && node.position),
    ...notesOf(document).filter((note) => ids.includes(keyOfNote(note)))];
  const at = places.length === 0 ? undefined : {
    x: Math.min(...places.map((node) => node.position.x)) + by.x,
    y: Math.min(...places.map((node) => node.position.y)) + by.y,
  };
  return paste(document, copy(document, ids), at);
}

/** The document after ids were changed: edges, entries and every value that reads those nodes. */
function renamed(document, names) {
  const name = (id) => names.get(id) ?? id;
  const edges = edgesOf(document).map((edge) =>
    (names.has(edge.from) || names.has(edge.to) ? { ...edge, from: name(edge.from), to: name(edge.to) } : edge));
  const nodes = nodesOf(document).map((node) => {
    const [config, input] = [node.config, node.input].map((part) => part && reread(part, names));
    const next = { ...node, ...(config ? { config } : {}), ...(input ? { input } : {}) };
    if (typeof config?.collect === "string") next.config = { ...config, collect: name(config.collect) };
    return next;
  });
  const entries = document.graph.entryNodeIds;
  return withGraph(document, { nodes, edges, ...(entries ? { entryNodeIds: entries.map(name) } : {}) });
}

const SIMPLE = /^[A-Za-z_]\w*$/;
const READS = /\bnodes(?:\.([A-Za-z_]\w*)|\[\s*(?:"((?:[^"\\]|\\.)*)"|'((?:[^'\\]|\\.)*)')\s*\])/g;

/** An expression in which other ids are read. */
const rewritten = (text, names) => text.replace(READS, (read, plain, double, single) => {
  const id = names.get(plain ?? double ?? single);
  if (id === undefined) return read;
  return SIMPLE.test(id) ? `nodes.${id}` : `nodes[${JSON.stringify(id)}]`;
});

/** A path into an output, which begins with the id of the node. */
function repathed(text, names) {
  for (const [id, name] of names) {
    if (text === id || text.startsWith(`${id}.`) || text.startsWith(`${id}[`)) {
      return SIMPLE.test(name) || !/[.[\]]/.test(name) ? name + text.slice(id.length) : text;
    }
  }
  return text;
}

/** Texts of a config that are expressions without a binding around them, by their keys. */
const EXPRESSIONS = new Set(["expression", "while", "filter"]);

function reread(value, names, key = "") {
  if (Array.isArray(value)) return value.map((one) => reread(one, names, key));
  if (typeof value === "string") return EXPRESSIONS.has(key) ? rewritten(value, names) : value;
  if (value === null || typeof value !== "object") return value;
  const { type, value: text } = value;
  if (Object.keys(value).length === 2 && type === "literal" && "value" in value) return value;
  if (Object.keys(value).length === 2 && typeof text === "string") {
    if (type === "node") return { type, value: repathed(text, names) };
    if (type === "expression") return { type, value: rewritten(text, names) };
    if (type === "template") {
      return { type, value: text.replace(/\{\{[^]*?\}\}/g, (part) => rewritten(part, names)) };
    }
  }
  return Object.fromEntries(Object.entries(value).map(([name, one]) => [name, reread(one, names, name)]));
}

/** The edges that close no circle with earlier ones, for what draws in layers. */
export function forward(document) {
  const kept = [];
  const ids = takenIds(document);
  for (const edge of edgesOf(document)) {
    if (!ids.has(edge.from) || !ids.has(edge.to)) continue;
    if (!leads({ graph: { edges: kept } }, edge.to, edge.from)) kept.push(edge);
  }
  return kept;
}

/** The ways out of a node in the order of its kind, and those that its edges have beside them. */
export function waysOf(document, node, kind) {
  const ways = [];
  for (const { name, label } of kind?.outcomes ?? []) {
    if (name === "success") continue;
    if (name !== "case") ways.push({ key: name, outcome: name, label });
    else for (const caseKey of casesOf(node)) ways.push({ key: `case:${caseKey}`, outcome: name, caseKey, label: caseKey });
  }
  for (const edge of edgesOf(document)) {
    const key = wayOf(edge);
    if (edge.from !== node.id || ways.some((way) => way.key === key)) continue;
    ways.push({ key, outcome: outcomeOf(edge), caseKey: edge.caseKey, label: edge.caseKey ?? outcomeOf(edge), isUnknown: true });
  }
  return ways;
}

/** The way that an edge takes out of its node; `success` and `always` mean the same. */
export function wayOf(edge) {
  const outcome = outcomeOf(edge);
  if (outcome === "success") return "always";
  return outcome === "case" ? `case:${edge.caseKey}` : outcome;
}

function casesOf(node) {
  const cases = node.config?.cases;
  if (!Array.isArray(cases)) return [];
  return [...new Set(cases.map((one) => one?.key).filter((key) => typeof key === "string" && key))];
}

/** Documents one after another. `key` groups edits of one field into one step. */
export class History {
  constructor(document) {
    this.past = [];
    this.future = [];
    this.document = document;
    this.key = null;
  }

  push(document, key = null) {
    if (document === this.document) return false;
    if (key === null || key !== this.key) this.past.push(this.document);
    if (this.past.length > 500) this.past.shift();
    this.future = [];
    this.document = document;
    this.key = key;
    return true;
  }

  /** The next edit is a step of its own, whatever its key. */
  settle() {
    this.key = null;
  }

  undo() {
    if (this.past.length === 0) return false;
    this.future.push(this.document);
    this.document = this.past.pop();
    this.key = null;
    return true;
  }

  redo() {
    if (this.future.length === 0) return false;
    this.past.push(this.document);
    this.document = this.future.pop();
    this.key = null;
    return true;
  }
}

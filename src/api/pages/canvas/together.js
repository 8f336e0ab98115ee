// Two people and one draft: who else has it open, and the changes of both in one document.

import { act } from "/pages/client.js";
import { edgesOf, nodesOf, notesOf, unique } from "./graph.js";

const EVERY = 4000;
const isObject = (value) => value !== null && typeof value === "object" && !Array.isArray(value);
const isEqual = (a, b) => ordered(a) === ordered(b);

/** JSON with its keys in order, so that equal values are equal texts. */
export const ordered = (value) => JSON.stringify(value, (_, one) => (isObject(one)
  ? Object.fromEntries(Object.entries(one).sort(([a], [b]) => (a < b ? -1 : 1))) : one)) ?? "";

/** A value with the changes of both sides. Of what both changed, mine is taken, and `clashes` counts it. */
function both(base, mine, theirs, clashes, key = "") {
  if (isEqual(mine, theirs) || isEqual(theirs, base)) return mine;
  if (isEqual(mine, base)) return theirs;
  if (!isObject(mine) || !isObject(theirs)) {
    if (!["position", "triggerPosition"].includes(key)) clashes.push(key);
    return mine;
  }
  const keys = new Set([...Object.keys(theirs), ...Object.keys(mine)]);
  const entries = [...keys].map((one) => [one, both(isObject(base) ? base[one] : undefined, mine[one], theirs[one],
    clashes, ["position", "triggerPosition"].includes(key) ? key : one)]);
  return Object.fromEntries(entries.filter(([, value]) => value !== undefined));
}

/** A list of things with ids: what either side added or changed; a removal holds unless the other side changed it. */
function listed(base, mine, theirs, merge) {
  const byId = (list) => new Map(list.map((one) => [one.id, one]));
  const [first, own, other] = [byId(base), byId(mine), byId(theirs)];
  const kept = [];
  for (const id of new Set([...other.keys(), ...own.keys()])) {
    const [was, is, theirsNow] = [first.get(id), own.get(id), other.get(id)];
    if (is && theirsNow) kept.push(...merge(was, is, theirsNow));
    else if (!was || !isEqual(is ?? theirsNow, was)) kept.push(is ?? theirsNow);
  }
  return kept;
}

/**
 * Both documents in one, given the one that both began with: `{document, clashes}`. A node that both
 * changed at one place is as mine, with theirs beside it, disabled, so that nothing is lost.
 */
export function merged(base, mine, theirs) {
  const taken = new Set([...nodesOf(mine), ...nodesOf(theirs)].map(({ id }) => id));
  const labels = [];
  const nodes = listed(nodesOf(base), nodesOf(mine), nodesOf(theirs), (was, is, other) => {
    const found = [];
    const node = both(was, is, other, found);
    if (found.length === 0) return [node];
    labels.push(is.label ?? is.id);
    const id = unique(`${other.id}_theirs`, taken);
    taken.add(id);
    const place = other.position && { position: { x: other.position.x, y: other.position.y + 110 } };
    return [node, { ...other, ...place, id, label: `${other.label ?? other.id} (theirs)`.slice(0, 200), disabled: true }];
  });
  const ids = new Set(nodes.map(({ id }) => id));
  const joins = ({ from, to, outcome = "always", caseKey = null }) => JSON.stringify([from, to, outcome, caseKey]);
  // Edges are the same where they join the same; each side numbers its own.
  const asListed = (document) => edgesOf(document).map((edge) => ({ ...edge, id: joins(edge) }));
  const edges = listed(asListed(base), asListed(mine), asListed(theirs), (_, is) => [is])
    .filter(({ from, to }) => ids.has(from) && ids.has(to)).map((edge, index) => ({ ...edge, id: `edge-${index + 1}` }));
  const notes = mergedNotes(base, mine, theirs);
  const rest = ({ nodes: _nodes, edges: _edges, notes: _notes, entryNodeIds: _entries, ...graph }) => graph;
  const clashes = [];
  const graph = both(rest(base.graph), rest(mine.graph), rest(theirs.graph), clashes);
  const trigger = both(base.trigger, mine.trigger, theirs.trigger, clashes);
  return { document: { ...mine, trigger, graph: { ...graph, nodes, edges, ...(notes.length > 0 ? { notes } : {}), ...entries(base, mine, theirs, ids) } }, clashes: [...labels, ...clashes] };
}

/** The notes of both. Of a note that both changed at one place, both texts stay, one below the other. */
function mergedNotes(base, mine, theirs) {
  const taken = new Set([...notesOf(mine), ...notesOf(theirs)].map(({ id }) => id));
  return listed(notesOf(base), notesOf(mine), notesOf(theirs), (was, is, other) => {
    const found = [];
    const note = both(was, is, other, found);
    if (found.length === 0) return [note];
    const id = unique(`${other.id}_theirs`, taken);
    taken.add(id);
    return [note, { ...other, id, position: { x: other.position.x, y: other.position.y + other.height + 20 } }];
  });
}

function entries(base, mine, theirs, ids) {
  const asListed = ({ graph }) => (graph.entryNodeIds ?? []).map((id) => ({ id }));
  const found = listed(asListed(base), asListed(mine), asListed(theirs), (_, is) => [is]).map(({ id }) => id).filter((id) => ids.has(id));
  return found.length > 0 ? { entryNodeIds: found } : {};
}

/**
 * Says every few seconds that the draft is open here. Calls `told({editors, updatedAt, changedBy, changedAt})`.
 * Answers a function that asks at once.
 */
export function meet(page, told) {
  const tabId = crypto.randomUUID();
  const ask = () => act(`${page}/edit/presence`, { tabId }).then(told, () => {});
  const report = async () => {
    if (!window.document.hidden) await ask();
    setTimeout(report, EVERY);
  };
  window.addEventListener("pagehide", () => {
    const headers = { "Content-Type": "application/json", "X-CSRF-Token": window.document.querySelector("meta[name=csrf-token]").content };
    fetch(`${page}/edit/presence`, { method: "POST", keepalive: true, headers, body: JSON.stringify({ tabId, leaves: true }) }).catch(() => {});
  });
  report();
  return ask;
}

/** Names in words: `Ada`, `Ada and Bo`, `Ada, Bo and 3 others`. */
export function namesOf(others) {
  const names = others.map(({ name, isSelf }) => (isSelf ? "you in another tab" : name));
  if (names.length > 3) return `${names.slice(0, 2).join(", ")} and ${names.length - 2} others`;
  return names.length < 2 ? names.join("") : `${names.slice(0, -1).join(", ")} and ${names.at(-1)}`;
}

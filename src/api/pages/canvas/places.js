// Where the nodes of a document are: as their author put them, in layers, or where one has just been added.

import { placedInLayers } from "/pages/layers.js";
import { bodiesOf, FRAME, groupsAround, NODE } from "/pages/layout.js";
import { edgesOf, entriesOf, forward, leads, move, nodeOf, nodesOf, TRIGGER, waysOf } from "./graph.js";

export const ROW = 24;
/** Ways that leave a node at its bottom, since most graphs need few of them. */
export const BELOW = new Set(["failure", "finally"]);
const GAP = 96;

export const beside = (ways) => ways.filter((way) => !BELOW.has(way.outcome));
const sizeOf = (ways) => {
  const rows = beside(ways).length;
  return { width: NODE.width, height: NODE.height + (rows > 1 ? rows * ROW + 4 : 0) };
};

/** Everything that is drawn of a document: boxes by id, ways out by id, and the bodies of loops. */
export function planOf(document, kinds) {
  const ways = new Map(nodesOf(document).map((node) => [node.id, waysOf(document, node, kinds.get(node.kind))]));
  const sizes = (id) => (ways.has(id) ? sizeOf(ways.get(id)) : NODE);
  const graph = { nodes: nodesOf(document), edges: forward(document) };
  const bodies = bodiesOf(graph);
  const boxes = new Map();
  const missing = nodesOf(document).filter((node) => !node.position);
  const laid = missing.length === 0 ? null : arranged(document, kinds);
  const isNew = missing.length === nodesOf(document).length;
  const below = Math.max(0, ...nodesOf(document).filter((node) => node.position)
    .map((node) => node.position.y + sizes(node.id).height + GAP));
  for (const node of nodesOf(document)) {
    const at = node.position ?? laid.get(node.id);
    boxes.set(node.id, { ...sizes(node.id), x: at.x, y: node.position || isNew ? at.y : at.y + below });
  }
  boxes.set(TRIGGER, { ...NODE, ...triggerPlace(document, boxes, isNew ? laid : null) });
  return { ways, boxes, bodies, groups: groupsAround(bodies, boxes) };
}

function triggerPlace(document, boxes, laid) {
  if (document.graph.triggerPosition) return document.graph.triggerPosition;
  if (laid?.has(TRIGGER)) return laid.get(TRIGGER);
  const first = entriesOf(document).map((id) => boxes.get(id)).filter(Boolean);
  if (first.length === 0) return { x: 0, y: 0 };
  return { x: Math.min(...[...boxes.values()].map((box) => box.x)) - NODE.width - GAP, y: first[0].y };
}

/** Places of all nodes and the trigger, in layers to the right. */
export function arranged(document, kinds) {
  const entries = entriesOf(document).filter((id) => nodeOf(document, id));
  const edges = forward(document);
  const graph = {
    nodes: [{ id: TRIGGER }, ...nodesOf(document)],
    edges: [...entries.map((id) => ({ id: `${TRIGGER}/${id}`, from: TRIGGER, to: id })), ...edges],
  };
  const bodies = bodiesOf({ nodes: nodesOf(document), edges });
  const of = (id) => (id === TRIGGER ? NODE : sizeOf(waysOf(document, nodeOf(document, id), kinds.get(nodeOf(document, id).kind))));
  return placedInLayers(graph, bodies, "right", { node: NODE, frame: FRAME, of }).nodes;
}

/** The document with a position for every node, as it is drawn. */
export function settled(document, boxes) {
  const missing = nodesOf(document).filter((node) => !node.position && boxes.has(node.id));
  const isPlaced = missing.length === 0 && (document.graph.triggerPosition || nodesOf(document).length === 0);
  if (isPlaced || !boxes.has(TRIGGER)) return document;
  const ids = [...missing.map((node) => node.id), ...(document.graph.triggerPosition ? [] : [TRIGGER])];
  return move(document, new Map(ids.map((id) => [id, boxes.get(id)])));
}

/** How far beyond the frame of a loop a node leaves it: nearer, it is a further column or row of the body. */
const LEAVE = 120;
const isBeyond = (box, { x, y, width, height }) => Math.max(x - box.x - box.width, box.x - x - width, y - box.y - box.height, box.y - y - height) > LEAVE;

/** The outermost loop that nodes leave at these places, its body, and the ids of all that leave it; null where none is left. */
export function leftBy({ boxes, bodies, groups }, places) {
  for (const group of groups) {
    const ids = [...places.keys()].filter((id) => group.body.has(id));
    const isLeft = ids.length > 0 && !places.has(group.id) && ids.every((id) => isBeyond({ ...boxes.get(id), ...places.get(id) }, group));
    if (isLeft) return { id: group.id, body: group.body, ids: [...new Set(ids.flatMap((id) => [id, ...bodies.get(id) ?? []]))] };
  }
  return null;
}

const touches = (a, b) => Math.abs(a.x - b.x) < NODE.width + 24 && a.y < b.y + b.height + 24 && b.y < a.y + NODE.height + 24;

/** The first free place for something of this size at a point, or below or above it. */
export function freeFor({ x, y }, { width, height }, boxes, sign = 1) {
  const place = { x, y };
  const isTaken = (box) => place.x < box.x + box.width && box.x < place.x + width && place.y < box.y + box.height && box.y < place.y + height;
  while (boxes.some(isTaken)) place.y += 20 * sign;
  return place;
}

/** The first free place at a point or below it. */
function free(at, boxes) {
  const others = [...boxes.values()];
  const place = { x: at.x, y: at.y };
  while (others.some((box) => touches(place, box))) place.y += 40;
  return place;
}

/**
 * Where a new node goes, and the document with room for it: right of the node it follows, or in the
 * middle of an edge, whose end moves to the right with all that follows where there is no room.
 */
export function roomFor(document, boxes, { after, into, at }) {
  if (at && !into) return { document, position: free({ x: at.x - NODE.width / 2, y: at.y - NODE.height / 2 }, boxes) };
  if (after) {
    const from = boxes.get(after.from);
    return { document, position: free({ x: from.x + from.width + GAP, y: from.y }, boxes) };
  }
  const edge = into.entry ? { from: TRIGGER, to: into.entry } : edgesOf(document).find((one) => one.id === into.edge);
  const [from, to] = [boxes.get(edge.from), boxes.get(edge.to)];
  const needed = NODE.width + 2 * GAP;
  const lack = needed - (to.x - from.x - from.width);
  if (to.x <= from.x || lack <= 0) {
    const position = { x: (from.x + from.width + to.x - NODE.width) / 2, y: (from.y + to.y) / 2 };
    return { document, position: to.x <= from.x ? free(position, boxes) : position };
  }
  const following = nodesOf(document).filter((node) => leads(document, edge.to, node.id) && boxes.get(node.id).x >= to.x);
  const moved = new Map(following.map(({ id }) => [id, { x: boxes.get(id).x + lack, y: boxes.get(id).y }]));
  return { document: move(document, moved), position: { x: from.x + from.width + GAP, y: to.y } };
}

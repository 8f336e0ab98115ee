// Where nodes and edges are drawn: a pure function of the graph, the same every time.

import { placedInLayers } from "/pages/layers.js";

export const NODE = { width: 224, height: 58 };
export const FRAME = { side: 18, top: 34 };
const MARGIN = 32;
const WIDEST = 1.7;

/** Boxes by node id, frames around the bodies of loops, and edges as paths. */
export function layout(graph) {
  const bodies = bodiesOf(graph);
  const plan = placedByAuthor(graph) ?? placedByUs(graph, bodies);
  const groups = groupsAround(bodies, plan.nodes);
  const edges = graph.edges
    .filter((edge) => plan.nodes.has(edge.from) && plan.nodes.has(edge.to))
    .map((edge) => route(edge, plan, groups));
  const lanes = [...plan.ways.values()].flat();
  return { nodes: plan.nodes, groups, edges, ...extent([...plan.nodes.values(), ...groups, ...lanes]) };
}

/** The nodes of each loop's body: those that `item` leads to and nothing else of the loop does. */
export function bodiesOf(graph) {
  const next = new Map(graph.nodes.map((node) => [node.id, []]));
  for (const edge of graph.edges) next.get(edge.from)?.push(edge);
  const reach = (edges) => {
    const found = new Set();
    const open = edges.map((edge) => edge.to);
    while (open.length > 0) {
      const id = open.shift();
      if (found.has(id) || !next.has(id)) continue;
      found.add(id);
      open.push(...next.get(id).map((edge) => edge.to));
    }
    return found;
  };
  const bodies = new Map();
  for (const { id } of graph.nodes) {
    const [items, others] = [[], []];
    for (const edge of next.get(id)) (edge.outcome === "item" ? items : others).push(edge);
    const after = reach(others);
    const body = [...reach(items)].filter((one) => !after.has(one) && one !== id);
    if (body.length > 0) bodies.set(id, new Set(body));
  }
  return bodies;
}

/** Positions as the author gave them, spread until no two nodes touch; null without all of them. */
function placedByAuthor({ nodes }) {
  if (nodes.length === 0 || nodes.some((node) => !node.position)) return null;
  for (const factor of [1, 1.25, 1.5, 2, 3]) {
    const boxes = nodes.map(({ position }) => ({
      ...NODE, x: position.x * factor, y: position.y * factor,
    }));
    const touch = (a, b) => Math.abs(a.x - b.x) < NODE.width + 16
      && Math.abs(a.y - b.y) < NODE.height + 16;
    if (boxes.some((a, i) => boxes.some((b, j) => i < j && touch(a, b)))) continue;
    const placed = new Map(nodes.map((node, index) => [node.id, boxes[index]]));
    return { nodes: placed, ways: new Map(), flow: null };
  }
  return null;
}

/** Layers to the right, or downwards where that would be much wider than high. */
function placedByUs(graph, bodies) {
  const sizes = { node: NODE, frame: FRAME };
  const right = placedInLayers(graph, bodies, "right", sizes);
  const { width, height } = extent([...right.nodes.values()]);
  return width > WIDEST * height ? placedInLayers(graph, bodies, "down", sizes) : right;
}

/** A frame around each loop and its body, the outer ones first. */
export function groupsAround(bodies, placed) {
  const groups = [...bodies].map(([id, body]) => {
    const boxes = [id, ...body].map((one) => placed.get(one));
    const depth = deepness(body, bodies);
    const side = FRAME.side * (1 + depth);
    const top = FRAME.top * (1 + depth);
    const x = Math.min(...boxes.map((box) => box.x)) - side;
    const y = Math.min(...boxes.map((box) => box.y)) - top;
    const width = Math.max(...boxes.map((box) => box.x + box.width)) + side - x;
    const height = Math.max(...boxes.map((box) => box.y + box.height)) + side - y;
    return { id, body, x, y, width, height };
  });
  return groups.sort((a, b) => b.body.size - a.body.size);
}

/** The depth of loops in a body. */
function deepness(body, bodies) {
  const inner = [...body].filter((id) => bodies.has(id));
  return Math.max(0, ...inner.map((id) => 1 + deepness(bodies.get(id), bodies)));
}

/** An edge as a curve; what follows a loop leaves from the frame around its body. */
function route(edge, { nodes, ways, flow }, groups) {
  const to = nodes.get(edge.to);
  const group = groups.find((one) => one.id === edge.from && !one.body.has(edge.to));
  const from = group ?? nodes.get(edge.from);
  const right = to.x - from.x - from.width;
  const down = to.y - from.y - from.height;
  const turned = flow ?? (right >= down ? "right" : "down");
  const points = [port(from, turned, 1)];
  for (const box of ways.get(edge.id) ?? []) points.push(port(box, turned, 0), port(box, turned, 1));
  points.push(port(to, turned, 0));
  const middle = { x: (points[0].x + points[1].x) / 2, y: (points[0].y + points[1].y) / 2 };
  return { ...edge, path: curve(points, turned), middle };
}

/** Where an edge meets a box: in the middle of the side it comes to (0) or leaves from (1). */
const port = (box, flow, end) => (flow === "right"
  ? { x: box.x + end * box.width, y: box.y + box.height / 2 }
  : { x: box.x + box.width / 2, y: box.y + end * box.height });

/** Curves between layers, straight lines through them. */
function curve(points, flow) {
  let path = `M${points[0].x},${points[0].y}`;
  for (let at = 1; at < points.length; at += 1) {
    const [a, b] = [points[at - 1], points[at]];
    if (at % 2 === 0) {
      path += ` L${b.x},${b.y}`;
      continue;
    }
    const pull = flow === "right"
      ? { x: Math.max(28, (b.x - a.x) / 2), y: 0 } : { x: 0, y: Math.max(22, (b.y - a.y) / 2) };
    path += ` C${a.x + pull.x},${a.y + pull.y} ${b.x - pull.x},${b.y - pull.y} ${b.x},${b.y}`;
  }
  return path;
}

function extent(boxes) {
  if (boxes.length === 0) return { x: 0, y: 0, width: 1, height: 1 };
  const x = Math.min(...boxes.map((box) => box.x)) - MARGIN;
  const y = Math.min(...boxes.map((box) => box.y)) - MARGIN;
  const width = Math.max(...boxes.map((box) => box.x + box.width)) + MARGIN - x;
  const height = Math.max(...boxes.map((box) => box.y + box.height)) + MARGIN - y;
  return { x, y, width, height };
}

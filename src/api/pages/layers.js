// Where the nodes of a run's graph go: d3-dag places the boxes of one level, from layer to layer.
//
// A loop and its body are placed by themselves and are one box on the level around them.

import {
  coordGreedy, decrossDfs, decrossTwoLayer, graph as dag, layeringLongestPath, sugiyama, twolayerAgg,
} from "/pages/d3-dag.js";

const GAPS = { right: { along: 72, across: 26 }, down: { along: 50, across: 30 } };
const LANE = 14;
const PASSES = 8;

/**
 * Boxes by node id, and by edge id the places it takes in the layers it passes through. Nodes have
 * the size `sizes.node`, or each the one that `sizes.of(id)` gives.
 */
export function placedInLayers(graph, bodies, flow, sizes) {
  const inner = new Set([...bodies.values()].flatMap((body) => [...body]));
  const outer = graph.nodes.map((node) => node.id).filter((id) => !inner.has(id));
  const { nodes, ways } = placed(outer, graph, bodies, flow, sizes);
  return { nodes, ways, flow };
}

/** The nodes of one level, with everything inside of them. */
function placed(ids, graph, bodies, flow, sizes) {
  const blocks = new Map(ids.map((id) => [id, block(id, graph, bodies, flow, sizes)]));
  const level = dag();
  const nodes = new Map(ids.map((id) => [id, level.node(id)]));
  for (const { id, from, to } of graph.edges) {
    if (nodes.has(from) && nodes.has(to)) level.link(nodes.get(from), nodes.get(to), id);
  }
  // The library draws downwards, and the branches of a node from the last to the first.
  const turned = flow === "right" ? ([x, y]) => [y, x] : (pair) => pair;
  const size = (id) => turned([blocks.get(id).width, blocks.get(id).height]);
  const { along, across } = GAPS[flow];
  const arrange = sugiyama()
    .layering(layeringLongestPath())
    .decross(decrossTwoLayer().order(twolayerAgg()).passes(PASSES).inits([decrossDfs()]))
    .coord(coordGreedy())
    .nodeSize((one) => (one.data === undefined ? [LANE, 0] : size(one.data)))
    .gap([across, along]);
  const drawn = ids.length === 0 ? { width: 0, height: 0 } : arrange(level);
  const [width, height] = turned([drawn.width, drawn.height]);
  const found = { nodes: new Map(), ways: new Map(), width, height };
  for (const { data, ux, uy } of level.nodes()) {
    const made = blocks.get(data);
    const [x, y] = turned([drawn.width - ux, uy]);
    move(made, { x: x - made.width / 2, y: y - made.height / 2 }, found);
  }
  const lengths = new Map();
  for (const { data, uy } of level.nodes()) {
    lengths.set(uy, Math.max(size(data)[1], lengths.get(uy) ?? 0));
  }
  for (const { data, points } of level.links()) {
    const bends = points.slice(1, -1).map(([ux, uy]) => [drawn.width - ux, uy]);
    found.ways.set(data, bends.map((bend) => lane(bend, lengths, turned)));
  }
  return found;
}

/** One node, or a loop with its body after it. */
function block(id, graph, bodies, flow, sizes) {
  const node = sizes.of?.(id) ?? sizes.node;
  const { frame } = sizes;
  const body = bodies.get(id);
  if (!body) return { nodes: new Map([[id, { ...node, x: 0, y: 0 }]]), ways: new Map(), ...node };
  const nested = new Set([...body].flatMap((one) => [...(bodies.get(one) ?? [])]));
  const ids = graph.nodes.map((one) => one.id).filter((one) => body.has(one) && !nested.has(one));
  const inside = placed(ids, graph, bodies, flow, sizes);
  const gap = GAPS[flow].along;
  const [width, height] = flow === "right"
    ? [node.width + gap + inside.width, Math.max(node.height, inside.height)]
    : [Math.max(node.width, inside.width), node.height + gap + inside.height];
  const found = {
    nodes: new Map(), ways: new Map(),
    width: width + 2 * frame.side, height: height + frame.top + frame.side,
  };
  const own = block(id, graph, new Map(), flow, sizes);
  const beside = (one, along) => (flow === "right"
    ? { x: frame.side + along, y: frame.top + (height - one.height) / 2 }
    : { x: frame.side + (width - one.width) / 2, y: frame.top + along });
  move(own, beside(node, 0), found);
  move(inside, beside(inside, (flow === "right" ? node.width : node.height) + gap), found);
  return found;
}

/** The parts inside a block, put where the block is. */
function move(made, { x, y }, found) {
  const shifted = (box) => ({ ...box, x: box.x + x, y: box.y + y });
  for (const [id, box] of made.nodes) found.nodes.set(id, shifted(box));
  for (const [id, boxes] of made.ways) found.ways.set(id, boxes.map(shifted));
}

/** A flat box where an edge passes through a layer, as long as the layer. */
function lane([across, along], lengths, turned) {
  const length = lengths.get(along) ?? 0;
  const [x, y] = turned([across, along - length / 2]);
  const [width, height] = turned([0, length]);
  return { x, y, width, height };
}

// A layered drawing: each node after those that lead to it, near its neighbours, upon none.
//
// Along the flow a box has a length, across it a breadth. A loop and its body are arranged by
// themselves and then are one box; an edge that skips layers keeps a lane free through them.

const FLOWS = {
  right: {
    gap: 72, beside: 26, length: (box) => box.width, breadth: (box) => box.height,
    box: (along, across, length, breadth) => ({ x: along, y: across, width: length, height: breadth }),
  },
  down: {
    gap: 50, beside: 30, length: (box) => box.height, breadth: (box) => box.width,
    box: (along, across, length, breadth) => ({ x: across, y: along, width: breadth, height: length }),
  },
};
const LANE = 14;
const SWEEPS = 8;

/** Boxes by node id, and by edge id the lanes it takes. */
export function placedInLayers(graph, bodies, flow, sizes) {
  const inner = new Set([...bodies.values()].flatMap((body) => [...body]));
  const outer = graph.nodes.map((node) => node.id).filter((id) => !inner.has(id));
  const { nodes, ways } = arranged(outer, graph, bodies, FLOWS[flow], sizes);
  return { nodes, ways, flow };
}

function arranged(ids, graph, bodies, flow, sizes) {
  const blocks = new Map(ids.map((id) => [id, block(id, graph, bodies, flow, sizes)]));
  const edges = graph.edges.filter((edge) => blocks.has(edge.from) && blocks.has(edge.to));
  const layers = layered(ids, edges);
  const { links, lanes } = laned(layers, edges, blocks);
  ordered(layers, links);
  const across = settled(layers, links, blocks, flow);
  const found = { nodes: new Map(), ways: new Map(), length: 0, breadth: 0 };
  const boxes = new Map();
  for (const layer of layers) {
    const length = Math.max(...layer.map((id) => blocks.get(id).length));
    for (const id of layer) {
      const made = blocks.get(id);
      const along = found.length + (lanes.has(id) ? 0 : (length - made.length) / 2);
      boxes.set(id, flow.box(along, across.get(id), lanes.has(id) ? length : made.length, made.breadth));
      found.breadth = Math.max(found.breadth, across.get(id) + made.breadth);
      moved(made, boxes.get(id), found);
    }
    found.length += length + flow.gap;
  }
  found.length -= flow.gap;
  for (const [lane, edgeId] of lanes) {
    found.ways.set(edgeId, [...(found.ways.get(edgeId) ?? []), boxes.get(lane)]);
  }
  return found;
}

/** What is inside a block, put where the block is. */
function moved(made, { x, y }, found) {
  const shifted = (box) => ({ ...box, x: box.x + x, y: box.y + y });
  for (const [id, box] of made.nodes) found.nodes.set(id, shifted(box));
  for (const [id, boxes] of made.ways) found.ways.set(id, boxes.map(shifted));
}

/** One node, or a loop followed by its body. */
function block(id, graph, bodies, flow, { node, frame }) {
  const [length, breadth] = [flow.length(node), flow.breadth(node)];
  const body = bodies.get(id);
  if (!body) return { nodes: new Map([[id, { ...node, x: 0, y: 0 }]]), ways: new Map(), length, breadth };
  const nested = new Set([...body].flatMap((one) => [...(bodies.get(one) ?? [])]));
  const ids = graph.nodes.map((one) => one.id).filter((one) => body.has(one) && !nested.has(one));
  const inside = arranged(ids, graph, bodies, flow, { node, frame });
  const most = Math.max(breadth, inside.breadth);
  const found = { nodes: new Map(), ways: new Map() };
  const corner = { x: frame.side, y: frame.top };
  const own = flow.box(0, (most - breadth) / 2, length, breadth);
  found.nodes.set(id, { ...own, x: own.x + corner.x, y: own.y + corner.y });
  const after = flow.box(length + flow.gap, (most - inside.breadth) / 2, 0, 0);
  moved(inside, { x: after.x + corner.x, y: after.y + corner.y }, found);
  const whole = flow.box(0, 0, length + flow.gap + inside.length, most);
  whole.width += 2 * frame.side;
  whole.height += frame.top + frame.side;
  return { ...found, length: flow.length(whole), breadth: flow.breadth(whole) };
}

/** Each node one layer after the last of those that lead to it. */
function layered(ids, edges) {
  const layer = new Map(ids.map((id) => [id, 0]));
  for (let round = 0, moving = true; moving && round < ids.length; round += 1) {
    moving = false;
    for (const { from, to } of edges) {
      if (layer.get(to) > layer.get(from) || layer.get(from) + 1 >= ids.length) continue;
      layer.set(to, layer.get(from) + 1);
      moving = true;
    }
  }
  const layers = [];
  for (const id of ids) (layers[layer.get(id)] ??= []).push(id);
  return layers.filter(Boolean);
}

/** Edges as links from one layer to the next, with a lane in each layer that one skips. */
function laned(layers, edges, blocks) {
  const layerOf = new Map(layers.flatMap((layer, at) => layer.map((id) => [id, at])));
  const links = [];
  const lanes = new Map();
  for (const edge of edges) {
    let before = edge.from;
    for (let at = layerOf.get(edge.from) + 1; at < layerOf.get(edge.to); at += 1) {
      const lane = `${edge.id}/${at}`;
      lanes.set(lane, edge.id);
      blocks.set(lane, { nodes: new Map(), ways: new Map(), length: 0, breadth: LANE });
      layers[at].push(lane);
      links.push({ from: before, to: lane });
      before = lane;
    }
    links.push({ from: before, to: edge.to });
  }
  return { links, lanes };
}

const mean = (numbers) => numbers.reduce((sum, one) => sum + one, 0) / numbers.length;

/** The neighbours of each block, before and after it. */
function neighbours(links) {
  const near = [new Map(), new Map()];
  for (const { from, to } of links) {
    near[0].set(to, [...(near[0].get(to) ?? []), from]);
    near[1].set(from, [...(near[1].get(from) ?? []), to]);
  }
  return near;
}

/** Sorts each layer by the mean place of its neighbours, back and forth. */
function ordered(layers, links) {
  const near = neighbours(links);
  for (let sweep = 0; sweep < SWEEPS; sweep += 1) {
    for (const layer of sweep % 2 === 0 ? layers : layers.toReversed()) {
      const place = new Map(layers.flatMap((one) => one.map((id, at) => [id, (at + 0.5) / one.length])));
      const wish = new Map(layer.map((id) => {
        const beside = near[sweep % 2].get(id);
        return [id, beside ? mean(beside.map((one) => place.get(one))) : place.get(id)];
      }));
      layer.sort((a, b) => wish.get(a) - wish.get(b) || place.get(a) - place.get(b));
    }
  }
}

/** Where each block begins across the flow: near the middle of its neighbours, upon none. */
function settled(layers, links, blocks, flow) {
  const near = neighbours(links);
  const start = new Map();
  const middle = (id) => start.get(id) + blocks.get(id).breadth / 2;
  for (const layer of layers) {
    let free = 0;
    for (const id of layer) {
      start.set(id, free);
      free += blocks.get(id).breadth + flow.beside;
    }
  }
  for (let sweep = 0; sweep < SWEEPS; sweep += 1) {
    for (const layer of sweep % 2 === 0 ? layers : layers.toReversed()) {
      const wishes = layer.map((id) => {
        const beside = near[sweep % 2].get(id);
        return beside ? mean(beside.map(middle)) - blocks.get(id).breadth / 2 : start.get(id);
      });
      let free = -Infinity;
      const starts = layer.map((id, at) => {
        const place = Math.max(wishes[at], free);
        free = place + blocks.get(id).breadth + flow.beside;
        return place;
      });
      const shift = mean(starts.map((one, at) => one - wishes[at]));
      layer.forEach((id, at) => start.set(id, starts[at] - shift));
    }
  }
  const least = Math.min(...start.values());
  for (const [id, one] of start) start.set(id, one - least);
  return start;
}

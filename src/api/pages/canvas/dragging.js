// Nodes while they are dragged: drawn at an offset from their places, and placed once they are dropped.
//
// The library draws each node, each of its edges and the minimap again with every move of the mouse.

const { shallowReactive, shallowRef } = Vue;

const MOVED = ".vue-flow__node, .vue-flow__edge, .edge-tools, .vue-flow__minimap-node, .vue-flow__nodesselection-rect";
const STILL = { x: 0, y: 0 };

/** The offsets of both ends of an edge of which one is dragged, by its id: only these are drawn again. */
export const stretched = shallowReactive(new Map());

/** The loop that would be left if what is dragged was dropped now, by its id. */
export const leaving = shallowRef(null);

/** The ends of an edge where they are while a node of it is dragged. */
export function endsOf(id, ends) {
  const { from, to } = stretched.get(id) ?? { from: STILL, to: STILL };
  return { ...ends, sourceX: ends.sourceX + from.x, sourceY: ends.sourceY + from.y, targetX: ends.targetX + to.x, targetY: ends.targetY + to.y };
}

/** What is on the canvas that moves with nodes, by the id of its node or edge; that of the selection has none. */
function elementsOf(root) {
  const elements = new Map();
  for (const element of root.querySelectorAll(MOVED)) {
    const id = element.dataset.id ?? element.id;
    elements.set(id, [...(elements.get(id) ?? []), element]);
  }
  return elements;
}

/** Takes the changes of nodes that the library reports. `root` is the element of the canvas, `flow` the library's; `left` names the loop that nodes leave at their places. */
export class Dragging {
  constructor(flow, root, left) {
    this.flow = flow;
    this.root = root;
    this.left = left;
    this.elements = null;
  }

  apply(changes) {
    const isDrag = (change) => change.type === "position" && change.dragging !== undefined;
    const drags = changes.filter(isDrag);
    const others = changes.filter((change) => !isDrag(change));
    if (others.length > 0) this.flow.applyNodeChanges(others);
    if (drags.length === 0) return;
    if (drags[0].dragging) this.move(drags);
    else this.drop();
  }

  move(drags) {
    if (this.elements === null) {
      this.elements = elementsOf(this.root.value);
      for (const { id } of drags) this.flow.findNode(id).dragging = true;
    }
    this.places = new Map(drags.map(({ id, position }) => [id, position]));
    leaving.value = this.left(this.places);
    const offsets = new Map(drags.map(({ id, position }) => {
      const { x, y } = this.flow.findNode(id).position;
      return [id, { x: position.x - x, y: position.y - y }];
    }));
    for (const [id, offset] of offsets) this.shift(id, offset);
    if (offsets.size > 1) this.shift("", offsets.values().next().value);
    for (const { id, source, target } of this.flow.edges.value) {
      const [from, to] = [offsets.get(source) ?? STILL, offsets.get(target) ?? STILL];
      if (from.x === to.x && from.y === to.y) this.shift(id, from);
      else stretched.set(id, { from, to });
    }
  }

  shift(id, { x, y }) {
    for (const element of this.elements.get(id) ?? []) element.style.translate = `${x}px ${y}px`;
  }

  drop() {
    for (const element of [...this.elements?.values() ?? []].flat()) element.style.translate = "";
    for (const [id, position] of this.places ?? []) {
      const node = this.flow.findNode(id);
      if (node) Object.assign(node, { position, dragging: false });
    }
    stretched.clear();
    leaving.value = null;
    Object.assign(this, { elements: null, places: null });
  }
}

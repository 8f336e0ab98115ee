// The graph in SVG: drawn once, then only its states move.

import { layout, NODE } from "/pages/layout.js";
import { duration, plain, shape, span } from "/pages/words.js";

/** Pixels at the bottom that the legend covers. */
const LEGEND = 60;
const LINE = NODE.width - 62;
/** Letters of what has no box around it. */
const ROOM = 22;

export class Drawing {
  constructor(svg, scroller, choose) {
    this.svg = svg;
    this.scroller = scroller;
    this.choose = choose;
    this.nodes = new Map();
    this.scale = 1;
  }

  draw(graph) {
    this.graph = graph;
    this.plan = layout(graph);
    const { x, y, width, height } = this.plan;
    this.svg.setAttribute("viewBox", `${x} ${y} ${width} ${height}`);
    const arrow = shape("marker", {
      id: "arrow", viewBox: "0 0 8 8", refX: 7, refY: 4, markerWidth: 7, markerHeight: 7,
      orient: "auto", markerUnits: "userSpaceOnUse",
    }, shape("path", { class: "arrow", d: "M0 0L8 4L0 8z" }));
    this.groups = new Map(this.plan.groups.map((group) => [group.id, drawTitle(group)]));
    this.edges = this.plan.edges.map((edge) => [edge, drawEdge(edge)]);
    for (const node of graph.nodes) this.nodes.set(node.id, this.drawNode(node));
    this.svg.replaceChildren(
      shape("defs", {}, arrow), ...this.plan.groups.map(drawFrame),
      ...this.edges.map(([, drawn]) => drawn), ...this.groups.values(), ...this.nodes.values(),
    );
    for (const node of graph.nodes) {
      fitted(this.nodes.get(node.id).querySelector(".label"), node.label ?? node.id);
    }
    this.zoom("fit");
  }

  drawNode(node) {
    const { x, y } = this.plan.nodes.get(node.id);
    const drawn = shape("g", {
      class: "node", transform: `translate(${x} ${y})`, tabindex: 0, role: "button",
      "data-node": node.id,
    });
    drawn.append(
      shape("title", {}, node.label ?? node.id),
      shape("rect", { class: "box", rx: 10, ...NODE }),
      shape("rect", { class: "badge", x: 10, y: 13, width: 32, height: 32, rx: 8 }),
      shape("use", { class: "mark", x: 18, y: 21, width: 16, height: 16 }),
      shape("text", { class: "label", x: 52, y: 26 }),
      shape("text", { class: "kind", x: 52, y: 43 }, plain(node.kind)),
    );
    drawn.addEventListener("click", () => this.choose(node.id));
    drawn.addEventListener("keydown", (event) => this.press(event, node.id));
    return drawn;
  }

  /** Show how far each node has come; `known` is by node id. */
  show(known) {
    for (const node of this.graph.nodes) this.showNode(node, known.get(node.id));
    for (const [edge, drawn] of this.edges) {
      const [from, to] = [known.get(edge.from)?.status, known.get(edge.to)?.status];
      drawn.classList.toggle("dead", from === "skipped" || to === "skipped");
      drawn.classList.toggle("taken", Boolean(from && to && from !== "skipped" && to !== "skipped"));
    }
    for (const [id, drawn] of this.groups) {
      const node = this.graph.nodes.find((one) => one.id === id);
      const turns = known.get(id)?.iterations;
      const done = turns ? ` · ${turns.done}/${turns.total ?? "?"}` : "";
      drawn.textContent = `${shortened(node.label ?? id)}${done}`;
    }
  }

  showNode(node, progress) {
    const drawn = this.nodes.get(node.id);
    const status = progress?.status;
    if (status) drawn.dataset.status = status;
    drawn.querySelector(".mark").setAttribute("href", status ? `#icon-${status}` : "");
    fitted(drawn.querySelector(".kind"), [plain(node.kind), ...remarks(progress)].join(" · "));
    const told = status ? plain(status) : "not reached";
    drawn.setAttribute("aria-label", `${node.label ?? node.id}, ${plain(node.kind)}, ${told}`);
  }

  mark(nodeId) {
    for (const [id, drawn] of this.nodes) {
      drawn.classList.toggle("chosen", id === nodeId);
      drawn.setAttribute("aria-pressed", id === nodeId);
    }
  }

  /** Enter and space choose; arrows go along the edges and through the layer. */
  press(event, nodeId) {
    const box = this.plan.nodes.get(nodeId);
    const linked = (own, other) => this.graph.edges.find((edge) => edge[own] === nodeId)?.[other];
    const beside = (sign) => this.graph.nodes
      .map((node) => ({ id: node.id, box: this.plan.nodes.get(node.id) }))
      .filter((one) => sign * (one.box.y - box.y) > 1 && Math.abs(one.box.x - box.x) < NODE.width)
      .sort((a, b) => sign * (a.box.y - b.box.y))[0]?.id;
    const next = {
      ArrowRight: () => linked("from", "to"), ArrowLeft: () => linked("to", "from"),
      ArrowDown: () => beside(1), ArrowUp: () => beside(-1),
    }[event.key]?.();
    if (event.key === "Enter" || event.key === " ") this.choose(nodeId);
    else if (next === undefined) return;
    event.preventDefault();
    this.nodes.get(next)?.focus();
  }

  zoom(how) {
    const { width, height } = this.plan;
    const room = this.scroller.getBoundingClientRect();
    const fit = Math.min(1, (room.width - 2) / width, (room.height - LEGEND) / height);
    if (how === "fit") this.scale = Math.max(0.2, fit);
    else this.scale = Math.min(2, Math.max(0.2, this.scale * (how === "in" ? 1.25 : 0.8)));
    this.svg.setAttribute("width", width * this.scale);
    this.svg.setAttribute("height", height * this.scale);
  }
}

/** The text beside a node's kind. */
function remarks(progress) {
  if (!progress) return [];
  const said = [];
  const turns = Object.values(progress.counts).reduce((sum, one) => sum + one, 0);
  const took = span(progress.startedAt, progress.completedAt);
  if (turns > 1) said.push(`× ${turns}`);
  else if (took !== null && progress.status !== "skipped") said.push(duration(took));
  if (progress.counts.failed > 0 && turns > 1) said.push(`${progress.counts.failed} failed`);
  if (progress.attempt > 1) said.push(`${progress.attempt} tries`);
  return said;
}

const drawFrame = ({ x, y, width, height }) =>
  shape("rect", { class: "frame", x, y, width, height, rx: 14 });

const drawTitle = ({ x, y }) => shape("text", { class: "frame-title", x: x + 14, y: y + 21 });

function drawEdge(edge) {
  const drawn = shape("g", { class: "edge" },
    shape("path", { d: edge.path, "marker-end": "url(#arrow)" }));
  const { outcome, caseKey, middle } = edge;
  const label = caseKey ?? (["always", "success"].includes(outcome) ? "" : outcome);
  if (label) drawn.append(shape("text", { x: middle.x, y: middle.y + 4 }, shortened(label)));
  return drawn;
}

const shortened = (text, room = ROOM) =>
  (text.length > room ? `${text.slice(0, room - 1)}…` : text);

/** Writes as much of a text as a node's box has room for. */
function fitted(drawn, text) {
  if (drawn.dataset.text === text) return;
  drawn.dataset.text = text;
  drawn.textContent = text;
  for (let room = text.length; room > 1 && drawn.getComputedTextLength() > LINE;) {
    room -= 1;
    drawn.textContent = shortened(text, room);
  }
}

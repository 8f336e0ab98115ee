// The graph as one moves it: nodes with a handle for each way out, edges, frames of loops.

import { NODE } from "/pages/layout.js";
import { plain, sign } from "/pages/words.js";
import { Dragging, endsOf, leaving } from "./dragging.js";
import { edgesOf, entriesOf, nodeOf, nodesOf, noteOf, notesOf, refusal, TRIGGER, wayOf } from "./graph.js";
import { notesOfFlow, NoteView } from "./notes.js";
import { arranged, BELOW, beside, leftBy, planOf, ROW } from "./places.js";

const { computed, h, markRaw, nextTick, ref, watch } = Vue;
const { BaseEdge, EdgeLabelRenderer, getBezierPath, Handle, useVueFlow, VueFlow } = VueFlowCore;

export const icon = (name) =>
  h("svg", { class: "icon", "aria-hidden": "true" }, h("use", { href: `#icon-${name}` }));

const handle = (way, index, count) => h(Handle, {
  key: way.key, id: way.key, type: "source",
  position: BELOW.has(way.outcome) ? "bottom" : "right",
  class: ["way", way.outcome, { unknown: way.isUnknown }],
  title: way.label,
  style: BELOW.has(way.outcome) ? { left: way.outcome === "failure" ? "30%" : "70%" }
    : { top: count > 1 ? `${NODE.height + index * ROW + ROW / 2}px` : `${NODE.height / 2}px` },
});

/** One node: what it is called, its state, and its ways out with a button to go on from each. */
function NodeView({ id, data }) {
  const { node, title, ways, issues, progress, source, used, actions, isTrigger, isReadonly } = data;
  const rows = beside(ways);
  const label = isTrigger ? title : node.label || title || node.id;
  const status = progress?.status;
  const worst = issues.some((one) => one.severity !== "warning") ? "error" : "warning";
  const told = [label, isTrigger ? "trigger" : title, node.disabled && "disabled", status && plain(status), source && source.toLowerCase(),
    issues.length > 0 && `${issues.length} ${issues.length === 1 ? "problem" : "problems"}`];
  return h("div", { class: ["step", { trigger: isTrigger, off: node.disabled }], "data-node": id, "data-status": status }, [
    isTrigger ? null : h(Handle, { type: "target", position: "left", style: { top: `${NODE.height / 2}px` } }),
    h("button", { type: "button", class: "face", "data-face": id, "aria-label": told.filter(Boolean).join(", "), onClick: (event) => actions.press(id, event), onFocus: () => actions.focus(id) }, [
      h("span", { class: "sign" }, icon(status ?? `kind-${isTrigger ? "trigger" : sign(node.kind)}`)),
      h("span", { class: "label", title: label }, label),
      h("span", { class: "kind" }, [isTrigger ? "Trigger" : title, node.disabled ? " · disabled" : "", source ? ` · ${source.toLowerCase()}` : "", remark(progress)].join("")),
      issues.length > 0 ? h("span", { class: ["faults-count", worst], title: issues.map((one) => one.message).join("\n") }, issues.length) : null,
    ]),
    node.notes && !isTrigger ? h("p", { class: "note-of", title: node.notes }, node.notes) : null,
    rows.length > 1 ? h("div", { class: "ways" }, rows.map((way) => h("span", { class: "way-label", key: way.key }, way.label))) : null,
    ...rows.map((way, index) => handle(way, index, rows.length)),
    ...ways.filter((way) => BELOW.has(way.outcome)).map((way) => handle(way)),
    ...(isReadonly ? [] : rows.map((way, index) => (used.has(way.key) ? null : h("button", {
      type: "button", class: "more nodrag", key: `more ${way.key}`,
      "aria-label": `Add a node after ${label}${rows.length > 1 ? `, ${way.label}` : ""}`,
      style: { top: rows.length > 1 ? `${NODE.height + index * ROW}px` : `${NODE.height / 2 - 12}px` },
      onClick: () => actions.more({ after: { from: id, outcome: way.outcome, caseKey: way.caseKey } }),
    }, "+")))),
  ]);
}
NodeView.props = ["id", "data"];

function remark(progress) {
  if (!progress) return "";
  const turns = Object.values(progress.counts ?? {}).reduce((sum, one) => sum + one, 0);
  return turns > 1 ? ` · × ${turns}` : "";
}

const FrameView = ({ data }) => h("div", { class: ["loop", { left: leaving.value === data.loop }], style: { width: `${data.width}px`, height: `${data.height}px` } },
  h("span", { class: "loop-title" }, leaving.value === data.loop ? `Drop to leave the loop ${data.title}` : data.title));
FrameView.props = ["id", "data"];

/** A view that is drawn again for its data alone: the library gives each a place, and whether it is selected, too. */
function ofData(View) {
  const Still = ({ id, data }) => h(View, { id, data });
  return markRaw(Object.assign(Still, { props: ["id", "data"], inheritAttrs: false }));
}

/** Nodes after a loop go below its body. */
function below({ sourceX, sourceY, targetX, targetY }, { right, bottom }) {
  const path = `M${sourceX},${sourceY} C${sourceX + 34},${sourceY} ${sourceX + 6},${bottom} ${sourceX + 44},${bottom}`
    + ` L${right - 26},${bottom} C${right + 26},${bottom} ${targetX - 56},${targetY} ${targetX},${targetY}`;
  return [path, (sourceX + right) / 2, bottom];
}

function EdgeView({ id, data, ...still }) {
  const ends = endsOf(id, still);
  const { frame } = data;
  const isBelow = frame && ends.targetX > frame.right;
  const [path, x, y] = isBelow ? below(ends, frame) : getBezierPath(ends);
  const { label, actions, insert, isReadonly, between } = data;
  return [
    h(BaseEdge, { id, path, interactionWidth: 18, markerEnd: "url(#canvas-arrow)" }),
    h(EdgeLabelRenderer, null, () => h("div", {
      class: ["edge-tools nodrag nopan", { chosen: ends.selected }], "data-id": id,
      style: { transform: `translate(-50%, -50%) translate(${x}px, ${y}px)` },
    }, [
      label ? h("span", { class: "edge-label" }, label) : null,
      isReadonly ? null : h("button", {
        type: "button", class: "into", "data-edge": id, "aria-label": `Add a node ${between}`,
        onClick: () => actions.more({ into: insert }),
      }, "+"),
    ])),
  ];
}
EdgeView.inheritAttrs = false;
EdgeView.props = ["id", "data", "selected", "sourceX", "sourceY", "targetX", "targetY", "sourcePosition", "targetPosition", "source", "target"];

/** The zoom from which texts of nodes are readable. */
const READABLE = 0.5;
/** The width below which a canvas shows all, as its reader zooms by two fingers. */
const NARROW = 600;
const NODE_TYPES = { step: ofData(NodeView), frame: ofData(FrameView), note: ofData(NoteView) };
const EDGE_TYPES = { way: markRaw(EdgeView) };

/** What the library is told once: a change of any of it would draw all nodes again. */
const SETTINGS = {
  nodeTypes: NODE_TYPES, edgeTypes: EDGE_TYPES,
  nodesFocusable: false, edgesFocusable: false, disableKeyboardA11y: true, deleteKeyCode: null,
  multiSelectionKeyCode: ["Control", "Meta"], selectionKeyCode: "Shift", zoomActivationKeyCode: ["Control", "Meta"],
  panOnScroll: true, zoomOnDoubleClick: false, minZoom: 0.1, maxZoom: 2, nodeDragThreshold: 4, connectOnClick: false,
  connectionRadius: 30, elevateNodesOnSelect: false, applyDefault: false,
};

/** Ways whose words an edge has beside it; of the others there is only one. */
const WORDLESS = new Set(["always"]);

function nodesOfFlow(props, plan, actions) {
  const { document, kinds, triggers, issues, progress, data, selection, isReadonly } = props;
  const used = new Map();
  for (const edge of edgesOf(document)) used.set(edge.from, new Set([...(used.get(edge.from) ?? []), wayOf(edge)]));
  const step = (id, node, more) => ({
    id, type: "step", position: { x: plan.boxes.get(id).x, y: plan.boxes.get(id).y }, selected: selection.nodes.has(id),
    zIndex: 2,
    data: { node, issues: issues.get(id) ?? [], progress: progress.get(id), source: data.get(id)?.source, used: used.get(id) ?? new Set(), actions, isReadonly, ...more },
  });
  const trigger = step(TRIGGER, document.trigger, {
    isTrigger: true, title: triggers.get(document.trigger.kind)?.title ?? plain(document.trigger.kind ?? "manual"),
    ways: [{ key: "always", outcome: "always", label: "Next" }],
    used: new Set(entriesOf(document).length > 0 ? ["always"] : []),
  });
  const steps = nodesOf(document).map((node) =>
    step(node.id, node, { title: kinds.get(node.kind)?.title ?? plain(node.kind), ways: plan.ways.get(node.id) }));
  const frames = plan.groups.map(({ id, x, y, width, height }) => ({
    id: `${TRIGGER}/frame/${id}`, type: "frame", position: { x, y }, selectable: false, draggable: false, connectable: false,
    zIndex: 0, data: { loop: id, width, height, title: titleOf(document, id, progress.get(id)) },
  }));
  return [...frames, ...notesOfFlow(props, actions), trigger, ...steps];
}

function titleOf(document, id, progress) {
  const { iterations } = progress ?? {};
  return `${nodeOf(document, id)?.label ?? id}${iterations ? ` · ${iterations.done}/${iterations.total ?? "?"}` : ""}`;
}

function edgesOfFlow({ document, progress, selection, isReadonly }, plan, actions) {
  const name = (id) => (id === TRIGGER ? "the trigger" : nodeOf(document, id)?.label ?? id);
  const frameAround = (from, to) => {
    const group = plan.groups.find((one) => one.id === from && !one.body.has(to));
    return group && { right: group.x + group.width, bottom: group.y + group.height - 10 };
  };
  const drawn = ({ id, from, to, key, label, insert }) => {
    const [before, after] = [from === TRIGGER ? "succeeded" : progress.get(from)?.status, progress.get(to)?.status];
    const isTaken = Boolean(before && after && before !== "skipped" && after !== "skipped");
    return {
      id, type: "way", source: from, sourceHandle: key, target: to, selected: selection.edges.has(id), zIndex: 0,
      class: [key.split(":")[0], { taken: isTaken, dead: before === "skipped" || after === "skipped" }],
      data: { label, insert, frame: frameAround(from, to), actions, isReadonly, between: `between ${name(from)} and ${name(to)}` },
    };
  };
  const seen = new Set();
  const edges = edgesOf(document).filter((edge) => plan.boxes.has(edge.from) && plan.boxes.has(edge.to) && edge.from !== edge.to)
    .filter((edge) => !seen.has(edge.id) && seen.add(edge.id))
    .map((edge) => {
      const key = wayOf(edge);
      const ways = plan.ways.get(edge.from) ?? [];
      const isAlone = beside(ways).length > 1 && !BELOW.has(edge.outcome);
      const label = WORDLESS.has(key) || isAlone ? "" : ways.find((way) => way.key === key)?.label;
      return drawn({ id: edge.id, from: edge.from, to: edge.to, key, label, insert: { edge: edge.id } });
    });
  const entries = entriesOf(document).filter((id) => plan.boxes.has(id)).map((id) => drawn({
    id: `${TRIGGER}/${id}`, from: TRIGGER, to: id, key: "always", insert: { entry: id },
  }));
  return [...entries, ...edges];
}

const isPlain = (value) => value !== null && typeof value === "object" && [Object.prototype, Array.prototype].includes(Object.getPrototypeOf(value));

/** A value that is the one before it as far as both are equal: what has not changed is not drawn again. */
function shared(before, after) {
  if (before instanceof Set && after instanceof Set) return before.size === after.size && [...after].every((one) => before.has(one)) ? before : after;
  if (!isPlain(before) || !isPlain(after) || Array.isArray(before) !== Array.isArray(after)) return Object.is(before, after) ? before : after;
  if (before === after) return before;
  const keys = Object.keys(after);
  const parts = keys.map((key) => shared(before[key], after[key]));
  const isSame = keys.length === Object.keys(before).length && keys.every((key, index) => key in before && parts[index] === before[key]);
  if (isSame) return before;
  return Array.isArray(after) ? parts : Object.fromEntries(keys.map((key, index) => [key, parts[index]]));
}

/** The same for elements of the flow, which are known by their ids. */
function sharedById(before, after) {
  const known = new Map(before?.map((one) => [one.id, one]));
  const found = after.map((one) => shared(known.get(one.id), one));
  return before?.length === found.length && found.every((one, index) => one === before[index]) ? before : found;
}

/** Ids that a selection of the library holds: those of nodes and edges of the document. */
const chosenOf = (elements) => new Set(elements.map((one) => one.id).filter((id) => !id.startsWith(`${TRIGGER}/frame`)));

const PROPS = ["document", "kinds", "triggers", "issues", "progress", "data", "selection", "edited", "isReadonly"];

/** True when a box is within a view of this size. */
function isIn(box, { zoom, x, y }, width, height) {
  const [left, top] = [x + box.x * zoom, y + box.y * zoom];
  return left > 8 && left + box.width * zoom < width && top > 8 && top + box.height * zoom < height;
}

/** Emits `move` (positions), `connect`, `open`, `select`, `more` (a place for a new node), `note` (changes of one), `edit` (a note) and `menu`. */
export const Canvas = {
  props: PROPS,
  emits: ["move", "connect", "open", "select", "more", "focus", "clear", "note", "edit", "menu"],
  setup(props, { emit, expose }) {
    const flow = useVueFlow("automation");
    const root = ref(null);
    const actions = {
      press: (id, event) => {
        if (!event.ctrlKey && !event.metaKey && !event.shiftKey) emit("open", id);
      },
      focus: (id) => emit("focus", id),
      more: (place) => emit("more", place),
      change: (id, changes, key) => emit("note", id, changes, key),
      edit: (id, focused) => emit("edit", id, focused),
      zoom: () => flow.getViewport().zoom,
    };
    const menu = (event) => {
      if (props.isReadonly || event.target.closest("textarea")) return;
      event.preventDefault();
      emit("menu", { x: event.clientX, y: event.clientY, id: event.target.closest(".vue-flow__node:not(.vue-flow__node-frame)")?.dataset.id ?? null });
    };
    const plan = computed(() => planOf(props.document, props.kinds));
    const dragging = new Dragging(flow, root, (places) => leftBy(plan.value, places)?.id ?? null);
    const nodes = computed((before) => sharedById(before, nodesOfFlow(props, plan.value, actions)));
    const edges = computed((before) => sharedById(before, edgesOfFlow(props, plan.value, actions)));
    // The library misses a change that comes while it takes the one before.
    watch(nodes, (all) => nextTick(() => { if (all === nodes.value) flow.setNodes(all); }), { flush: "post" });
    watch(edges, (all) => nextTick(() => { if (all === edges.value) flow.setEdges(all); }), { flush: "post" });
    const ways = computed(() => [...plan.value.ways].map(([id, all]) => `${id} ${all.map((way) => way.key)}`).join("\n"));
    watch(ways, () => nextTick(() => flow.updateNodeInternals()));
    let isFitted = false;
    let before = null;
    flow.onNodesInitialized(() => {
      if (!isFitted) open();
      isFitted = true;
    });
    const report = () => {
      const found = { nodes: chosenOf(flow.getSelectedNodes.value), edges: chosenOf(flow.getSelectedEdges.value) };
      const isSame = (a, b) => a.size === b.size && [...a].every((one) => b.has(one));
      if (!isSame(found.nodes, props.selection.nodes) || !isSame(found.edges, props.selection.edges)) emit("select", found);
    };
    watch([flow.getSelectedNodes, flow.getSelectedEdges], report);
    const moved = ({ nodes: dragged }) => emit("move", new Map(dragged.map(({ id, position }) => [id, { ...position }])));
    function fit(minZoom) {
      return flow.fitView({ padding: 0.12, maxZoom: 1, minZoom });
    }
    /** Show all, or the beginning where all of it would be too small to read; a phone shows all. */
    async function open() {
      await fit();
      const { width, height } = root.value.getBoundingClientRect();
      if (width < NARROW || flow.getViewport().zoom >= READABLE) return;
      const first = [...plan.value.boxes.values()].reduce((one, other) => (other.x < one.x ? other : one));
      await flow.setViewport({ zoom: READABLE, x: 40 - first.x * READABLE, y: height / 2 - (first.y + first.height / 2) * READABLE });
    }
    const joined = ({ source, sourceHandle, target }) => {
      const [outcome, ...rest] = (sourceHandle ?? "always").split(":");
      return { from: source, to: target, outcome, ...(rest.length > 0 ? { caseKey: rest.join(":") } : {}) };
    };
    // Let go over a node, an edge is drawn to it, or it is said why not.
    let begun = null;
    const dropped = (event) => {
      const { clientX: x, clientY: y } = event.changedTouches?.[0] ?? event;
      const target = window.document.elementFromPoint(x, y)?.closest(".vue-flow__node-step")?.dataset.id;
      if (begun && target && target !== begun.source) emit("connect", joined({ ...begun, target }));
      begun = null;
    };
    /** Until the library has drawn what was changed last. */
    const drawn = () => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));
    expose({
      fit: async () => { await drawn(); await fit(); }, zoomIn: () => flow.zoomIn(), zoomOut: () => flow.zoomOut(),
      pointAt: (x, y) => flow.screenToFlowCoordinate({ x, y }),
      isOver: (x, y) => root.value.contains(window.document.elementFromPoint(x, y)),
      middle: () => {
        const { x, y, width, height } = root.value.getBoundingClientRect();
        return flow.screenToFlowCoordinate({ x: x + width / 2, y: y + height / 2 });
      },
      boxOf: (id) => plan.value.boxes.get(id),
      boxes: () => plan.value.boxes,
      /** The innermost loop whose frame has a place, with the nodes of its body; undefined outside of loops. */
      loopAt: ({ x, y }) => {
        const around = plan.value.groups.filter((one) => x > one.x && x < one.x + one.width && y > one.y && y < one.y + one.height);
        const [inner] = around.sort((a, b) => a.width * a.height - b.width * b.height);
        return inner && { id: inner.id, body: [...plan.value.bodies.get(inner.id)] };
      },
      leftBy: (places) => leftBy(plan.value, places),
      arranged: () => arranged(props.document, props.kinds),
      /** Bring a node into the part of the canvas that no panel covers, unless it is there. */
      show: async (id, covered = 0) => {
        const box = plan.value.boxes.get(id);
        const { width, height } = root.value.getBoundingClientRect();
        const room = width - covered;
        if (!box || room <= 0 || isIn(box, flow.getViewport(), room, height)) return;
        const { zoom, x, y } = flow.getViewport();
        if (covered > 0) before ??= { zoom, x, y };
        await flow.setViewport({ zoom, x: room / 2 - (box.x + box.width / 2) * zoom, y: height / 2 - (box.y + box.height / 2) * zoom });
      },
      /** Go back to what was in view before a node was shown. If the node is not there, show all, or as much as can be read. */
      back: async (id) => {
        // The palette takes its place again when a panel closes.
        await drawn();
        const { width, height } = root.value.getBoundingClientRect();
        const box = plan.value.boxes.get(id);
        if (before && box) {
          if (isIn(box, before, width, height)) await flow.setViewport(before);
          else await fit(Math.min(READABLE, before.zoom));
        }
        before = null;
      },
      placeOf: (id) => {
        const { x, y, width, height } = (root.value.querySelector(`[data-face="${CSS.escape(id ?? "")}"]`) ?? root.value).getBoundingClientRect();
        return { x: x + width / 2, y: y + height / 2 };
      },
      /** Bring a note into view, unless it is there. */
      reveal: async (id) => {
        const note = noteOf(props.document, id);
        const { width, height } = root.value.getBoundingClientRect();
        const { zoom, x, y } = flow.getViewport();
        if (!note || isIn({ ...note, ...note.position }, { zoom, x, y }, width, height)) return;
        await flow.setViewport({ zoom, x: width / 2 - (note.position.x + note.width / 2) * zoom, y: height / 2 - (note.position.y + note.height / 2) * zoom });
      },
      focus: (id) => root.value.querySelector(`[data-face="${CSS.escape(id)}"]`)?.focus({ preventScroll: true }),
    });
    const heard = {
      // The library asks about edges that are there, too.
      isValidConnection: (one) => one.id !== undefined || refusal(props.document, joined(one)) === null,
      onNodeDragStop: moved, onSelectionDragStop: moved,
      onConnectStart: ({ nodeId, handleId, handleType }) => { begun = handleType === "source" ? { source: nodeId, sourceHandle: handleId } : null; },
      onConnect: (one) => { begun = null; emit("connect", joined(one)); },
      onConnectEnd: dropped,
      onPaneClick: () => emit("clear"),
      onNodesChange: (changes) => dragging.apply(changes), onEdgesChange: (changes) => flow.applyEdgeChanges(changes),
      // A person who moves the canvas, or zooms, stays there.
      onMoveStart: ({ event }) => { if (event.sourceEvent) before = null; },
    };
    return () => h("div", { ref: root, class: "flow", onContextmenu: menu }, [
      h("svg", { class: "defs", width: 0, height: 0, "aria-hidden": "true" }, h("defs", null, h("marker", {
        id: "canvas-arrow", viewBox: "0 0 8 8", refX: 7, refY: 4, markerWidth: 7, markerHeight: 7, orient: "auto", markerUnits: "userSpaceOnUse",
      }, h("path", { class: "arrow", d: "M0 0L8 4L0 8z" })))),
      h(VueFlow, {
        id: "automation", nodes: nodes.value, edges: edges.value, nodesDraggable: !props.isReadonly, nodesConnectable: !props.isReadonly, ...SETTINGS, ...heard,
      }, {
        default: () => [
          h(VueFlowBackground.Background, { gap: 22, size: 1.4, patternColor: "var(--dots)" }),
          nodesOf(props.document).length + notesOf(props.document).length > 5
            ? h(VueFlowMiniMap.MiniMap, { pannable: true, zoomable: true, ariaLabel: "Minimap", width: 150, height: 96, nodeColor: colour, nodeBorderRadius: 20 }) : null,
        ],
      }),
    ]);
  },
};

const COLORS = { yellow: "waiting", blue: "accent", green: "succeeded", red: "failed", gray: "quiet" };
function colour({ type, data }) {
  if (type === "frame") return "transparent";
  if (type === "note") return `color-mix(in srgb, var(--${COLORS[data.note.color]}) 35%, transparent)`;
  return `var(--${data.progress?.status ?? "strong"})`;
}

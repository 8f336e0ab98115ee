// The page of a dashboard: widgets on a grid, arranged by dragging and by keys.

import { act, overview, uploaded } from "/pages/client.js";
import { History } from "/pages/grid/history.js";
import { button } from "/pages/views/controls.js";
import { followPointer } from "/pages/views/drag.js";
import { facts } from "/pages/views/store.js";
import { Dialogs } from "/pages/notes/dialogs.js";
import { FORMS } from "./forms.js";
import { arranged, below, COLUMNS, frameOf, inOrder } from "./layout.js";
import { WIDGETS } from "./widgets.js";

const { createApp, h, markRaw, nextTick, reactive, ref } = globalThis.Vue;
const ROW = 44;
const POLLING = 5000;

const received = (blocks) => blocks.map(({ id, kind, content, updatedAt, x, y, w, h: height }) => ({ id, kind, content: markRaw(content), updatedAt, x, y, w, h: height }));

function makePage() {
  const { surface } = facts;
  const path = `/v1/surfaces/${surface.id}`;
  const state = reactive({ widgets: received(surface.blocks), said: "", saving: 0 });
  const page = {
    state, path, version: surface.version, workspaceId: surface.workspaceId, surfaceId: surface.id, canWrite: facts.canWrite, canUpload: facts.canUpload,
    files: reactive({ ...facts.files }), databases: reactive({ ...facts.databases }),
    say(text) { state.said = text; },
    find: (id) => state.widgets.find((one) => one.id === id),
    async store(file) {
      const stored = await uploaded(page.workspaceId, file);
      page.files[stored.fileId] = stored.downloadUrl;
      return { fileId: stored.fileId, name: file.name.slice(0, 200) };
    },
    editMedia: (block) => edit(page, block), editLink: (block) => edit(page, block),
  };
  page.history = new History(page.say);
  return page;
}

/** Reads the dashboard again, as others left it. */
async function refresh(page) {
  const surface = await overview(page.path);
  page.version = surface.version;
  page.state.widgets = received(surface.blocks);
}

/** One request after another; a refusal is told, and the page shows what the API has. */
function send(page, work) {
  page.state.saving += 1;
  page.sending = (page.sending ?? Promise.resolve()).then(work).catch(async (error) => {
    page.say(error.status === 409 ? "Someone else changed this widget. Their version is shown." : `Not saved: ${error.message}`);
    await refresh(page).catch(() => {});
    throw error;
  }).finally(() => { page.state.saving -= 1; });
  return page.sending.catch(() => {});
}

async function patch(page, id, body) {
  const widget = page.find(id);
  const answer = await act(`${page.path}/blocks/${id}`, { ...body, expectedUpdatedAt: widget.updatedAt }, "PATCH");
  page.version = answer.version;
  if (page.find(id)) page.find(id).updatedAt = answer.block.updatedAt;
}

/** Gives widgets their frames, on the page at once and then in the API. Gives those that moved before. */
function place(page, frames) {
  const before = new Map();
  for (const [id, frame] of frames) {
    const widget = page.find(id);
    if (!widget || JSON.stringify(frameOf(widget)) === JSON.stringify(frame)) continue;
    before.set(id, frameOf(widget));
    Object.assign(widget, frame);
  }
  if (before.size > 0) send(page, async () => { for (const id of before.keys()) if (page.find(id)) await patch(page, id, frames.get(id)); });
  return before;
}

function move(page, id, frame, label) {
  const frames = arranged(page.state.widgets, id, frame);
  const before = place(page, frames);
  if (before.size === 0) return;
  const after = new Map([...before.keys()].map((one) => [one, frames.get(one)]));
  page.history.push({ label, undo: async () => void place(page, before), redo: async () => void place(page, after) });
}

function change(page, id, content) {
  const widget = page.find(id);
  if (!widget) return;
  widget.content = markRaw(content);
  send(page, () => patch(page, id, { content }));
}

async function edit(page, block) {
  const widget = page.find(block.id);
  const before = widget.content;
  const content = await FORMS[widget.kind]?.(page, before).catch((error) => { page.say(error.message); return null; });
  if (!content) return;
  change(page, widget.id, content);
  page.history.push({ label: "widget settings", undo: async () => change(page, block.id, before), redo: async () => change(page, block.id, content) });
}

function put(page, widget) {
  page.state.widgets.push({ ...widget, content: markRaw(widget.content) });
  const { id, kind, content } = widget;
  return send(page, async () => {
    const { blocks: [block], version } = await act(`${page.path}/blocks`, { blocks: [{ id, kind, content, ...frameOf(widget) }] });
    page.version = version;
    if (page.find(id)) page.find(id).updatedAt = block.updatedAt;
  });
}

function take(page, id) {
  page.state.widgets = page.state.widgets.filter((one) => one.id !== id);
  return send(page, async () => { page.version = (await act(`${page.path}/blocks/${id}`, undefined, "DELETE")).version; });
}

async function add(page, kind) {
  const content = await FORMS[kind](page, {}).catch((error) => { page.say(error.message); return null; });
  if (!content) return;
  const [w, height] = WIDGETS[kind].size;
  const widget = { id: crypto.randomUUID(), kind, content, updatedAt: null, x: 0, y: below(page.state.widgets), w, h: height };
  await put(page, widget);
  page.history.push({ label: `new ${WIDGETS[kind].label.toLowerCase()}`, undo: async () => take(page, widget.id), redo: async () => put(page, widget) });
  await nextTick();
  document.querySelector(`[data-widget="${widget.id}"]`)?.scrollIntoView({ block: "nearest" });
}

function remove(page, widget) {
  const copy = { ...widget };
  take(page, widget.id);
  page.history.push({ label: "removed widget", undo: async () => put(page, copy), redo: async () => take(page, copy.id) });
}

/** Drags a widget or its corner, cell by cell, with a shade where it will be. */
function drag(event, page, widget, isSize, shade) {
  const grid = document.querySelector(".dashboard-grid");
  const step = grid.clientWidth / COLUMNS;
  const from = { x: event.clientX, y: event.clientY + scrollY };
  const start = frameOf(widget);
  let aim = null;
  followPointer(event, {
    element: event.target.closest("[data-widget]"), scroller: grid, ghost: !isSize,
    over(x, y) {
      const [dx, dy] = [Math.round((x - from.x) / step), Math.round((y + scrollY - from.y) / ROW)];
      aim = isSize ? { ...start, w: Math.min(start.w + dx, COLUMNS - start.x), h: start.h + dy } : { ...start, x: start.x + dx, y: start.y + dy };
      shade.value = arranged(page.state.widgets, widget.id, aim).get(widget.id);
    },
    drop() { shade.value = null; if (aim) move(page, widget.id, aim, isSize ? "resize" : "move"); },
    cancel() { shade.value = null; },
  });
}

const KEYS = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };

/** Arrows move a widget by one cell, with Shift its size changes; Delete removes it. */
async function key(event, page, widget) {
  const step = KEYS[event.key];
  if (step) {
    const [dx, dy] = step;
    const frame = frameOf(widget);
    move(page, widget.id, event.shiftKey ? { ...frame, w: Math.min(frame.w + dx, COLUMNS - frame.x), h: frame.h + dy } : { ...frame, x: frame.x + dx, y: frame.y + dy }, event.shiftKey ? "resize" : "move");
    const { x, y, w, h: height } = page.find(widget.id);
    page.say(`Column ${x + 1}, row ${y + 1}, ${w} by ${height}`);
  } else if (event.key === "Delete" || event.key === "Backspace") remove(page, widget);
  else return;
  event.preventDefault();
  await nextTick();
  document.querySelector(`[data-widget="${widget.id}"] .grip`)?.focus();
}

const titleOf = ({ kind, content }) => content.title || WIDGETS[kind]?.label || kind;
const cell = ({ x, y, w, h: height }) => ({ gridColumn: `${x + 1} / span ${w}`, gridRow: `${y + 1} / span ${height}` });

function widgetView(page, widget, shade) {
  const { part } = WIDGETS[widget.kind] ?? WIDGETS.timers;
  const name = titleOf(widget);
  const isBare = widget.kind === "text" && !widget.content.title;
  return h("section", { class: ["widget card", `of-${widget.kind}`], key: widget.id, "data-widget": widget.id, style: cell(widget), "aria-label": name }, [
    h("header", { class: "widget-head" }, [
      page.canWrite ? h("button", {
        type: "button", class: "grip", "aria-label": `Move ${name}`, title: "Drag, or use the arrow keys; with Shift they resize", onKeydown: (event) => key(event, page, widget), onPointerdown: (event) => drag(event, page, widget, false, shade),
      }, "⠿") : null,
      isBare ? null : h("h2", null, name),
      page.canWrite ? h("span", { class: "widget-tools" }, [
        FORMS[widget.kind] ? button("Edit", () => edit(page, widget), { class: "small subtle", "aria-label": `Edit ${name}` }) : null, button("Remove", () => remove(page, widget), { class: "small subtle", "aria-label": `Remove ${name}` }),
      ]) : null,
    ]),
    h("div", { class: "widget-body", tabindex: 0, role: "group", "aria-label": name }, h(part, { page, block: widget })),
    page.canWrite ? h("span", { class: "corner", "aria-hidden": "true", onPointerdown: (event) => drag(event, page, widget, true, shade) }) : null,
  ]);
}

const Board = {
  props: ["page"],
  setup(props) {
    const shade = ref(null);
    return () => {
      const { page } = props;
      const { history } = page;
      return [
        page.canWrite ? h("div", { class: "dashboard-bar" }, [
          h("details", { class: "confirm" }, [h("summary", { class: "button primary" }, "Add widget"), h("div", { class: "question" }, Object.keys(FORMS).map((kind) => h("button", {
            type: "button", class: "menu-item", key: kind, "data-add": kind, onClick: (event) => { event.target.closest("details").open = false; add(page, kind); },
          }, WIDGETS[kind].label)))]),
          button("Undo", () => history.undo(), { class: "subtle", disabled: !history.state.canUndo }), button("Redo", () => history.redo(), { class: "subtle", disabled: !history.state.canRedo }),
          h("span", { class: "quiet", role: "status" }, page.state.said || (page.state.saving > 0 ? "Saving…" : "")),
        ]) : null,
        page.state.widgets.length === 0 ? h("div", { class: "empty" }, [h("h2", null, "This dashboard is empty"), page.canWrite ? h("p", null, "Add a chart, a number, a list or the latest runs.") : null]) : null,
        h("div", { class: "dashboard-grid" }, [
          ...inOrder(page.state.widgets).map((widget) => widgetView(page, widget, shade)),
          shade.value ? h("div", { class: "widget-shade", key: "shade", style: cell(shade.value) }) : null,
        ]),
        h(Dialogs),
      ];
    };
  },
};

async function follow(page) {
  for (;;) {
    await new Promise((done) => { setTimeout(done, POLLING); });
    if (document.hidden || page.state.saving > 0) continue;
    const version = await overview(`/surfaces/${page.surfaceId}/version`).catch(() => page.version);
    if (version !== page.version && page.state.saving === 0) await refresh(page).catch(() => {});
  }
}

const page = makePage();
const body = document.getElementById("dashboard");
createApp({ render: () => h(Board, { page }) }).mount(body);
follow(page);
body.dataset.ready = "true";

// What the page of the editor shows: the canvas with its palette, the panel beside it, dialogs, or the JSON.

import { banners, button, head, issuesOf, nameOf, tools, worded } from "./bars.js";
import { Canvas } from "./canvas.js";
import { ConnectDialog, HelpDialog, PublishDialog, RunDialog } from "./dialogs.js";
import * as graph from "./graph.js";
import { JsonView } from "./json-view.js";
import { ContextMenu } from "./menu.js";
import { menuOf } from "./menus.js";
import { names } from "./names.js";
import { NodePanel } from "./node-panel.js";
import { NOTE_KIND } from "./notes.js";
import { Palette } from "./palette.js";
import { TestDialog } from "./test-dialog.js";
import { TriggerPanel } from "./trigger-panel.js";

const { h } = Vue;
const { TRIGGER } = graph;
const { page } = window.document.getElementById("editor").dataset;

/** Earlier nodes whose outputs a node can read, the nearest last, and the trigger. */
function outputsOf(editor, id) {
  const document = editor.document.value;
  const payload = editor.run.payload ?? document.graph.testPayloads?.[0]?.payload ?? null;
  const earlier = graph.nodesOf(document).filter((node) => node.id !== id && graph.leads(document, node.id, id));
  const stated = (kind) => kind?.output?.keys.map(({ name }) => name) ?? [];
  return [
    { id: TRIGGER, label: "Trigger", output: payload, keys: editor.triggers.get(document.trigger.kind)?.keys ?? [] },
    ...earlier.map((node) => ({ id: node.id, kind: node.kind, label: node.label ?? node.id, output: editor.run.data.get(node.id)?.output ?? null, keys: stated(editor.kinds.get(node.kind)) })),
  ];
}

/** The key that differs, with dots between keys: typing into one field is one step to undo. */
function changedKey(before, after) {
  const isObject = (value) => value !== null && typeof value === "object" && !Array.isArray(value);
  const keys = new Set([...Object.keys(before), ...Object.keys(after)]);
  const key = [...keys].find((one) => JSON.stringify(before[one]) !== JSON.stringify(after[one]));
  if (key === undefined || !isObject(before[key]) || !isObject(after[key])) return key ?? "";
  return `${key}.${changedKey(before[key], after[key])}`;
}

function panel(editor, issues) {
  const { opened } = editor.at;
  if (opened === null) return null;
  const shared = { catalog: editor.catalog, names, issues: issues.get(opened) ?? [], readonly: false, onClose: () => editor.close() };
  const inner = opened === TRIGGER
    ? h(TriggerPanel, { ...shared, key: opened, trigger: editor.document.value.trigger, automation: editor.shown.automation, outputs: outputsOf(editor, opened),
      onChange: (trigger) => editor.edit(graph.changeTrigger(editor.document.value, trigger), `trigger ${changedKey(editor.document.value.trigger, trigger)}`) })
    : h(NodePanel, { ...shared, key: opened, node: graph.nodeOf(editor.document.value, opened), kind: editor.kinds.get(graph.nodeOf(editor.document.value, opened).kind),
      data: editor.run.data.get(opened) ?? null, outputs: outputsOf(editor, opened), ids: graph.nodesOf(editor.document.value).map(({ id }) => id),
      onChange: (node) => {
        const next = graph.changeNode(editor.document.value, opened, node);
        const index = graph.nodesOf(editor.document.value).findIndex((one) => one.id === opened);
        editor.edit(next, `node ${opened} ${changedKey(graph.nodeOf(editor.document.value, opened), node)}`);
        const { id } = graph.nodesOf(next)[index];
        if (id !== opened) editor.open(id);
      } });
  const ways = editor.waysOn(opened);
  const onKeydown = (event) => {
    if (event.key !== "Enter" || !(event.ctrlKey || event.metaKey) || ways.length === 0) return;
    event.preventDefault();
    editor.ask(ways[0].place);
  };
  return h("section", { class: "panel-of", "aria-label": opened === TRIGGER ? "Trigger" : "Node", onKeydown }, [inner, ways.length === 0 ? null : h("footer", { class: "panel-next" }, [
    ways.length > 1 ? h("span", { class: "quiet" }, "Add next node") : null,
    ...ways.map((way, index) => button(ways.length > 1 ? way.label : "Add next node", () => editor.ask(way.place), {
      class: "small", key: way.key, "aria-label": ways.length > 1 ? `Add next node: ${way.label}` : undefined, title: index === 0 ? "Add next node (Ctrl+Enter)" : undefined })),
  ])]);
}

function dialog(editor) {
  const { at } = editor;
  const close = () => { at.dialog = null; };
  const errors = editor.shown.issues.filter((one) => one.severity !== "warning");
  switch (at.dialog?.name) {
    case "test": return h(TestDialog, { document: editor.document.value, names, keys: editor.triggers.get(editor.document.value.trigger.kind)?.keys ?? [], data: editor.run.data, payload: editor.run.payload, earlier: editor.testing.earlier,
      stopAt: at.dialog.stopAt, onTest: (wanted) => editor.test(wanted), onExample: (payload) => editor.keep(payload), onClose: close });
    case "publish": return h(PublishDialog, { errors: errors.map((one) => ({ ...one, text: worded(editor, one) })), changes: `${page}/edit/changes`, problem: at.problem, isBusy: at.isBusy,
      onPublish: (note) => editor.publish(note), onLead: (one) => editor.lead(one), onClose: close });
    case "connect": return h(ConnectDialog, { document: editor.document.value, kinds: editor.kinds, from: at.dialog.from,
      onConnect: (edge) => editor.connect(edge), onRemove: (id) => editor.edit(editor.disconnect([id])), onClose: close });
    case "run": return h(RunDialog, { name: nameOf(editor, at.dialog.from), isAlone: at.dialog.isAlone, hasData: editor.run.dataRunId !== null,
      onRun: () => { const { from, isAlone } = at.dialog; close(); editor.from(from, isAlone); }, onClose: close });
    case "help": return h(HelpDialog, { onClose: close });
    default: return null;
  }
}

function drawn(editor, issues) {
  const { at } = editor;
  if (at.isJson && editor.drawn) return editor.drawn;
  editor.drawn = h(Canvas, { ref: editor.canvas, document: editor.document.value, kinds: editor.kinds, triggers: editor.triggers, issues,
    progress: editor.run.run ? editor.run.nodes : new Map(), data: editor.run.run?.id === editor.run.dataRunId ? editor.run.data : new Map(), selection: editor.selection.value, edited: at.edited, isReadonly: false,
    onMove: (places) => editor.move(places), onNote: (id, changes, key) => editor.edit(graph.changeNote(editor.document.value, id, changes), key),
    onEdit: (id, focused) => editor.wrote(id, focused), onMenu: (place) => editor.menu(place), onConnect: (edge) => editor.connect(edge),
    onOpen: (id) => editor.open(id), onSelect: (found) => { editor.selection.value = found; },
    onMore: (place) => editor.ask(place), onFocus: (id) => { at.focused = id; },
    onClear: () => { at.place = null; if (at.opened !== null) editor.close(); } });
  return editor.drawn;
}

/** The parts of the page as the editor is now. */
export function workbench(editor) {
  const { at } = editor;
  const issues = issuesOf(editor);
  const isEmpty = graph.nodesOf(editor.document.value).length === 0;
  const placeName = at.place?.after ? `After ${at.place.after.from === TRIGGER ? "the trigger" : graph.nodeOf(editor.document.value, at.place.after.from)?.label ?? at.place.after.from}`
    : at.place?.into ? "Into the connection" : "";
  return [
    head(editor),
    banners(editor),
    h("div", { class: "workbench" }, [
      at.isJson ? h(JsonView, { editor }) : null,
      h(Palette, { ref: editor.palette, inert: at.isJson, kinds: [...editor.catalog.kinds, NOTE_KIND], place: placeName, isOpen: at.isPaletteOpen,
        onPick: (kind) => editor.add(kind, editor.nextPlace), onDrop: (kind, x, y) => editor.drop(kind, x, y),
        onClose: () => { Object.assign(at, { isPaletteOpen: false, place: null }); editor.canvas.value.focus(at.focused ?? TRIGGER); } }),
      h("div", { class: "stage", inert: at.isJson }, [
        drawn(editor, issues),
        isEmpty ? h("p", { class: "begin" }, "Add the first node from the palette, or press N.") : null,
        tools(editor),
        h("div", { class: "zoom", role: "group", "aria-label": "View" }, [
          button("Add node", () => editor.ask(null), { class: "small primary", "aria-keyshortcuts": "n" }),
          button("Add note", () => editor.note(), { class: "small", "aria-keyshortcuts": "s" }),
          button("−", () => editor.canvas.value.zoomOut(), { class: "small", "aria-label": "Zoom out" }),
          button("Fit", () => editor.canvas.value.fit(), { class: "small" }),
          button("+", () => editor.canvas.value.zoomIn(), { class: "small", "aria-label": "Zoom in" }),
          button("Tidy up", () => editor.tidy(), { class: "small", title: "Tidy up (L)", "aria-keyshortcuts": "l" }),
          button("?", () => { at.dialog = { name: "help" }; }, { class: "small", "aria-label": "Keyboard shortcuts" }),
        ]),
        panel(editor, issues),
      ]),
    ]),
    dialog(editor),
    at.menu ? h(ContextMenu, { key: `${at.menu.x} ${at.menu.y} ${at.menu.id}`, x: at.menu.x, y: at.menu.y, ...menuOf(editor, at.menu),
      onClose: (isBack) => { const { id } = at.menu; at.menu = null; if (isBack) editor.canvas.value.focus(id ?? at.focused ?? TRIGGER); } }) : null,
  ];
}

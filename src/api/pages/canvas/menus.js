// What the menus of the canvas offer: for a node, for a note, for several of them, or for the canvas.

import { isNote, nodeOf, nodesOf, noteOf, TRIGGER } from "./graph.js";
import { labelOf } from "./notes.js";

/** The items of a menu and its name, as `ContextMenu` takes them. */
export function menuOf(editor, { id, x, y }) {
  if (id === TRIGGER) return { label: "Trigger", items: triggerItems(editor) };
  const picked = editor.picked.length > 1 && editor.picked.includes(id);
  if (picked) return { label: "Selection", items: selectionItems(editor) };
  if (isNote(id) && noteOf(editor.document.value, id)) return { label: `Note: ${labelOf(noteOf(editor.document.value, id)) || "empty"}`, items: noteItems(editor, id) };
  const node = id && nodeOf(editor.document.value, id);
  if (node) return { label: node.label ?? node.id, items: nodeItems(editor, node) };
  return { label: "Canvas", items: canvasItems(editor, { x, y }) };
}

const addNote = (editor, place) => ["Add note", () => editor.note(place), "S"];

const triggerItems = (editor) => [
  ["Open", () => editor.open(TRIGGER), "Enter"],
  ["Connections…", () => { editor.at.dialog = { name: "connect", from: TRIGGER }; }, "C"],
  ["Add node after", () => editor.ask({ after: { from: TRIGGER } }), "+"],
  addNote(editor, { after: { from: TRIGGER } }),
];

const changes = (editor) => [
  ["Copy", () => editor.copy(), "Ctrl+C"], ["Duplicate", () => editor.duplicate(), "Ctrl+D"],
];

const disable = (editor) => {
  const isOff = editor.chosen.every((id) => nodeOf(editor.document.value, id)?.disabled);
  return [isOff ? "Enable" : "Disable", () => editor.disable(), "D"];
};

const selectionItems = (editor) => [
  ...changes(editor), ...(editor.chosen.length > 0 ? [disable(editor)] : []), null, ["Delete", () => editor.remove(), "Delete"],
];

const nodeItems = (editor, { id }) => [
  ["Open", () => editor.open(id), "Enter"],
  ["Connections…", () => { editor.at.dialog = { name: "connect", from: id }; }, "C"],
  ...(editor.waysOn(id).length > 0 ? [["Add node after", () => editor.ask(editor.waysOn(id)[0].place), "+"]] : []),
  addNote(editor, { after: { from: id } }),
  null,
  ["Test up to here", () => { editor.at.dialog = { name: "test", stopAt: id }; }],
  ["Run this node", () => { editor.at.dialog = { name: "run", from: id, isAlone: true }; }],
  null, ...changes(editor), disable(editor), null, ["Delete", () => editor.remove(), "Delete"],
];

const noteItems = (editor, id) => [
  ["Edit", () => editor.write(id), "Enter"], ...changes(editor), null, ["Delete", () => editor.remove(), "Delete"],
];

const canvasItems = (editor, at) => [
  ["Add node", () => editor.ask({ at: editor.canvas.value.pointAt(at.x, at.y) }), "N"],
  ["Add note", () => editor.note({ at: editor.canvas.value.pointAt(at.x, at.y) }), "S"],
  ["Paste", () => editor.pasteCopied(), "Ctrl+V"],
  ...(nodesOf(editor.document.value).length > 0 ? [["Select all", () => editor.selectAll(), "Ctrl+A"], ["Tidy up", () => editor.tidy(), "L"]] : []),
  null,
  ["Fit to screen", () => editor.canvas.value.fit(), "F"], ["Keyboard shortcuts", () => { editor.at.dialog = { name: "help" }; }, "?"],
];

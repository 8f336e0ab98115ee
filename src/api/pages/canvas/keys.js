// What keys, the clipboard and leaving the page do in the editor.

import * as graph from "./graph.js";

const { TRIGGER } = graph;
const ARROWS = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };
const writes = (element) => element?.closest?.("input, textarea, select, [contenteditable], .ace_editor, dialog");

/** The nearest box in the direction of an arrow key. */
export function towards(boxes, id, key) {
  const own = boxes.get(id);
  const [x, y] = ARROWS[key];
  const ahead = (box) => x * (box.x - own.x) + y * (box.y - own.y);
  const far = (box) => Math.hypot(box.x - own.x, box.y - own.y) + 2 * Math.abs(y * (box.x - own.x) + x * (box.y - own.y));
  return [...boxes].filter(([other, box]) => other !== id && ahead(box) > 0).sort(([, a], [, b]) => far(a) - far(b))[0]?.[0];
}

/** The act of a key; undefined for one that is not ours. */
function command(editor, { key, ctrlKey, metaKey, shiftKey, target }) {
  const name = key.length === 1 ? key.toLowerCase() : key;
  // Beside the JSON only what concerns the draft as a whole has keys.
  if (editor.at.isJson && !((ctrlKey || metaKey) && "zysf".includes(name))) return undefined;
  if (ctrlKey || metaKey) {
    if (ARROWS[key] && editor.chosenNotes.length === 1) {
      const [x, y] = ARROWS[key];
      return () => editor.resize(16 * x, 16 * y);
    }
    return { z: () => (shiftKey ? editor.redo() : editor.undo()), y: () => editor.redo(), d: () => editor.duplicate(),
      a: () => editor.selectAll(), s: () => editor.flush(), f: editor.json?.find }[name];
  }
  if (ARROWS[key]) {
    const [x, y] = ARROWS[key];
    return shiftKey ? () => editor.nudge(16 * x, 16 * y) : () => editor.step(key);
  }
  const { focused } = editor.at;
  const onCanvas = target.closest?.(".flow") || target === window.document.body || target.id === "content";
  const isNode = focused && !graph.isNote(focused);
  const addAfter = () => editor.ask(focused === TRIGGER ? { after: { from: TRIGGER } } : editor.nextPlace);
  if (onCanvas && (key === "ContextMenu" || (key === "F10" && shiftKey))) return () => editor.menu({ ...editor.canvas.value.placeOf(focused), id: focused });
  return {
    s: () => editor.note(),
    "/": () => editor.ask(null), n: () => editor.ask(null), f: () => editor.canvas.value.fit(), l: () => editor.tidy(),
    "?": () => { editor.at.dialog = { name: "help" }; }, d: () => editor.disable(),
    ...(onCanvas ? { Delete: () => editor.remove(), Backspace: () => editor.remove() } : {}),
    ...(isNode ? { c: () => { editor.at.dialog = { name: "connect", from: focused }; }, a: addAfter, "+": addAfter } : {}),
    Escape: () => { if (editor.at.opened !== null) editor.close(); else editor.deselect(); },
  }[name];
}

export function listen(editor) {
  // Before the console hears the key: `/` is its search elsewhere.
  window.addEventListener("keydown", (event) => {
    if (writes(event.target) || window.document.querySelector("dialog[open], .canvas-menu") || event.altKey) return;
    if (editor.at.opened !== null && event.target.closest?.(".panel-of") && event.key !== "Escape") return;
    const act = command(editor, event);
    if (!act) return;
    event.preventDefault();
    event.stopImmediatePropagation();
    act();
  }, true);
  const hasText = (event) => writes(event.target) || !getSelection().isCollapsed;
  window.document.addEventListener("copy", (event) => copied(editor, event, hasText(event)));
  window.document.addEventListener("cut", (event) => {
    if (copied(editor, event, hasText(event))) editor.remove();
  });
  window.document.addEventListener("paste", (event) => {
    const text = event.clipboardData.getData("text/plain");
    if (writes(event.target) || editor.at.isJson || !text) return;
    event.preventDefault();
    editor.paste(text);
  });
  window.addEventListener("beforeunload", (event) => {
    if (editor.draft.isSaved && !editor.at.fault) return;
    const isKept = editor.draft.keep();
    if (!isKept || editor.at.fault || !editor.shown.isSignedOut) event.preventDefault();
  });
  for (const link of window.document.querySelectorAll("#editor-tabs a")) {
    link.addEventListener("click", (event) => {
      if (event.ctrlKey || event.metaKey || event.shiftKey) return;
      event.preventDefault();
      editor.turn(new URL(link.href).searchParams.has("tab"));
    });
  }
}

function copied(editor, event, isText) {
  if (isText || editor.at.isJson || editor.picked.length === 0) return false;
  event.clipboardData.setData("text/plain", graph.copy(editor.document.value, editor.picked));
  event.preventDefault();
  return true;
}

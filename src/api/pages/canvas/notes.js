// Notes on the canvas: texts that are moved, resized and typed in place. A run does nothing about them.

import { keyOfNote, NOTE_COLORS, notesOf } from "./graph.js";

const { h, nextTick, ref, watch } = Vue;
const LONGEST = 4000;
const LABEL = 60;

/** What the palette offers beside the kinds of nodes. */
export const NOTE_KIND = { kind: "note", title: "Note", group: "Canvas", description: "A text on the canvas, which isn't executed." };

/** The first line of a note, for names and lists. */
export const labelOf = ({ text }) => {
  const [first] = text.trim().split("\n");
  return first.length <= LABEL ? first : `${first.slice(0, LABEL - 1)}…`;
};

/** The corner by which a note is resized; the size is kept once the pointer is up. */
function grip(props, size) {
  const { note, actions } = props.data;
  const grab = (event) => {
    if (event.button !== 0) return;
    event.stopPropagation();
    const from = { x: event.clientX, y: event.clientY };
    const zoom = actions.zoom();
    const move = ({ clientX, clientY }) => {
      size.value = { width: Math.max(60, note.width + (clientX - from.x) / zoom), height: Math.max(60, note.height + (clientY - from.y) / zoom) };
    };
    const end = ({ type }) => {
      for (const [name, heard] of [["pointermove", move], ["pointerup", end], ["pointercancel", end]]) window.removeEventListener(name, heard);
      if (type === "pointerup" && size.value) actions.change(props.id, size.value);
      size.value = null;
    };
    for (const [name, heard] of [["pointermove", move], ["pointerup", end], ["pointercancel", end]]) window.addEventListener(name, heard);
  };
  return h("span", { class: "grip nodrag", "aria-hidden": "true", title: "Resize (Ctrl + arrow keys)", onPointerdown: grab, onMousedown: (event) => event.stopPropagation() });
}

function written(props, area) {
  const { note, actions } = props.data;
  return h("textarea", {
    ref: area, class: "nodrag nowheel nopan", "aria-label": "Text of the note", maxlength: LONGEST, value: note.text,
    onInput: (event) => actions.change(props.id, { text: event.target.value }, `note ${note.id}`),
    onBlur: () => actions.edit(null),
    onKeydown: (event) => {
      if (event.key !== "Escape" && !(event.key === "Enter" && (event.ctrlKey || event.metaKey))) return;
      event.preventDefault();
      event.stopPropagation();
      actions.edit(null, props.id);
    },
  });
}

/** One note: a button with its text, or a field while it is typed. */
export const NoteView = {
  props: ["id", "data"],
  setup(props) {
    const size = ref(null);
    const area = ref(null);
    // The canvas hides what is new until it is measured, and nothing hidden takes the focus.
    const take = (left) => {
      if (!props.data.isEdited || window.document.activeElement === area.value) return;
      area.value?.focus({ preventScroll: true });
      if (left > 0) requestAnimationFrame(() => take(left - 1));
    };
    watch(() => props.data.isEdited, () => nextTick(() => take(60)), { immediate: true, flush: "post" });
    return () => {
      const { note, isEdited, isReadonly, actions } = props.data;
      const { width, height } = size.value ?? note;
      const edit = () => { if (!isReadonly) actions.edit(props.id); };
      return h("div", { class: "canvas-note", "data-note": note.id, "data-color": note.color, style: { width: `${width}px`, height: `${height}px` } }, [
        isEdited && !isReadonly ? written(props, area) : h("button", {
          type: "button", class: "note-face", "data-face": props.id, "aria-label": `Note: ${labelOf(note) || "empty"}`,
          // Enter and the space bar click, too, and such a click has no place.
          onClick: (event) => { if (event.detail === 0) edit(); }, onDblclick: edit, onFocus: () => actions.focus(props.id),
        }, h("span", { class: ["note-text", { empty: !note.text }] }, note.text || "Empty note")),
        isReadonly ? null : grip(props, size),
      ]);
    };
  },
};

/** The notes of a document as the canvas draws them, below nodes and edges. */
export const notesOfFlow = ({ document, selection, edited, isReadonly }, actions) => notesOf(document).map((note) => {
  const id = keyOfNote(note);
  return { id, type: "note", position: note.position, selected: selection.nodes.has(id), zIndex: -1, connectable: false,
    data: { note, actions, isReadonly, isEdited: edited === id } };
});

/** Buttons for the color of a note. */
export const swatches = (color, choose) => h("span", { class: "swatches", role: "group", "aria-label": "Color" }, NOTE_COLORS.map((name) =>
  h("button", { type: "button", key: name, class: "swatch", "data-color": name, "aria-pressed": String(name === color), "aria-label": name[0].toUpperCase() + name.slice(1), title: name[0].toUpperCase() + name.slice(1), onClick: () => choose(name) })));

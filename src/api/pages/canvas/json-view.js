// The draft as JSON: what is typed becomes the document, and what is wrong stands at its line.

import { worded } from "./bars.js";
import { FindBar } from "/pages/find-bar.js";
import { button } from "./dialogs.js";
import { makeEditor } from "./expression.js";
import { proposals, pathAt } from "./json-completion.js";
import { partsOf, placeOf, read, rowOf, textOf } from "./json-text.js";
import { merged } from "./together.js";

const { h, nextTick, onBeforeUnmount, onMounted, ref, shallowRef, watch } = Vue;

const MOST = 100;
/** Commands of Ace whose files are not here. */
const ABSENT = ["find", "replace", "gotoline", "openCommandPalette", "showSettingsMenu"];
const isSame = (a, b) => JSON.stringify(a) === JSON.stringify(b);

/** The text stays when one looks at the canvas: its session of Ace, and the document that it was made of. */
let session = null;
let base = null;
/** The marks of what is found in the text. */
let marked = [];

/** The part in which two texts differ: where it begins, and where it ends in each. */
function difference(a, b) {
  const most = Math.min(a.length, b.length);
  let start = 0;
  while (start < most && a[start] === b[start]) start += 1;
  let same = 0;
  while (same < most - start && a[a.length - 1 - same] === b[b.length - 1 - same]) same += 1;
  return { start, end: a.length - same, other: b.length - same };
}

function replace(from, to, text) {
  const [start, end] = [from, to].map((offset) => session.doc.indexToPosition(offset));
  session.replace({ start, end }, text);
}

function moveTo(ace, offset) {
  ace.clearSelection();
  ace.moveCursorToPosition(session.doc.indexToPosition(offset));
  ace.renderer.scrollCursorIntoView();
}

/** Tab indents; after Escape it leads out of the text, as in any form. */
function leadOut(ace) {
  let isOut = null;
  const bind = (leads) => {
    if (leads === isOut) return;
    isOut = leads;
    ace.commands.bindKey("Tab", leads ? null : "indent");
    ace.commands.bindKey("Shift-Tab", leads ? null : "outdent");
  };
  bind(false);
  ace.commands.addCommand({ name: "leave", bindKey: "Esc", exec: () => bind(true) });
  ace.on("blur", () => bind(false));
  ace.on("change", () => bind(false));
}

function sessionOf(text) {
  const made = globalThis.ace.createEditSession(text);
  // A worker would be made from a text, as in any field.
  made.setOptions({ tabSize: 2, useSoftTabs: true, useWorker: false, wrap: true });
  made.setMode("ace/mode/json");
  return made;
}

/** The places of a text in the JSON, which are marked until another one is looked for. */
function placesOf(text) {
  for (const marker of marked) session.removeMarker(marker);
  const { Search } = globalThis.ace.require("ace/search");
  const found = text ? new Search().set({ needle: text, caseSensitive: false }).findAll(session) : [];
  marked = found.map((range) => session.addMarker(range, "found-place", "text"));
  return found;
}

/** The text is forgotten, and made of the document anew. */
export function forget() {
  session = null;
  base = null;
}

function completer(catalog) {
  const found = () => proposals(session.getValue(), session.doc.positionToIndex(session.selection.getCursor()), catalog);
  const own = {
    identifierRegexps: [/[^\s"{}[\],:]/], triggerCharacters: ['"'],
    getCompletions: (_ace, _session, _at, _prefix, give) => give(null, found().map(({ name, meta, says }, index) =>
      ({ value: name, meta, docText: says, score: 1000 - index, completer: own }))),
    // More may be typed since the list was made.
    insertMatch(ace, { value }) {
      const one = found().find(({ name }) => name === value);
      if (!one) return;
      replace(one.from, one.to, one.text);
      moveTo(ace, one.cursor);
      // A key whose values are known leads to them.
      if (found().length > 0 && one.text.endsWith('""')) setTimeout(() => ace.execCommand("startAutocomplete"));
    },
  };
  return own;
}

export const JsonView = {
  props: ["editor"],
  setup({ editor }) {
    const place = ref(null);
    const finder = ref(null);
    const isFinding = ref(false);
    const lines = shallowRef([]);
    const current = () => editor.document.value;
    let ace;
    let isOwn = false;
    let isStep = false;

    /** Put the faults of the text and the problems of the draft at their lines. */
    function mark({ root, fault } = partsOf(session.getValue())) {
      const own = fault ?? editor.at.fault;
      const found = editor.shown.issues.slice(0, MOST).map((issue) => ({ row: rowOf(root, issue), text: worded(editor, issue), type: issue.severity === "warning" ? "warning" : "error" }));
      if (own) found.unshift({ row: own.row, column: own.column, text: own.message, type: "error", isOwn: true });
      session.setAnnotations(found);
      lines.value = found.sort((a, b) => Boolean(b.isOwn) - Boolean(a.isOwn) || a.row - b.row);
    }

    /** Show another document: the cursor stays at its value, and what is folded too, unless it `follows` the change. */
    function show(document, follows = false) {
      const [before, text, at] = [session.getValue(), textOf(document), ace.getCursorPosition()];
      const { start, end, other } = difference(before, text);
      const offset = session.doc.positionToIndex(at);
      const path = offset > start && offset < end ? pathAt(before, offset) : null;
      base = document;
      Object.assign(editor.at, { fault: null, canRedoText: false });
      isOwn = true;
      replace(start, end, text.slice(start, other));
      isOwn = false;
      session.getUndoManager().reset();
      if (follows) moveTo(ace, start);
      else if (path) ace.moveCursorTo(placeOf(partsOf(text).root, path).row, at.column);
      mark();
    }

    /** Take what is typed, if it is a document. Another document that came meanwhile is kept in it. */
    function take() {
      finder.value?.renew();
      if (isOwn) return;
      const text = session.getValue();
      const { root, document, fault } = read(text, editor.catalog);
      Object.assign(editor.at, { fault: fault ?? null, canRedoText: false });
      mark({ root, fault });
      if (fault) return;
      const [was, now] = [base, current()];
      if (isSame(document, was)) {
        if (was !== now) nextTick(() => show(current()));
        return;
      }
      // What differs from the text is shown once the key is done.
      base = document;
      const path = pathAt(text, session.doc.positionToIndex(ace.getCursorPosition()));
      editor.edit(was === now ? document : merged(was, document, now).document, `json ${path}`);
    }

    function lead(row) {
      session.unfold({ row, column: 0 });
      ace.gotoLine(row + 1, 0);
      ace.focus();
    }

    function find() {
      isFinding.value = true;
      nextTick(() => finder.value.focus());
    }

    function leaveFinder() {
      isFinding.value = false;
      placesOf("");
      ace.focus();
    }

    /** The place at which the search begins: the first one from the cursor on. */
    function firstOf(places) {
      const { row, column } = ace.selection.getRange().start;
      return Math.max(0, places.findIndex(({ start }) => start.row > row || (start.row === row && start.column >= column)));
    }

    function select(found) {
      session.unfold(found.start);
      ace.selection.setRange(found);
      ace.renderer.scrollSelectionIntoView(found.start, found.end, 0.5);
    }

    const selected = () => {
      const text = ace.getSelectedText();
      return text.includes("\n") ? "" : text;
    };

    /** A step in a text that is no document is one of the text alone. */
    function step(name) {
      const manager = session.getUndoManager();
      if (name === "undo" ? !editor.at.fault || !manager.canUndo() : !manager.canRedo()) {
        isStep = name === "undo" ? editor.steps.canUndo : editor.steps.canRedo;
        return false;
      }
      ace[name]();
      editor.at.canRedoText = manager.canRedo();
      return true;
    }

    onMounted(() => {
      ace = makeEditor(place.value, {
        text: "", mode: "ace/mode/json", label: "JSON of the draft", describedBy: "json-hint",
        maxLines: undefined, highlightActiveLine: true,
      });
      session ??= sessionOf(textOf(current()));
      ace.setSession(session);
      ABSENT.forEach((name) => ace.commands.removeCommand(name));
      ace.commands.addCommands([
        { name: "undo", bindKey: { win: "Ctrl-Z", mac: "Command-Z" }, exec: () => editor.undo() },
        { name: "redo", bindKey: { win: "Ctrl-Shift-Z|Ctrl-Y", mac: "Command-Shift-Z|Command-Y" }, exec: () => editor.redo() },
        { name: "find", bindKey: { win: "Ctrl-F", mac: "Command-F" }, exec: find },
        { name: "save", bindKey: { win: "Ctrl-S", mac: "Command-S" }, exec: () => editor.flush() },
      ]);
      leadOut(ace);
      ace.completers = [completer(editor.catalog)];
      ace.on("change", take);
      base ??= current();
      if (base !== current() && !editor.at.fault) show(current());
      editor.json = { step, find, lead: (issue) => lead(rowOf(partsOf(session.getValue()).root, issue)) };
      if (editor.begunAt) editor.json.lead({ nodeId: editor.begunAt, path: "" });
      mark();
      ace.focus();
    });
    onBeforeUnmount(() => {
      editor.json = null;
      session.clearAnnotations();
      ace.off("change", take);
      placesOf("");
      ace.setSession(globalThis.ace.createEditSession(""));
      ace.destroy();
    });
    watch(() => editor.document.value, (now) => {
      if (now !== base && !editor.at.fault) show(now, isStep);
      isStep = false;
    });
    watch(() => editor.shown.issues, () => mark());
    return () => h("section", { class: "json-view", "aria-label": "JSON" }, [
      isFinding.value ? h(FindBar, { ref: finder, label: "Find in JSON", begun: selected(), search: placesOf, first: firstOf, show: select, onClose: leaveFinder }) : null,
      h("div", { class: "code-field json-text", ref: place }),
      h("footer", { class: "json-foot" }, [
        h("div", { role: "status" }, lines.value.length === 0 ? null : h("ul", { class: "json-problems", "aria-label": "Problems" }, lines.value.map((one, index) =>
          h("li", { key: index }, h("button", { type: "button", class: one.type, onClick: () => lead(one.row) }, [h("b", null, `Line ${one.row + 1}`), " ", one.text, one.isOwn ? ". Not saved yet." : ""]))))),
        h("p", { class: "quiet", id: "json-hint" }, "Ctrl+Space completes, Ctrl+F finds. Press Esc, then Tab to leave the text."),
        button("Find", find, { class: "small", "aria-keyshortcuts": "Control+F" }),
      ]),
    ]);
  },
};

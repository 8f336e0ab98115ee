// The bars of the editor: who edits and how it is saved, problems, conflicts, the run, and the selection.

import { duration, moment, plain, span } from "/pages/words.js";
import { icon } from "./canvas.js";
import * as graph from "./graph.js";
import { swatches } from "./notes.js";
import { atPlace, toldOf } from "./schema.js";
import { namesOf } from "./together.js";

const { h, Teleport } = Vue;
const { TRIGGER } = graph;
const { page } = window.document.getElementById("editor").dataset;

const STATES = {
  saved: "Draft saved", saving: "Saving…", unsaved: "Unsaved changes", refused: "Not saved", conflict: "Not saved", offline: "Not saved, trying again",
};

export const button = (label, onClick, more = {}) => h("button", { type: "button", onClick, ...more, class: ["button", more.class] }, label);

/** Issues by node; those of no node that is there are of the graph as a whole. */
export function issuesOf(editor) {
  const ids = new Set([TRIGGER, ...graph.nodesOf(editor.document.value).map((node) => node.id)]);
  const found = new Map();
  for (const issue of editor.shown.issues) {
    const id = ids.has(issue.nodeId) ? issue.nodeId : "";
    found.set(id, [...(found.get(id) ?? []), issue]);
  }
  return found;
}

export const nameOf = (editor, id) => (id === TRIGGER ? "Trigger" : graph.nodeOf(editor.document.value, id)?.label ?? (id || "Automation"));
const schemaOf = (editor, id) => (id === TRIGGER ? editor.triggers.get(editor.document.value.trigger.kind) : editor.kinds.get(graph.nodeOf(editor.document.value, id)?.kind))?.schema;
const told = (editor, issue) => toldOf(issue, schemaOf(editor, issue.nodeId));
/** A problem in words: the node, the field by its label, and what is wrong with it. */
export function worded(editor, issue) {
  const { title, message } = told(editor, issue);
  return `${nameOf(editor, issue.nodeId)}: ${[title, message].filter(Boolean).join(/^[A-Z]/.test(message) ? ": " : " ")}`;
}

function problems(editor) {
  const { issues } = editor.shown;
  if (issues.length === 0) return null;
  const errors = issues.filter((one) => one.severity !== "warning").length;
  return h("details", { class: "problems confirm" }, [
    h("summary", { class: ["button small", errors > 0 ? "wrong" : "warn"] }, `${issues.length} ${issues.length === 1 ? "problem" : "problems"}`),
    h("ul", { class: "menu" }, issues.slice(0, 100).map((one) => h("li", null, h("button", { type: "button", onClick: () => editor.lead(one) }, [
      h("b", null, nameOf(editor, one.nodeId)), h("span", null, [...atPlace(told(editor, one)), one.severity === "warning" ? " (warning)" : ""]),
    ])))),
  ]);
}

const saveState = ({ state, message }) => h("span", { class: "save-state", "data-state": state, title: message }, STATES[state]);

export const head = (editor) => h(Teleport, { to: "#editor-actions" }, [
  others(editor),
  saveState(editor.at.fault ? { state: "refused", message: editor.at.fault.message } : editor.shown),
  problems(editor),
  button("Undo", () => editor.undo(), { class: "small", disabled: !editor.steps.canUndo && !editor.at.fault, title: "Undo (Ctrl+Z)" }),
  button("Redo", () => editor.redo(), { class: "small", disabled: !editor.steps.canRedo && !editor.at.canRedoText, title: "Redo (Ctrl+Shift+Z)" }),
  button("Test", () => { editor.at.dialog = { name: "test" }; }, { class: "small" }),
  button("Publish", () => { editor.at.problem = ""; editor.at.dialog = { name: "publish" }; }, { class: "small primary" }),
]);

/** The others who have the draft open. */
function others({ at }) {
  const { others: open, changed } = at;
  const parts = [open.length > 0 ? `Also editing: ${namesOf(open)}` : null, changed && !changed.isSelf ? `Changed by ${changed.name}, ${moment(changed.at)}` : null];
  const text = parts.filter(Boolean).join(" · ");
  return text ? h("span", { class: "others", role: "status", title: text }, text) : null;
}

/** The person who changed the draft last, by name; the same person may have, in another tab or by the API. */
export function someone({ at: { changed } }) {
  if (!changed) return "Someone else";
  return changed.isSelf ? "You, in another tab or by the API," : changed.name;
}
export const whenOf = ({ at: { changed } }) => (changed ? ` at ${moment(changed.at)}` : "");

const conflict = (editor) => h("div", { class: "canvas-bar wrong", role: "alert" }, [
  h("span", null, [h("b", null, `${someone(editor)} changed this draft${whenOf(editor)}.`), " Your latest changes are not saved."]),
  h("a", { class: "button small", href: `${page}/edit`, target: "_blank" }, "View theirs"),
  button("Keep both", () => editor.settle("both"), { class: "small primary", title: "Merge both. Where both changed a node, theirs is added beside yours, disabled." }),
  button("Keep mine", () => editor.settle("mine"), { class: "small" }),
  button("Use theirs", () => editor.settle("theirs"), { class: "small" }),
]);

/** On the canvas: the JSON is kept, and not yet saved. */
const unread = (editor) => h("div", { class: "canvas-bar wrong", role: "alert" }, [
  h("span", null, [h("b", null, "The JSON isn't saved."), ` Line ${editor.at.fault.row + 1}: ${editor.at.fault.message}. The canvas shows the last valid version.`]),
  button("Fix in JSON", () => editor.turn(true), { class: "small primary" }),
  button("Discard JSON changes", () => editor.discard(), { class: "small" }),
]);

const signedOut = () => h("div", { class: "canvas-bar wrong", role: "alert" }, [
  h("span", { class: "grow" }, [h("b", null, "Your session has expired."), " Your changes are kept in this browser."]),
  h("a", { class: "button small primary", href: `/sign-in?next=${encodeURIComponent(window.location.pathname)}` }, "Sign in"),
]);

export function banners(editor) {
  const { shown, run } = editor;
  const bars = [];
  if (shown.state === "conflict") bars.push(conflict(editor));
  else if (shown.isSignedOut) bars.push(signedOut());
  else if (shown.state === "refused" && shown.message) bars.push(h("div", { class: "canvas-bar wrong", role: "alert" }, `Not saved: ${shown.message}`));
  if (editor.at.fault && !editor.at.isJson) bars.push(unread(editor));
  if (run.problem) {
    bars.push(h("div", { class: "canvas-bar wrong", role: "alert" }, [h("span", null, run.problem), button("Dismiss", () => { run.problem = ""; }, { class: "small" })]));
  }
  if (run.run) bars.push(runBar(editor));
  if (editor.at.said) bars.push(h("div", { class: "canvas-bar said", role: "status" }, editor.at.said));
  return h("div", { class: "bars" }, bars);
}

function runBar(editor) {
  const { testing, run: { run, isOpen } } = editor;
  const took = span(run.startedAt, run.completedAt);
  const hasFailed = ["failed", "timed_out"].includes(run.status);
  return h("div", { class: "canvas-bar", "data-status": run.status, "data-run": run.id, role: "status" }, [
    h("span", { class: "pill", "data-status": run.status }, [icon(run.status), plain(run.status)]),
    h("span", { class: "grow" }, [run.source === "test" ? "Test run" : `Run (${plain(run.source ?? "")})`, !isOpen && took !== null ? `, ${duration(took)}` : "",
      run.error ? [" · ", h("span", { class: "problem" }, run.error)] : null]),
    ...(isOpen ? approvals(editor) : []),
    isOpen ? button("Cancel", () => testing.cancel(), { class: "small" }) : null,
    hasFailed && run.source !== "test" ? button("Retry from failed node", () => editor.retry(), { class: "small primary", title: "Uses the graph on the canvas, and the outputs of nodes that succeeded. Calls are real." }) : null,
    h("a", { class: "button small", href: `/runs/${run.id}` }, "View run"),
    button("Close", () => testing.close(), { class: "small", "aria-label": "Hide the run" }),
  ]);
}

/** Buttons for the approval that the run which is shown waits for; one with questions is answered on its page. */
function approvals(editor) {
  const { run, testing } = editor;
  const waits = (node) => node.kind === "approval" && run.nodes.get(node.id)?.status === "waiting";
  const [node, ...others] = graph.nodesOf(editor.document.value).filter(waits);
  if (!node || others.length > 0 || node.config?.form?.length > 0) return [];
  const decide = (decision) => editor.tried(() => testing.decide(node.id, decision));
  return [
    h("span", null, node.config?.title && typeof node.config.title === "string" ? node.config.title : node.label ?? node.id),
    button("Approve", () => decide("approved"), { class: "small primary" }), button("Reject", () => decide("rejected"), { class: "small" }),
  ];
}

export function tools(editor) {
  const { chosen } = editor;
  const edges = editor.selection.value.edges.size;
  if (editor.at.opened !== null || (editor.selection.value.nodes.size === 0 && edges === 0)) return null;
  const notes = editor.chosenNotes;
  const one = chosen.length === 1 && notes.length === 0 ? chosen[0] : null;
  const note = notes.length === 1 && chosen.length === 0 ? graph.noteOf(editor.document.value, notes[0]) : null;
  const offered = [
    note ? button("Edit", () => editor.write(notes[0]), { class: "small" }) : null,
    note ? swatches(note.color, (color) => editor.edit(graph.changeNote(editor.document.value, notes[0], { color }))) : null,
    one ? button("Open", () => editor.open(one), { class: "small" }) : null,
    one ? button("Connect", () => { editor.at.dialog = { name: "connect", from: one }; }, { class: "small" }) : null,
    one ? button("Test up to here", () => { editor.at.dialog = { name: "test", stopAt: one }; }, { class: "small" }) : null,
    one ? button("Run this node", () => { editor.at.dialog = { name: "run", from: one, isAlone: true }; }, { class: "small" }) : null,
    one && editor.run.dataRunId ? button("Run from here", () => { editor.at.dialog = { name: "run", from: one, isAlone: false }; }, { class: "small" }) : null,
    chosen.length + notes.length > 0 ? button("Duplicate", () => editor.duplicate(), { class: "small" }) : null,
    chosen.length > 0 ? button(chosen.every((id) => graph.nodeOf(editor.document.value, id)?.disabled) ? "Enable" : "Disable", () => editor.disable(), { class: "small" }) : null,
    chosen.length + notes.length > 0 || edges > 0 ? button("Delete", () => editor.remove(), { class: "small danger" }) : null,
  ].filter(Boolean);
  return offered.length > 0 ? h("div", { class: "tools", role: "toolbar", "aria-label": "Selection" }, offered) : null;
}


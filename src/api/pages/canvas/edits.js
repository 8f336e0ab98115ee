// The document of the editor with its history: every edit can be undone, is saved soon, and may meet another person's.

import { someone, whenOf } from "./bars.js";
import * as graph from "./graph.js";
import { forget } from "./json-view.js";

const { shallowReactive, shallowRef } = Vue;
const { TRIGGER } = graph;
const SAID = 6000;

/** What is edited, as canvas and JSON show it, and the draft that it is saved in. */
export class Edits {
  constructor({ document, draft, shown, tab }) {
    this.history = new graph.History(document);
    this.document = shallowRef(document);
    this.steps = shallowReactive({ canUndo: false, canRedo: false });
    this.draft = draft;
    this.shown = shown;
    this.at = shallowReactive({ opened: null, focused: null, place: null, dialog: null, isPaletteOpen: window.innerWidth > 900 && graph.nodesOf(document).length === 0, said: "", others: [], changed: null, edited: null, menu: null, isJson: tab === "json", fault: null, canRedoText: false });
    this.begunAt = null;
    this.json = null;
  }

  /** Take an edit: it can be undone, and is saved soon. */
  edit(document, key = null) {
    if (this.history.push(document, key)) this.sync();
  }

  sync() {
    const { history } = this;
    this.document.value = history.document;
    Object.assign(this.steps, { canUndo: history.past.length > 0, canRedo: history.future.length > 0 });
    this.draft.change(history.document);
    const { opened } = this.at;
    if (opened !== null && opened !== TRIGGER && !graph.nodeOf(history.document, opened)) this.close();
  }

  undo() {
    if (!this.json?.step("undo") && this.history.undo()) this.sync();
  }

  redo() {
    if (!this.json?.step("redo") && this.history.redo()) this.sync();
  }

  /** Save what is not saved; false while the JSON is no document. */
  async flush() {
    return this.at.fault === null && this.draft.flush();
  }

  /** Show the draft as JSON, from what is chosen on, or on the canvas. */
  turn(isJson) {
    if (isJson === this.at.isJson) return;
    this.history.settle();
    this.begunAt = this.at.opened ?? this.chosen[0] ?? null;
    this.deselect();
    Object.assign(this.at, { isJson, opened: null, edited: null, menu: null, place: null, isPaletteOpen: false });
    const address = new URL(window.location);
    if (isJson) address.searchParams.set("tab", "json");
    else address.searchParams.delete("tab");
    window.history.replaceState(null, "", address);
  }

  /** Forget a text that is no document. */
  discard() {
    forget();
    this.at.fault = null;
  }

  /** After a conflict: whose draft it is. The other one is a step before it, for undo. */
  async settle(choice) {
    const { mine, theirs, document, clashes } = await this.draft.settled(choice);
    this.history.push(choice === "theirs" ? mine : theirs);
    this.history.push(document);
    this.sync();
    const lost = { mine: "Your draft is kept. Undo shows theirs.", theirs: "Their draft is shown. Undo brings yours back.",
      both: clashes.length === 0 ? "Both drafts are merged." : `Both drafts are merged. Both changed ${clashes.slice(0, 3).join(", ")}: check it.` };
    this.say(lost[choice]);
  }

  /** Someone else saved while nothing here was unsaved: their draft is shown. */
  moved(document) {
    if (this.history.push(document)) this.sync();
    this.say(`${someone(this)} changed this draft${whenOf(this)}. You see it as it is now.`);
  }

  say(text) {
    this.at.said = text;
    clearTimeout(this.saying);
    this.saying = setTimeout(() => { this.at.said = ""; }, SAID);
  }
}

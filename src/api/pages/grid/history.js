// The acts of one person in this page, which can be undone and repeated.

const MOST = 100;
const { shallowReactive } = Vue;

/** Where keys write or choose, and are not ours. */
export const isElsewhere = (target) => target.closest?.("input, textarea, select, [contenteditable], dialog[open]");

const cells = (count) => `${count} ${count === 1 ? "change" : "changes"}`;

/** An act has a `label`, and `undo` and `redo`, which give how much was `kept` as others left it. */
export class History {
  constructor(say) {
    this.say = say;
    this.past = [];
    this.future = [];
    this.work = Promise.resolve();
    this.acting = Promise.resolve();
    this.state = shallowReactive({ canUndo: false, canRedo: false, isBusy: false });
  }

  push(act) {
    if (!act) return null;
    this.past.push(act);
    if (this.past.length > MOST) this.past.shift();
    this.future = [];
    this.sync();
    return act;
  }

  /** Take the act that comes of a promise: in the order in which acts began, and before any later undo. */
  follow(acting) {
    const taken = this.acting.then(() => acting).then((act) => this.push(act));
    this.acting = taken.catch(() => {});
    this.work = this.work.then(() => this.acting);
    return taken;
  }

  sync() {
    Object.assign(this.state, { canUndo: this.past.length > 0, canRedo: this.future.length > 0 });
  }

  /** Undo and repeat by keys, wherever no text is written. */
  followKeys() {
    document.addEventListener("keydown", (event) => {
      if (isElsewhere(event.target) || !(event.ctrlKey || event.metaKey) || event.altKey) return;
      const key = event.key.toLowerCase();
      if (key !== "z" && key !== "y") return;
      event.preventDefault();
      if (key === "y" || event.shiftKey) this.redo();
      else this.undo();
    });
  }

  undo() { return this.step("past", "future", "undo", "Undone"); }

  redo() { return this.step("future", "past", "redo", "Repeated"); }

  /** One step after another: keys that are pressed meanwhile wait. */
  step(from, to, name, word) {
    this.work = this.work.then(() => this.take(this[from], this[to], name, word));
    return this.work;
  }

  async take(from, to, name, word) {
    const act = from.pop();
    if (!act) return;
    this.state.isBusy = true;
    try {
      const { kept = 0 } = (await act[name]()) ?? {};
      to.push(act);
      this.say(kept > 0 ? `${word}: ${act.label}. ${cells(kept)} that someone else made since ${kept === 1 ? "was" : "were"} kept.` : `${word}: ${act.label}`);
    } catch (error) {
      from.push(act);
      if (error.status === undefined) console.error(error);
      this.say(`Not ${word.toLowerCase()}: ${error.message}`, true);
    } finally {
      this.state.isBusy = false;
      this.sync();
    }
  }
}

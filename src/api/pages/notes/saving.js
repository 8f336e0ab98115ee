// Saving a page block by block: in order, as one types, and without the loss of anybody's text.

import { act, overview, Refused } from "/pages/client.js";
import { bodyText, isSaved, newBlock, received, sent, walk } from "./tree.js";

const { markRaw } = globalThis.Vue;

const [TYPING, POLLING, MOST_TRIES] = [400, 3000, 6];
const isTransient = (error) => error instanceof Refused && (error.status === 0 || error.status === 429 || error.status >= 500);
const pause = (ms) => new Promise((done) => { setTimeout(done, ms); });

/** The message for a block in conflict; `kept` is the one with the text of the reader. */
const BOTH = "Someone else edited this block at the same time. Both versions are kept: this one is yours.";

/**
 * The queue of edits of one page. `page` has the tree, the version, and is told of what happens:
 * `say(text)`, `changed(ids)` for blocks that others changed, `parted(id, keptId)` for a conflict.
 */
export class Saving {
  constructor(page, path) {
    this.page = page;
    this.path = path;
    this.queue = [];
    this.isBusy = false;
    this.isStopped = false;
    this.timer = 0;
    this.stored = new Set([...walk(page.tree.blocks)].map((block) => block.id));
    addEventListener("beforeunload", (event) => { if (this.isOpen) event.preventDefault(); });
    document.addEventListener("visibilitychange", () => { if (document.hidden) this.flush(); });
  }

  get isOpen() { return this.queue.length > 0 || this.isBusy; }

  /** Takes an edit that the tree has had; typing into one block is one request. */
  add(edit) {
    const last = this.queue.at(-1);
    if (edit.op === "update" && last?.op === "update" && last.id === edit.id) {
      clearTimeout(this.timer);
    } else this.queue.push(edit);
    this.page.state.saving = "Saving…";
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.flush(), edit.op === "update" ? TYPING : 0);
  }

  /**
   * The next edit. Places are sent as they are now, behind the block before: of edits that place
   * blocks, that of the upper block goes first, or the one below it would be placed behind where
   * the upper one no longer is.
   */
  take() {
    const isPlacing = ({ op }) => op === "insert" || op === "move";
    const end = this.queue.findIndex((edit) => !isPlacing(edit));
    const placing = this.queue.slice(0, end < 0 ? undefined : end);
    if (placing.length < 2) return this.queue.shift();
    const order = new Map([...walk(this.page.tree.blocks)].map((block, at) => [block.id, at]));
    const placeOf = ({ id, block }) => order.get(id ?? block.id) ?? -1;
    const next = placing.reduce((first, edit) => (placeOf(edit) < placeOf(first) ? edit : first));
    return this.queue.splice(this.queue.indexOf(next), 1)[0];
  }

  async flush() {
    clearTimeout(this.timer);
    if (this.isBusy || this.isStopped) return;
    this.isBusy = true;
    try {
      for (let tries = 0; this.queue.length > 0;) {
        const edit = this.take();
        try {
          await this.send(edit);
          tries = 0;
        } catch (error) {
          if (!isTransient(error)) this.refuse(edit, error);
          else {
            this.queue.unshift(edit);
            tries += 1;
            this.page.state.saving = `Not saved: ${error.message} Retrying…`;
            await pause(Math.min(500 * 2 ** tries, 15_000));
          }
        }
      }
      if (!this.page.state.saving.startsWith("Not saved") || this.queue.length === 0) this.page.state.saving = this.hasProblem() ? "Not saved" : "Saved";
    } finally {
      this.isBusy = false;
    }
    if (this.queue.length > 0) this.flush();
    else if (this.isBehind) await this.refresh().catch(() => {});
  }

  hasProblem() { return [...walk(this.page.tree.blocks)].some((block) => block.problem); }

  /** A block that the API refuses stays as it was typed, with the reason beside it. */
  refuse(edit, error) {
    const block = this.page.tree.find(edit.id ?? edit.block.id);
    const reason = error.details?.[0]?.message ? `${error.message} ${error.details[0].message}` : error.message;
    if (block) block.problem = reason;
    if (error.status === 401 || error.status === 403) {
      this.isStopped = true;
      this.page.state.saving = `Not saved: ${error.message}`;
    }
    this.page.say(`Not saved: ${reason}`);
    if (!(error instanceof Refused)) console.error(error);
  }

  send(edit) {
    return { insert: this.insert, update: this.update, move: this.move, remove: this.remove }[edit.op].call(this, edit);
  }

  /** Each write counts by one: a larger version says that someone else wrote between. */
  took({ version }) {
    this.isBehind ||= version > this.page.version + 1;
    this.page.version = version;
  }

  async insert({ block: { id } }) {
    const block = this.page.tree.find(id);
    // A later edit removed it before it was sent.
    if (!block || block.updatedAt) return;
    const { parentId, afterId } = this.savedPlace(block);
    const content = sent(block);
    const body = { blocks: [content], afterBlockId: afterId, ...(parentId ? { parentBlockId: parentId } : {}) };
    try {
      const answer = await act(`${this.path}/blocks`, body);
      this.took(answer);
      this.store(answer.blocks, content);
    } catch (error) {
      // The answer of an earlier attempt was lost, or the neighbour was deleted.
      if (error.status === 409) await this.refresh();
      else if (error.status === 404 && (afterId || parentId)) {
        const answer = await act(`${this.path}/blocks`, { blocks: [content] });
        this.took(answer);
        this.store(answer.blocks, content);
        this.page.say("Someone else deleted the block beside it. The new block is at the end.");
        await this.refresh();
      } else throw error;
    }
  }

  /** The nearest place that the API knows already. */
  savedPlace(block) {
    const siblings = this.page.tree.siblings(block);
    const before = siblings.slice(0, siblings.findIndex((one) => one.id === block.id)).findLast((one) => one.updatedAt);
    return { parentId: block.parentBlockId ?? null, afterId: before?.id ?? null };
  }

  store(blocks, content) {
    const contents = new Map([...walk([content])].map((one) => [one.id, bodyText(one)]));
    for (const stored of walk(blocks)) {
      this.stored.add(stored.id);
      const block = this.page.tree.find(stored.id);
      if (block) Object.assign(block, { updatedAt: stored.updatedAt, saved: contents.get(stored.id) ?? bodyText(stored), problem: undefined });
    }
  }

  async update({ id }) {
    for (let tries = 0; tries < MOST_TRIES; tries += 1) {
      const block = this.page.tree.find(id);
      if (!block || !block.updatedAt || isSaved(block)) return;
      const mine = bodyText(block);
      try {
        const answer = await act(`${this.path}/blocks/${id}`, { kind: block.kind, content: block.content, expectedUpdatedAt: block.updatedAt }, "PATCH");
        this.took(answer);
        Object.assign(block, { updatedAt: answer.block.updatedAt, saved: mine, problem: undefined });
        return;
      } catch (error) {
        if (error.status === 404) return this.restore(block);
        if (error.status !== 409) throw error;
        const theirs = await overview(`${this.path}/blocks/${id}`).catch((refusal) => { if (refusal.status === 404) return null; throw refusal; });
        if (!theirs) return this.restore(block);
        const isOnlyMoved = bodyText(theirs) === block.saved;
        if (!isOnlyMoved && bodyText(theirs) !== bodyText(block)) return this.part(block, theirs);
        block.updatedAt = theirs.updatedAt;
        block.saved = bodyText(theirs);
      }
    }
    throw new Refused(409, "Others keep changing this block. Edit it again to retry.");
  }

  /** A block that someone else deleted while it was edited comes back with what was typed. */
  async restore(block) {
    for (const one of walk([block])) Object.assign(one, { updatedAt: null, saved: null });
    this.page.say("Someone else deleted this block. It was restored with your changes.");
    await this.insert({ block });
  }

  /** Two texts of one block: theirs stays in its place, and mine becomes the block after it. */
  async part(block, theirs) {
    const mine = newBlock(block.kind, block.content);
    mine.conflict = { text: BOTH, id: block.id };
    Object.assign(block, { kind: theirs.kind, content: markRaw(theirs.content), updatedAt: theirs.updatedAt, saved: bodyText(theirs) });
    this.page.tree.put(mine, { parentId: block.parentBlockId ?? null, afterId: block.id });
    this.page.parted(block.id, mine.id);
    this.page.say(BOTH);
    await this.insert({ block: mine });
  }

  async move({ id }) {
    const block = this.page.tree.find(id);
    if (!block?.updatedAt) return;
    const { parentId, afterId } = this.savedPlace(block);
    try {
      const answer = await act(`${this.path}/blocks/${id}`, { parentBlockId: parentId, afterBlockId: afterId }, "PATCH");
      this.took(answer);
      if (isSaved(block)) block.updatedAt = answer.block.updatedAt;
      else if (bodyText(answer.block) === block.saved) block.updatedAt = answer.block.updatedAt;
    } catch (error) {
      if (error.status !== 404) throw error;
      this.page.say("Someone else deleted this block or the one beside it.");
      await this.refresh();
    }
  }

  /** Deletes a block, unless someone else changed it or what is in it. */
  async remove({ id, known }) {
    if (!this.stored.has(id)) return;
    for (let tries = 0; tries < MOST_TRIES; tries += 1) {
      try {
        this.took(await act(`${this.path}/blocks/${id}`, undefined, "DELETE", { "If-Match": String(this.page.version) }));
        return;
      } catch (error) {
        if (error.status === 404) return;
        if (error.status !== 409) throw error;
        const surface = await overview(this.path);
        const theirs = [...walk(surface.blocks)].find((block) => block.id === id);
        if (!theirs) return;
        if (known && savedText([theirs]) !== known) {
          this.page.say("Someone else changed a block that you deleted. It was kept.");
          this.merge(surface);
          return;
        }
        this.page.version = surface.version;
      }
    }
    throw new Refused(409, "Others keep changing this page.");
  }

  /** Asks from time to time whether someone else wrote, and shows it. */
  async follow() {
    for (;;) {
      await pause(POLLING);
      if (document.hidden || this.isOpen || this.isStopped) continue;
      try {
        const version = await overview(`${this.path.replace("/v1", "")}/version`);
        if ((version !== this.page.version || this.isBehind) && !this.isOpen) await this.refresh();
      } catch (error) {
        if (error.status === 403 || error.status === 404) return;
      }
    }
  }

  async refresh() {
    this.merge(await overview(this.path));
  }

  /** Takes what others wrote. What is typed here and not saved yet stays, and is saved after it. */
  merge({ blocks, version }) {
    const { tree } = this.page;
    this.stored = new Set([...walk(blocks)].map((block) => block.id));
    const old = new Map([...walk(tree.blocks)].map((block) => [block.id, block]));
    const removed = new Set(this.queue.filter((edit) => edit.op === "remove").map((edit) => edit.id));
    const changed = [];
    const taken = (list) => list.filter((block) => !removed.has(block.id)).map((block) => {
      const mine = old.get(block.id);
      block.children = taken(block.children);
      if (!mine) return block;
      old.delete(block.id);
      const isMine = mine.saved !== null && !isSaved(mine);
      if (!isMine && bodyText(mine) !== bodyText(block)) {
        Object.assign(mine, { kind: block.kind, content: block.content });
        changed.push(block.id);
      }
      // An unsaved block keeps the revision it was typed on: saving it then tells a conflict.
      if (!isMine) Object.assign(mine, { updatedAt: block.updatedAt, saved: block.saved });
      Object.assign(mine, { parentBlockId: block.parentBlockId, children: block.children });
      return mine;
    });
    const unsaved = [...old.values()].filter((block) => !block.updatedAt || !isSaved(block)).map((block) => ({ block, place: tree.place(block) }));
    tree.root.blocks = taken(received(blocks));
    for (const { block, place } of unsaved) if (!tree.find(block.id)) tree.put(block, tree.find(place.parentId) || !place.parentId ? place : { parentId: null, afterId: tree.blocks.at(-1)?.id ?? null });
    this.page.version = version;
    this.isBehind = false;
    this.page.changed(changed);
  }
}

/** The contents of blocks with what is in them, as they were saved last. */
export const savedText = (blocks) => JSON.stringify([...walk(blocks)].map((block) => [block.id, block.saved ?? bodyText(block)]));

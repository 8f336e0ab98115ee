// The acts of a writer: what keys, menus and the clipboard do to the tree, each with its undo.

import { History } from "/pages/grid/history.js";
import { savedText } from "./saving.js";
import { joined, replaced, sliced, textOf } from "./text.js";
import { bodyText, duplicated, isList, isText, labelOf, newBlock, walk } from "./tree.js";

const PAUSE = 1500;

export class Acts {
  constructor(page) {
    this.page = page;
    this.tree = page.tree;
    this.history = new History((text) => page.say(text));
    this.typing = null;
  }

  /** Does edits as one act; `focus` says where the caret goes, and after an undo `back`. */
  act(label, edits, focus, back) {
    const inverses = this.apply(edits);
    if (inverses.length === 0) return;
    this.typing = null;
    const redo = edits;
    const remembered = { undo: inverses.toReversed(), redo };
    this.history.push({
      label,
      undo: async () => this.replay(remembered, "undo", "redo", back),
      redo: async () => this.replay(remembered, "redo", "undo", focus),
    });
    if (focus) this.page.focus(focus);
  }

  apply(edits) {
    const inverses = [];
    for (const edit of edits) {
      const block = edit.op === "remove" ? this.tree.find(edit.id) : null;
      const known = block ? savedText([block]) : undefined;
      const inverse = this.tree.apply(edit);
      if (!inverse) continue;
      inverses.push(inverse);
      this.page.saving.add({ ...edit, known });
    }
    return inverses;
  }

  /** Blocks that someone else changed since stay as they are, and are counted. */
  replay(remembered, from, to, focus) {
    const edits = remembered[from];
    const inverses = this.apply(edits);
    remembered[to] = inverses.toReversed();
    this.page.shown();
    const last = focus ?? edits.map((edit) => edit.id ?? edit.block.id).findLast((id) => this.tree.find(id));
    if (last) this.page.focus(typeof last === "string" ? { id: last, at: Infinity } : last);
    return { kept: edits.length - inverses.length };
  }

  /** Typing into one block is one act, until there is a pause or another act. */
  type(block, content) {
    const now = Date.now();
    const before = { kind: block.kind, content: block.content };
    const same = this.typing && this.typing.id === block.id && now - this.typing.at < PAUSE;
    const edit = { op: "update", id: block.id, content };
    const [inverse] = this.apply([edit]);
    if (!inverse) return;
    block.problem = undefined;
    if (same) {
      Object.assign(this.typing, { at: now });
      this.typing.remembered.undo = [{ ...this.typing.first, expected: inverse.expected }];
      return;
    }
    const remembered = { undo: [inverse], redo: [] };
    this.typing = { id: block.id, at: now, remembered, first: { op: "update", id: block.id, ...before } };
    this.history.push({
      label: `typing in ${labelOf(block.kind).toLowerCase()}`,
      undo: async () => { this.typing = null; return this.replay(remembered, "undo", "redo"); },
      redo: async () => this.replay(remembered, "redo", "undo"),
    });
  }

  after(block) { return { parentId: block.parentBlockId ?? null, afterId: block.id }; }

  update(block, body) { return { op: "update", id: block.id, ...body }; }

  /** Enter: the text after the caret becomes a block of its own. */
  split(block, from, to) {
    const { text } = block.content;
    if (textOf(text) === "" && (isList(block) || block.kind === "quote" || block.kind === "callout" || block.kind === "toggle")) return this.leave(block);
    const next = newBlock(isList(block) ? block.kind : "paragraph", { text: sliced(text, to), ...(block.kind === "to_do" ? { checked: false } : {}) });
    const focus = { id: next.id, at: 0 };
    const back = { id: block.id, at: from };
    if (from === 0 && textOf(text) !== "" && to === 0) {
      // At the beginning of a line the new, empty block goes before it, and this one stays itself.
      const before = newBlock(isList(block) ? block.kind : "paragraph", block.kind === "to_do" ? { text: [], checked: false } : { text: [] });
      return this.act("new block", [{ op: "insert", block: before, place: this.tree.place(block) }], { id: block.id, at: 0 }, back);
    }
    const place = block.children.length > 0 && (block.kind === "toggle" || isList(block)) ? { parentId: block.id, afterId: null } : this.after(block);
    const edits = [{ op: "insert", block: next, place }];
    if (textOf(sliced(text, from)) !== "") edits.push(this.update(block, { content: { ...block.content, text: sliced(text, 0, from) } }));
    return this.act("new block", edits, focus, back);
  }

  /** Out of a list: one level up, or a plain paragraph. */
  leave(block) {
    if (block.parentBlockId && this.outdent(block)) return;
    this.turn(block, "paragraph");
  }

  /** Backspace at the beginning: a plain block first, then one with the block before it. */
  mergeBack(block) {
    if (block.kind !== "paragraph" && isText(block)) return void this.leave(block);
    const order = [...walk(this.tree.blocks)];
    const before = order[order.findIndex((one) => one.id === block.id) - 1];
    if (!before) return;
    if (!isText(before)) {
      if (textOf(block.content.text) === "" && block.children.length === 0) return void this.remove([block]);
      return void this.page.focus({ id: before.id, at: Infinity });
    }
    this.merge(before, block);
  }

  /** Delete at the end: the block after it comes up. */
  mergeForward(block) {
    const order = [...walk(this.tree.blocks)];
    const next = order[order.findIndex((one) => one.id === block.id) + 1];
    if (!next) return;
    if (isText(next)) this.merge(block, next);
    else this.remove([next], { id: block.id, at: Infinity });
  }

  merge(first, second) {
    const at = textOf(first.content.text).length;
    const edits = [];
    let afterId = second.id;
    const parentId = second.parentBlockId ?? null;
    for (const child of second.children) {
      edits.push({ op: "move", id: child.id, place: { parentId, afterId } });
      afterId = child.id;
    }
    if (textOf(second.content.text) !== "") edits.push(this.update(first, { content: { ...first.content, text: joined([...(first.content.text ?? []), ...second.content.text]) } }));
    edits.push({ op: "remove", id: second.id });
    this.act("joined blocks", edits, { id: first.id, at }, { id: second.id, at: 0 });
  }

  /** Makes a block of another kind; its text stays. */
  turn(block, kind, more = {}) {
    const { text = [], color } = block.content;
    const content = { text, ...(color ? { color } : {}), ...(kind === "to_do" ? { checked: false } : {}), ...more };
    this.act(labelOf(kind).toLowerCase(), [this.update(block, { kind, content })], { id: block.id, at: "same" });
  }

  indent(block) {
    const { parentId, afterId } = this.tree.place(block);
    const before = afterId ? this.tree.find(afterId) : null;
    if (!before || !isText(before) || parentId === before.id) return false;
    this.act("indent", [{ op: "move", id: block.id, place: { parentId: before.id, afterId: before.children.at(-1)?.id ?? null } }], { id: block.id, at: "same" });
    return true;
  }

  outdent(block) {
    const parent = this.tree.parent(block);
    if (!parent || parent.kind === "column") return false;
    this.act("outdent", [{ op: "move", id: block.id, place: this.after(parent) }], { id: block.id, at: "same" });
    return true;
  }

  /** The focus after an act on some blocks: the caret in one, or all of them selected. */
  on(blocks, at) { return blocks.length === 1 && this.page.selection.size === 0 ? { id: blocks[0].id, at } : { blocks: blocks.map((block) => block.id) }; }

  /** Moves blocks by one place among what is beside them: the neighbour goes to their other side. */
  shift(blocks, by) {
    const siblings = this.tree.siblings(blocks[0]);
    const places = blocks.map((block) => siblings.findIndex((one) => one.id === block.id));
    const [first, last] = [Math.min(...places), Math.max(...places)];
    if (first < 0 || last - first + 1 !== blocks.length) return void this.page.say("Only blocks next to each other are moved together.");
    const focus = this.on(blocks, "same");
    const parentId = blocks[0].parentBlockId ?? null;
    const next = siblings[by > 0 ? last + 1 : first - 1];
    if (!next) return;
    const edits = blocks.length === 1
      ? [{ op: "move", id: blocks[0].id, place: { parentId, afterId: by > 0 ? next.id : siblings[first - 2]?.id ?? null } }]
      : [{ op: "move", id: next.id, place: { parentId, afterId: by > 0 ? siblings[first - 1]?.id ?? null : blocks.at(-1).id } }];
    this.act("move", edits, focus, focus);
  }

  /** Moves blocks to a place, in their order. */
  moveTo(blocks, place) {
    const moving = new Set(blocks.map((block) => block.id));
    const inside = new Set([...walk(blocks)].map((block) => block.id));
    if (inside.has(place.parentId)) return;
    const siblings = place.parentId ? this.tree.find(place.parentId)?.children : this.tree.blocks;
    if (!siblings) return;
    const until = siblings.findIndex((one) => one.id === place.afterId) + 1;
    const afterId = siblings.slice(0, until).findLast((one) => !moving.has(one.id))?.id ?? null;
    const ids = siblings.map((one) => one.id);
    const at = ids.indexOf(blocks[0].id);
    if (at >= 0 && (ids[at - 1] ?? null) === afterId && blocks.every((block, index) => ids[at + index] === block.id)) return;
    const edits = blocks.map((block, index) => ({ op: "move", id: block.id, place: { parentId: place.parentId, afterId: index === 0 ? afterId : blocks[index - 1].id } }));
    const focus = this.on(blocks, "same");
    this.act("move", edits, focus, focus);
  }

  remove(blocks, focus) {
    const order = [...walk(this.tree.blocks)];
    const inside = new Set(blocks.flatMap((block) => [...walk(block.children)].map((one) => one.id)));
    const tops = blocks.filter((block) => !inside.has(block.id));
    const gone = new Set([...walk(tops)].map((one) => one.id));
    const at = order.findIndex((one) => gone.has(one.id));
    const next = order.slice(0, at).at(-1) ?? order.slice(at).find((one) => !gone.has(one.id));
    const label = tops.length === 1 ? `deleted ${labelOf(tops[0].kind).toLowerCase()}` : `deleted ${tops.length} blocks`;
    this.act(label, tops.map((block) => ({ op: "remove", id: block.id })), focus ?? (next ? { id: next.id, at: Infinity } : null), tops.length === 1 ? { id: tops[0].id, at: Infinity } : { blocks: tops.map((block) => block.id) });
  }

  duplicate(blocks) {
    const copies = blocks.map(duplicated);
    const place = this.after(blocks.at(-1));
    const edits = copies.map((copy, index) => ({ op: "insert", block: copy, place: index === 0 ? place : { ...place, afterId: copies[index - 1].id } }));
    this.act(copies.length === 1 ? "duplicated block" : `duplicated ${copies.length} blocks`, edits, this.on(copies, Infinity), this.on(blocks, Infinity));
  }

  /** A new block after one, in place of it while it is empty. */
  insertAfter(block, inserted, focus = { id: inserted.at(-1).id, at: Infinity }) {
    const place = block ? this.after(block) : { parentId: null, afterId: this.tree.blocks.at(-1)?.id ?? null };
    const edits = inserted.map((one, at) => ({ op: "insert", block: one, place: at === 0 ? place : { ...place, afterId: inserted[at - 1].id } }));
    if (block && isText(block) && textOf(block.content.text) === "" && block.children.length === 0) edits.push({ op: "remove", id: block.id });
    this.act(inserted.length === 1 ? `new ${labelOf(inserted[0].kind).toLowerCase()}` : `${inserted.length} blocks`, edits, focus, block ? { id: block.id, at: Infinity } : null);
  }

  /** Pastes at a place of a text: inside of it if it is one line, else as blocks. */
  paste(block, from, to, inserted) {
    if (inserted.length === 0) return;
    const [first] = inserted;
    const { text = [] } = block.content;
    const isEmpty = textOf(text) === "";
    if (inserted.length === 1 && first.kind === "paragraph" && first.children.length === 0) {
      const length = textOf(first.content.text).length;
      this.act("paste", [this.update(block, { content: { ...block.content, text: replaced(text, from, to, first.content.text) } })], { id: block.id, at: from + length }, { id: block.id, at: from });
      return;
    }
    if (isEmpty) return this.insertAfter(block, inserted);
    const place = this.after(block);
    const rest = sliced(text, to);
    const all = textOf(rest) === "" ? inserted : [...inserted, newBlock(isList(block) ? block.kind : "paragraph", { text: rest })];
    const edits = all.map((one, at) => ({ op: "insert", block: one, place: at === 0 ? place : { ...place, afterId: all[at - 1].id } }));
    if (textOf(sliced(text, from)) !== "") edits.push(this.update(block, { content: { ...block.content, text: sliced(text, 0, from) } }));
    this.act("paste", edits, { id: inserted.at(-1).id, at: Infinity }, { id: block.id, at: from });
  }

  /** Of two versions one stays: mine, which is the block itself, or theirs, which is before it. */
  settle(block, keeps) {
    const theirs = this.tree.find(block.conflict.id);
    block.conflict = undefined;
    if (keeps === "theirs") return this.remove([block], theirs ? { id: theirs.id, at: Infinity } : undefined);
    if (keeps === "mine" && theirs) this.act("kept one version", [{ op: "remove", id: theirs.id }], { id: block.id, at: Infinity });
    return null;
  }

  change(block, content) {
    if (bodyText(block) === bodyText({ kind: block.kind, content })) return;
    this.act(`changed ${labelOf(block.kind).toLowerCase()}`, [this.update(block, { content })], null);
  }
}

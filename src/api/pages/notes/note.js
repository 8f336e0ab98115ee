// The page of a surface: what is on it, what is saved, and where the caret is.

import { act } from "/pages/client.js";
import { facts } from "/pages/views/store.js";
import { Acts } from "./acts.js";
import { BlockList } from "./blocks.js";
import { Dialogs } from "./dialogs.js";
import { CaretMenu, StyleBar, withMenus } from "./menus.js";
import { Saving } from "./saving.js";
import { selectByMouse, selectionKeys } from "./selecting.js";
import { select, selected } from "./text.js";
import { newBlock, received, Tree, walk } from "./tree.js";
import { focusText, isCommand } from "./writing.js";

const { createApp, h, nextTick, reactive, shallowReactive } = globalThis.Vue;

/** Everything that the parts of the page share. */
function makePage() {
  const { surface } = facts;
  const state = reactive({ blocks: received(surface.blocks), said: "", saving: "", focused: null });
  const page = {
    state, surfaceId: surface.id, version: surface.version, workspaceId: surface.workspaceId, files: shallowReactive({ ...facts.files }),
    canWrite: facts.canWrite, canUpload: facts.canUpload, closed: reactive(new Set()), selection: reactive(new Set()), anchor: null,
    tree: new Tree(state),
    say(text) {
      state.said = text;
      clearTimeout(page.quieting);
      page.quieting = setTimeout(() => { state.said = ""; }, 8000);
    },
    shown() { page.clearSelection(); },
    changed() { /* Texts on the page follow their blocks by themselves. */ },
    focused(id) {
      state.focused = id;
      if (page.selection.size > 0) page.clearSelection();
    },
    clearSelection() {
      page.selection.clear();
      page.anchor = null;
    },
    /** The caret goes to a block; `at: "same"` keeps its place in the text. Of `blocks` all are selected. */
    async focus({ id, at, to, blocks }) {
      if (blocks) {
        await nextTick();
        const there = blocks.filter((one) => page.tree.find(one));
        return there.length > 0 ? page.selectBlocks(there[0], there.at(-1)) : page.clearSelection();
      }
      const element = document.querySelector(`[data-text="${id}"]`);
      const place = at === "same" && document.activeElement === element && element ? selected(element) : null;
      await nextTick();
      const now = document.querySelector(`[data-text="${id}"]`);
      if (now && place) return select(now, place.from, place.to);
      if (now && to !== undefined) return select(now, at, to);
      if (focusText(id, at)) return undefined;
      const box = document.querySelector(`[data-block="${id}"] :is([data-text-area], [data-cell])`);
      if (box) return box.focus();
      if (document.querySelector(`[data-block="${id}"]`)) page.selectBlocks(id, id);
      return undefined;
    },
    /** The blocks that an act on this one is about: all selected ones if it is among them. */
    chosen(block) {
      if (!page.selection.has(block?.id ?? page.head)) return block ? [block] : [];
      return [...walk(page.tree.blocks)].filter((one) => page.selection.has(one.id) && !page.selection.has(one.parentBlockId));
    },
    /** Selects all blocks between two, with what is in them. */
    selectBlocks(anchor, head) {
      const order = [...walk(page.tree.blocks)].map((block) => block.id);
      const [from, to] = [order.indexOf(anchor), order.indexOf(head)].sort((a, b) => a - b);
      page.selection.clear();
      order.slice(from, to + 1).forEach((id) => page.selection.add(id));
      Object.assign(page, { anchor, head });
      document.getElementById("note-body").focus({ preventScroll: true });
      document.querySelector(`[data-block="${head}"] > .note-row`)?.scrollIntoView({ block: "nearest" });
    },
    /** The text with the caret became a block of its own, since two people wrote in one. */
    async parted(id, kept) {
      const element = document.querySelector(`[data-text="${id}"]`);
      const place = document.activeElement === element && element ? selected(element) : null;
      await nextTick();
      if (place) page.focus({ id: kept, at: place.from, to: place.to });
    },
  };
  page.saving = new Saving(page, `/v1/surfaces/${surface.id}`);
  page.acts = new Acts(page);
  page.menu = new CaretMenu(page);
  withMenus(page);
  return page;
}

function documentKeys(page) {
  document.addEventListener("keydown", (event) => {
    if (!isCommand(event) || event.altKey || event.target.closest?.("dialog, .side, #note-title")) return;
    const name = event.key.toLowerCase();
    if (name === "z" && !event.shiftKey) page.acts.history.undo();
    else if (name === "y" || (name === "z" && event.shiftKey)) page.acts.history.redo();
    else if (name === "d" && event.target.closest?.("#note-body")) {
      const blocks = page.chosen(page.selection.size > 0 ? null : page.tree.find(event.target.closest("[data-block]")?.dataset.block));
      if (blocks.length > 0) page.acts.duplicate(blocks);
    }
    else return;
    event.preventDefault();
  });
}

/** The title of the item is written in its place. */
function titleIn(page) {
  const title = document.querySelector("#note-title[data-rename] > span:last-child");
  if (!title) return;
  Object.assign(title, { contentEditable: "plaintext-only", role: "textbox", ariaLabel: "Title" });
  let known = title.textContent;
  const save = async () => {
    const text = title.textContent.trim().slice(0, 200);
    if (text === known || text === "") return void (title.textContent = known);
    try {
      await act(`/v1/items/${facts.item.id}`, { title: text }, "PATCH");
      known = text;
      document.title = document.title.replace(/^.*?( · |$)/, `${text}$1`);
      page.say("Renamed");
    } catch (error) {
      page.say(`Not renamed: ${error.message}`);
    }
  };
  title.addEventListener("blur", save);
  title.addEventListener("keydown", (event) => {
    if (event.key !== "Enter" && event.key !== "ArrowDown") return;
    event.preventDefault();
    title.blur();
    const [first] = page.tree.blocks;
    if (first) page.focus({ id: first.id, at: 0 });
    else page.acts.insertAfter(null, [newBlock("paragraph")]);
  });
}

const Undo = {
  props: ["page"],
  setup: (props) => () => {
    const { history } = props.page.acts;
    return [
      h("button", { type: "button", class: "button small subtle", disabled: !history.state.canUndo, "aria-keyshortcuts": "Control+Z", onClick: () => history.undo() }, "Undo"),
      h("button", { type: "button", class: "button small subtle", disabled: !history.state.canRedo, "aria-keyshortcuts": "Control+Y", onClick: () => history.redo() }, "Redo"),
    ];
  },
};

function start() {
  const page = makePage();
  const keys = selectionKeys(page);
  const body = document.getElementById("note-body");
  body.className = "note-body";
  body.tabIndex = -1;
  const write = () => {
    const last = page.tree.blocks.at(-1);
    if (last?.kind === "paragraph" && (last.content.text ?? []).length === 0) page.focus({ id: last.id, at: 0 });
    else page.acts.insertAfter(null, [newBlock("paragraph")]);
  };
  createApp({
    render: () => [
      h(BlockList, { page, blocks: page.state.blocks }),
      page.canWrite ? h("button", { type: "button", class: "note-more", onClick: write }, page.state.blocks.length === 0 ? "Write something…" : "Add a block") : page.state.blocks.length === 0 ? h("p", { class: "quiet" }, "No content yet") : null,
      page.menu.render(), h(StyleBar, { page }), h(Dialogs),
    ],
  }).mount(body);
  for (const [name, does] of Object.entries(keys)) body.addEventListener(name.slice(2).toLowerCase(), does);
  selectByMouse(page, body);
  createApp({ render: () => [h("span", { class: "note-said" }, page.state.said || page.state.saving), page.canWrite ? h(Undo, { page }) : null] }).mount("#note-state");
  if (page.canWrite) {
    documentKeys(page);
    titleIn(page);
    body.addEventListener("dragover", (event) => event.preventDefault());
    body.addEventListener("drop", (event) => {
      const files = [...(event.dataTransfer?.files ?? [])];
      if (files.length === 0) return;
      event.preventDefault();
      page.upload(files, page.tree.find(event.target.closest?.("[data-block]")?.dataset.block) ?? page.tree.blocks.at(-1) ?? null);
    });
  }
  page.saving.follow();
  body.dataset.ready = "true";
}

start();

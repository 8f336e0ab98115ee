// The menu of `/` and of `@` at the caret, the bar of a selection, and what their entries do.

import { uploaded } from "/pages/client.js";
import { call } from "/pages/views/store.js";
import { loadPeople, people } from "/pages/views/values.js";
import { ask } from "./dialogs.js";
import { linked, safeLink, selected, spansOf, textOf, toggled } from "./text.js";
import { newBlock, OTHER_KINDS, TEXT_KINDS } from "./tree.js";
import { caretBox, insertSpan } from "./writing.js";

const { h, nextTick, reactive, shallowReactive } = globalThis.Vue;
const MOST = 12;

const day = (offset) => {
  const date = new Date(Date.now() + offset * 86_400_000);
  return [date.getFullYear(), String(date.getMonth() + 1).padStart(2, "0"), String(date.getDate()).padStart(2, "0")].join("-");
};

/** The list at the caret. The text keeps the focus; keys choose in the list. */
export class CaretMenu {
  constructor(page) {
    this.page = page;
    this.state = shallowReactive({ block: null, sign: "", at: 0, to: 0, entries: [], index: 0, x: 0, y: 0 });
    this.asked = 0;
  }

  get active() { return this.state.block && this.state.entries.length > 0 ? `note-menu-${this.state.index}` : null; }

  close() {
    this.asked += 1;
    Object.assign(this.state, { block: null, entries: [] });
  }

  /** Opens, narrows or closes the menu, by the text before the caret. */
  async typed(block, place) {
    const before = place && place.from === place.to ? textOf(block.content.text).slice(0, place.from) : "";
    const match = /(?:^|\s)([/@])([^\n/@]{0,40})$/.exec(before);
    if (!match || (match[1] === "/" && match[2].startsWith(" "))) return this.close();
    const [, sign, query] = match;
    const asked = this.asked += 1;
    const entries = sign === "/" ? blockEntries(query) : await mentionEntries(this.page, query);
    if (asked !== this.asked) return undefined;
    if (entries.length === 0) return this.close();
    await nextTick();
    const element = document.querySelector(`[data-text="${block.id}"]`);
    if (!element) return this.close();
    const caret = caretBox(element);
    const width = Math.min(300, innerWidth - 16);
    const isBelow = caret.bottom + 300 < innerHeight || caret.top < 300;
    Object.assign(this.state, {
      block: block.id, sign, at: place.from - query.length - 1, to: place.from, entries, index: 0, isBelow,
      x: Math.max(8, Math.min(caret.left, innerWidth - width - 8)), y: isBelow ? caret.bottom + 4 : innerHeight - caret.top + 4,
    });
    return undefined;
  }

  /** True for a key that the menu takes. */
  key(event) {
    const { state } = this;
    if (!state.block || state.entries.length === 0) return false;
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step) {
      state.index = (state.index + step + state.entries.length) % state.entries.length;
      nextTick(() => document.getElementById(this.active)?.scrollIntoView({ block: "nearest" }));
    } else if (event.key === "Enter" || event.key === "Tab") this.pick(state.index);
    else if (event.key === "Escape") this.close();
    else return false;
    event.preventDefault();
    event.stopPropagation();
    return true;
  }

  pick(index) {
    const { block: id, at, to, entries } = this.state;
    const block = this.page.tree.find(id);
    const entry = entries[index];
    this.close();
    if (block && entry) entry.does(this.page, block, at, to);
  }

  render() {
    const { state } = this;
    if (!state.block || state.entries.length === 0) return null;
    return h("div", {
      id: "note-menu", class: "caret-menu", role: "listbox", "aria-label": state.sign === "/" ? "Blocks" : "Mentions",
      onVnodeMounted: ({ el }) => this.put(el), onVnodeUpdated: ({ el }) => this.put(el),
    }, state.entries.map((entry, at) => h("div", {
      id: `note-menu-${at}`, class: "caret-entry", role: "option", key: `${at} ${entry.label}`, "aria-selected": at === state.index,
      onPointerdown: (event) => { event.preventDefault(); this.pick(at); }, onPointermove: () => { state.index = at; },
    }, [h("span", null, entry.label), entry.hint ? h("small", { class: "quiet" }, entry.hint) : null])));
  }

  put(element) {
    const { x, y, isBelow } = this.state;
    Object.assign(element.style, { left: `${x}px`, top: isBelow ? `${y}px` : "auto", bottom: isBelow ? "auto" : `${y}px` });
  }
}

function blockEntries(query) {
  const wanted = query.trim().toLowerCase();
  const fits = ({ label, hint }) => label.toLowerCase().includes(wanted) || hint?.toLowerCase().includes(wanted);
  const text = Object.entries(TEXT_KINDS).filter(([, one]) => fits(one)).map(([kind, one]) => ({ ...one, does: (page, block, at, to) => turned(page, block, at, to, kind) }));
  const other = Object.entries(OTHER_KINDS).filter(([, one]) => fits(one)).map(([kind, one]) => ({ ...one, does: (page, block, at, to) => insertKind(page, block, at, to, kind) }));
  return [...text, ...other];
}

/** Takes the sign and what was typed after it out of a text. */
function cleared(page, block, at, to) {
  const element = document.querySelector(`[data-text="${block.id}"]`);
  const spans = element ? spansOf(element) : block.content.text;
  page.acts.type(block, { ...block.content, text: [...sliceOf(spans, 0, at), ...sliceOf(spans, to)] });
}
const sliceOf = (spans, from, to = Infinity) => {
  let at = 0;
  return spans.flatMap((span) => {
    const part = span.text.slice(Math.max(0, from - at), Math.max(0, to - at));
    at += span.text.length;
    return part ? [{ ...span, text: part }] : [];
  });
};

function turned(page, block, at, to, kind) {
  cleared(page, block, at, to);
  page.acts.turn(block, kind);
  page.focus({ id: block.id, at });
}

async function insertKind(page, block, at, to, kind) {
  cleared(page, block, at, to);
  const content = await (CONTENTS[kind]?.(page, block) ?? {});
  if (!content) return page.focus({ id: block.id, at });
  const blocks = [newBlock(kind, content)];
  if (kind === "divider") blocks.push(newBlock("paragraph"));
  page.acts.insertAfter(block, blocks);
  return undefined;
}

const url = (label = "URL", more = {}) => ({ name: "url", label, type: "url", placeholder: "https://", ...more });

export async function databaseAndView(page) {
  const { databases } = await call("GET", `/v1/workspaces/${page.workspaceId}/databases?limit=200`);
  if (databases.length === 0) return page.say("This workspace has no databases."), null;
  const first = await ask({ title: "Database view", action: "Next", fields: [{ name: "databaseId", label: "Database", options: databases.map((one) => ({ key: one.id, label: one.label })) }] });
  if (!first) return null;
  const { views } = await call("GET", `/workspaces/${page.workspaceId}/databases/${first.databaseId}/facts`);
  const shown = views.filter((one) => one.kind !== "form");
  const second = await ask({ title: "View", action: "Insert", fields: [{ name: "viewId", label: "View", options: [{ key: "", label: "Whole table" }, ...shown.map((one) => ({ key: one.id, label: one.label }))] }] });
  return second ? { databaseId: first.databaseId, ...(second.viewId ? { viewId: second.viewId } : {}) } : null;
}

async function webPage() {
  const values = await ask({ title: "Link to a web page", action: "Insert", fields: [url("URL", { required: true }), { name: "title", label: "Title (optional)", maxlength: 200 }] });
  const address = values && safeLink(values.url);
  return address ? { url: address, ...(values.title ? { title: values.title } : {}) } : null;
}

async function itemLink(page) {
  const { items } = await call("GET", `/v1/items?workspaceId=${page.workspaceId}&limit=200`);
  const values = await ask({ title: "Link to an item", action: "Insert", fields: [{ name: "itemId", label: "Item", options: items.map((one) => ({ key: one.id, label: `${one.title || "Untitled"} (${one.kind.replaceAll("_", " ")})` })) }] });
  return values?.itemId ? { itemId: values.itemId } : null;
}

/** A file of the reader's, or an address: `content` keeps what was said of it before. */
export async function mediaContent(page, kind, content = {}) {
  const fields = [
    ...(page.canUpload ? [{ name: "file", label: "File", type: "file", ...(kind === "image" ? { accept: "image/*" } : {}) }] : []),
    url(page.canUpload ? "Or a URL" : "URL", { value: content.url ?? "" }), ...(kind === "image" ? [{ name: "alt", label: "Description for people who can't see it", value: content.alt ?? "" }] : []),
    { name: "caption", label: "Caption", value: content.caption ?? "" },
  ];
  const values = await ask({ title: kind === "image" ? "Image" : "File", fields });
  if (!values) return null;
  const more = { ...(values.alt ? { alt: values.alt } : {}), ...(values.caption ? { caption: values.caption } : {}) };
  if (values.file?.size > 0) return { ...(await page.store(values.file)), ...more };
  const address = values.url ? safeLink(values.url) : null;
  if (address) return { url: address, ...more };
  const { fileId, name } = content;
  return fileId ? { fileId, ...(name ? { name } : {}), ...more } : null;
}

const CONTENTS = {
  code: () => ({ code: "" }), equation: () => ({ expression: "" }),
  table: () => ({ rows: [[[], [], []], [[], [], []], [[], [], []]], headerRow: true }),
  image: (page) => mediaContent(page, "image"), file: (page) => mediaContent(page, "file"),
  bookmark: webPage, database_view: databaseAndView, item_link: itemLink,
};

async function mentionEntries(page, query) {
  const wanted = query.trim().toLowerCase();
  await loadPeople();
  const mention = (label, hint, what) => ({ label, hint, does: (_, block, at, to) => insertSpan(page, block, at, to, { text: label, mention: what }) });
  const persons = (people.list ?? []).filter((one) => one.label.toLowerCase().includes(wanted)).slice(0, 6).map((one) => mention(`@${one.label}`, "Person", { userId: one.id }));
  const days = [["Today", 0], ["Tomorrow", 1], ["Yesterday", -1]].filter(([name]) => name.toLowerCase().startsWith(wanted)).map(([name, offset]) => mention(day(offset), name, { date: day(offset) }));
  const hits = wanted ? await call("GET", `/v1/workspaces/${page.workspaceId}/search?q=${encodeURIComponent(wanted)}&limit=8`).catch(() => ({ results: [] })) : { results: [] };
  const things = hits.results.map((one) => mention(one.title || "Untitled", one.kind === "record" ? "Record" : "Item", one.kind === "record" ? { recordId: one.id } : { itemId: one.id }));
  return [...persons, ...things, ...days].slice(0, MOST);
}

/** Files, links and media of the page, beside the tree. */
export function withMenus(page) {
  Object.assign(page, {
    async store(file) {
      const stored = await uploaded(page.workspaceId, file);
      page.files[stored.fileId] = stored.downloadUrl;
      return { fileId: stored.fileId, name: (stored.name ?? file.name).slice(0, 200) };
    },
    async upload(files, block) {
      if (!page.canUpload) return page.say("You don't have permission to upload files.");
      try {
        const blocks = [];
        for (const file of files) blocks.push(newBlock(file.type.startsWith("image/") ? "image" : "file", await page.store(file)));
        page.acts.insertAfter(block, blocks);
      } catch (error) {
        page.say(`Not uploaded: ${error.message}`);
      }
      return undefined;
    },
    async editMedia(block) {
      const content = await mediaContent(page, block.kind, block.content);
      if (content) page.acts.change(block, content);
    },
    async editLink(block) {
      const { title = "", caption = "" } = block.content;
      const values = await ask({ title: "Link to a web page", fields: [url("URL", { required: true, value: block.content.url }), ...(block.kind === "embed" ? [] : [{ name: "title", label: "Title", value: title, maxlength: 200 }]), { name: "caption", label: "Caption", value: caption }] });
      const address = values && safeLink(values.url);
      if (address) page.acts.change(block, { ...block.content, url: address, title: values.title || undefined, caption: values.caption || undefined });
    },
    async askLink(block, { from, to }) {
      const values = await ask({ title: "Link", fields: [url("URL (empty removes the link)")] });
      if (!values) return;
      const address = values.url ? safeLink(values.url) : null;
      if (values.url && !address) return void page.say("Enter an http, https or mailto URL.");
      page.acts.change(block, { ...block.content, text: linked(block.content.text, from, to, address) });
      page.focus({ id: block.id, at: to });
    },
  });
}

const STYLES = [["bold", "B", "Bold", "Control+B"], ["italic", "I", "Italic", "Control+I"], ["underline", "U", "Underline", "Control+U"], ["strikethrough", "S", "Strikethrough", "Control+Shift+S"], ["code", "<>", "Code", "Control+E"]];

/** The bar above a selection. */
export const StyleBar = {
  props: ["page"],
  setup(props) {
    const state = reactive({ id: null, from: 0, to: 0, x: 0, y: 0 });
    const look = () => {
      const element = document.activeElement?.closest?.("[data-text]");
      const place = element && props.page.canWrite ? selected(element) : null;
      if (!place || place.from === place.to) { state.id = null; return; }
      const box = getSelection().getRangeAt(0).getBoundingClientRect();
      Object.assign(state, { id: element.dataset.text, ...place, x: Math.max(8, Math.min(box.left, innerWidth - 260)), y: box.top > 60 ? box.top - 42 : box.bottom + 6 });
    };
    document.addEventListener("selectionchange", look);
    document.addEventListener("scroll", () => { state.id = null; }, { passive: true, capture: true });
    const press = (does) => (event) => {
      event.preventDefault();
      const block = props.page.tree.find(state.id);
      if (block) does(block);
    };
    const style = (name) => press((block) => {
      const { from, to } = state;
      props.page.acts.change(block, { ...block.content, text: toggled(block.content.text, from, to, name) });
      props.page.focus({ id: block.id, at: from, to });
    });
    const put = ({ el }) => Object.assign(el.style, { left: `${state.x}px`, top: `${state.y}px` });
    return () => (state.id === null ? null : h("div", { class: "style-bar", role: "toolbar", "aria-label": "Style", onVnodeMounted: put, onVnodeUpdated: put }, [
      ...STYLES.map(([name, sign, label, keys]) => h("button", { type: "button", key: name, tabindex: -1, "data-style": name, "aria-label": label, "aria-keyshortcuts": keys, title: label, onPointerdown: style(name) }, sign)),
      h("button", { type: "button", tabindex: -1, "aria-label": "Link", title: "Link", "aria-keyshortcuts": "Control+K", onPointerdown: press((block) => props.page.askLink(block, { from: state.from, to: state.to })) }, "↗"),
    ]));
  },
};

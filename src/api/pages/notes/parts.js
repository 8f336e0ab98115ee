// Blocks that are no plain text: tables, code, pictures, links, and views of databases.

import { button } from "/pages/views/controls.js";
import { call, zone } from "/pages/views/store.js";
import { loadPeople, needsPeople, shownValue, valueOf } from "/pages/views/values.js";
import { pasted } from "./paste.js";
import { replaced, safeLink, textOf } from "./text.js";
import { RichText } from "./writing.js";
import { walk } from "./tree.js";

const { h, onMounted, ref, shallowRef, watch } = globalThis.Vue;
const ROWS = 10;

/** An address of the web: it opens elsewhere, and learns nothing of this page. */
const outside = (url, text, more = {}) => h("a", { href: safeLink(url) ?? undefined, target: "_blank", rel: "noopener noreferrer nofollow", referrerpolicy: "no-referrer", ...more }, text);
const change = (page, block) => (parts) => page.acts.change(block, { ...block.content, ...parts });
const small = (label, onClick) => button(label, onClick, { class: "small subtle" });

const Code = {
  props: ["page", "block"],
  setup(props) {
    return () => {
      const { page, block } = props;
      const { code = "", language = "" } = block.content;
      if (!page.canWrite) return h("pre", null, h("code", null, code));
      return h("div", { class: "note-code" }, [
        h("textarea", {
          "data-text-area": block.id, "aria-label": "Code", spellcheck: "false", rows: Math.max(2, code.split("\n").length), value: code,
          onInput: (event) => page.acts.type(block, { ...block.content, code: event.target.value }),
          onKeydown: (event) => leaveBox(event, page, block),
        }),
        h("input", { type: "text", class: "note-language", "aria-label": "Language", placeholder: "Language", maxlength: 50, value: language, onChange: (event) => page.acts.change(block, { code, ...(event.target.value ? { language: event.target.value } : {}) }) }),
      ]);
    };
  },
};

const Equation = {
  props: ["page", "block"],
  setup: (props) => () => {
    const { page, block } = props;
    const { expression = "" } = block.content;
    return page.canWrite ? h("textarea", {
      "data-text-area": block.id, "aria-label": "LaTeX", placeholder: "LaTeX", spellcheck: "false", rows: 2, value: expression,
      onInput: (event) => page.acts.type(block, { expression: event.target.value }), onKeydown: (event) => leaveBox(event, page, block),
    }) : h("pre", null, expression);
  },
};

/** Escape selects the block; the arrows leave at the first and the last line. */
function leaveBox(event, page, block) {
  const { selectionStart: at, selectionEnd: end, value } = event.target;
  if (event.key === "Escape") {
    event.preventDefault();
    page.selectBlocks(block.id, block.id);
  } else if (event.key === "Backspace" && value === "") {
    event.preventDefault();
    page.acts.remove([block]);
  } else if (event.key === "ArrowDown" && at === end && !value.slice(at).includes("\n")) {
    const order = [...walk(page.tree.blocks)];
    const next = order[order.findIndex((one) => one.id === block.id) + 1];
    if (next) { event.preventDefault(); page.focus({ id: next.id, at: 0 }); }
  }
}

const Table = {
  props: ["page", "block"],
  setup(props) {
    const root = ref(null);
    const rows = () => props.block.content.rows;
    const set = (next, more = {}) => change(props.page, props.block)({ rows: next, ...more });
    const go = (row, column) => root.value.querySelector(`[data-cell="${row},${column}"]`)?.focus();
    const add = (row) => set([...rows().slice(0, row), rows()[0].map(() => []), ...rows().slice(row)]);
    function key(event, place, [row, column]) {
      const width = rows()[0].length;
      if (event.key === "Tab") {
        const at = row * width + column + (event.shiftKey ? -1 : 1);
        if (at < 0) return;
        event.preventDefault();
        if (at >= rows().length * width) add(rows().length);
        requestAnimationFrame(() => go(Math.floor(at / width), at % width));
      } else if (event.key === "Escape") {
        event.preventDefault();
        props.page.selectBlocks(props.block.id, props.block.id);
      } else if (event.key === "ArrowDown" || event.key === "ArrowUp") {
        const next = row + (event.key === "ArrowDown" ? 1 : -1);
        if (next >= 0 && next < rows().length) { event.preventDefault(); go(next, column); }
      } else if (event.key === "Enter" && !event.shiftKey) {
        event.preventDefault();
        if (row + 1 === rows().length) add(row + 1);
        requestAnimationFrame(() => go(row + 1, column));
      }
    }
    function paste(event, { from, to }, [row, column]) {
      const pastedBlocks = pasted(event.clipboardData);
      const table = pastedBlocks.length === 1 && pastedBlocks[0].kind === "table" ? pastedBlocks[0].content.rows : null;
      const next = rows().map((cells) => [...cells]);
      if (table) {
        table.slice(0, 500 - row).forEach((cells, at) => {
          next[row + at] ??= next[0].map(() => []);
          cells.slice(0, next[0].length - column).forEach((cell, place) => { next[row + at][column + place] = cell; });
        });
      } else {
        const spans = pastedBlocks.flatMap((one, at) => [...(at > 0 ? [{ text: "\n" }] : []), ...(one.content.text ?? [])]);
        next[row][column] = replaced(next[row][column], from, to, spans);
      }
      set(next);
    }
    const cell = (spans, row, column) => h(RichText, {
      key: `${row},${column}`, "data-cell": `${row},${column}`, spans, label: `Row ${row + 1}, column ${column + 1}`, isEditable: props.page.canWrite,
      onKey: (event, place) => key(event, place, [row, column]),
      onBefore: (event) => { if (event.inputType === "insertParagraph") event.preventDefault(); },
      onPaste: (event, place) => paste(event, place, [row, column]),
      onChange: (next) => props.page.acts.type(props.block, { ...props.block.content, rows: rows().map((cells, at) => (at === row ? cells.map((one, place) => (place === column ? next : one)) : cells)) }),
    });
    return () => {
      const { content } = props.block;
      const [height, width] = [rows().length, rows()[0].length];
      return h("div", { class: "note-table", ref: root }, [
        h("div", { class: "scroll" }, h("table", null, h("tbody", null, rows().map((cells, row) => h("tr", { key: row }, cells.map((spans, column) => h((content.headerRow && row === 0) || (content.headerColumn && column === 0) ? "th" : "td", { key: column }, cell(spans, row, column)))))))),
        props.page.canWrite ? h("div", { class: "note-tools" }, [
          small("Add row", () => add(height)), small("Add column", () => set(rows().map((cells) => [...cells, []]))),
          height > 1 ? small("Remove row", () => set(rows().slice(0, -1))) : null, width > 1 ? small("Remove column", () => set(rows().map((cells) => cells.slice(0, -1)))) : null,
          small(content.headerRow ? "No header row" : "Header row", () => set(rows(), { headerRow: !content.headerRow })),
        ]) : null,
      ]);
    };
  },
};

/** A file that we keep, shown or offered; one of the web is a link, since pages load nothing from there. */
const Media = {
  props: ["page", "block"],
  setup: (props) => () => {
    const { page, block } = props;
    const { fileId, url, name, alt = "", caption } = block.content;
    const own = fileId ? page.files[fileId] : null;
    const label = name ?? alt ?? "";
    const shown = own && block.kind === "image" ? h("img", { src: own, alt, loading: "lazy" })
      : own ? h("a", { href: own, download: "" }, `↓ ${label || "File"}`)
        : url ? outside(url, label || url) : h("span", { class: "quiet" }, `${label || "File"} (not available)`);
    return h("figure", null, [
      shown, caption ? h("figcaption", { class: "quiet" }, caption) : null,
      page.canWrite ? h("div", { class: "note-tools" }, [small("Edit", () => page.editMedia(block))]) : null,
    ]);
  },
};

const Bookmark = {
  props: ["page", "block"],
  setup: (props) => () => {
    const { page, block } = props;
    const { url, title, description, caption } = block.content;
    return h("div", { class: "note-card" }, [
      outside(url, title || url), description ? h("p", null, description) : null, h("p", { class: "quiet" }, caption || new URL(url).hostname),
      page.canWrite ? h("div", { class: "note-tools" }, [small("Edit", () => page.editLink(block))]) : null,
    ]);
  },
};

/** A link to something of the workspace, by its title. */
const linkTo = (key, path, address) => ({
  props: ["page", "block"],
  setup(props) {
    const title = ref("…");
    const load = async () => { title.value = await call("GET", path(props.block.content[key])).then((one) => one.title || "Untitled", () => "Not available"); };
    onMounted(load);
    watch(() => props.block.content[key], load);
    return () => h("a", { class: "note-card", href: address(props.block.content[key]) }, title.value);
  },
});

/** The first records of a view, as a table that leads to them. */
const DatabaseView = {
  props: ["page", "block"],
  setup(props) {
    const shown = shallowRef(null);
    const problem = ref("");
    async function load() {
      const { databaseId, viewId } = props.block.content;
      try {
        const { database, fields, views } = await call("GET", `/workspaces/${props.page.workspaceId}/databases/${databaseId}/facts`);
        const view = views.find((one) => one.id === viewId);
        const page = await call("POST", `/v1/databases/${databaseId}/records/query`, { ...(view ? { viewId } : {}), timezone: zone, limit: ROWS });
        const wanted = (view?.manifest.fields ?? []).filter((one) => one.visible !== false).map((one) => one.key);
        const hidden = new Set((view?.manifest.fields ?? []).filter((one) => one.visible === false).map((one) => one.key));
        const columns = [...wanted.map((key) => fields.find((one) => one.key === key)), ...fields.filter((one) => !wanted.includes(one.key) && !hidden.has(one.key) && one.part !== "system")].filter((one) => one && one.key !== "title").slice(0, 6);
        if (needsPeople(columns)) await loadPeople();
        problem.value = "";
        shown.value = { database, view, columns, records: page.records, isCut: Boolean(page.cursor) };
      } catch (error) {
        problem.value = error.status === 404 || error.status === 403 ? "This database is not available." : error.message;
      }
    }
    onMounted(load);
    watch(() => [props.block.content.databaseId, props.block.content.viewId].join(), load);
    return () => {
      if (problem.value) return h("p", { class: "note-card quiet" }, problem.value);
      if (!shown.value) return h("p", { class: "note-card quiet" }, "Loading…");
      const { database, view, columns, records, isCut } = shown.value;
      const address = `/workspaces/${database.workspaceId}/databases/${database.id}${view ? `?view=${view.id}` : ""}`;
      return h("div", { class: "note-view" }, [
        h("a", { href: address, class: "note-view-title" }, props.block.content.title || (view ? `${database.label} · ${view.label}` : database.label)),
        h("div", { class: "card scroll" }, h("table", { class: "table" }, [
          h("thead", null, h("tr", null, [h("th", { scope: "col" }, "Title"), ...columns.map((field) => h("th", { scope: "col", key: field.key }, field.label))])),
          h("tbody", null, records.map((record) => h("tr", { key: record.id }, [
            h("td", { class: "main" }, h("a", { href: `/records/${record.id}` }, record.title || "Untitled")), ...columns.map((field) => h("td", { key: field.key }, shownValue(field, valueOf(record, field)))),
          ]))),
        ])),
        records.length === 0 ? h("p", { class: "quiet" }, "No records") : isCut ? h("a", { href: address, class: "quiet" }, "View all") : null,
      ]);
    };
  },
};

const Contents = {
  props: ["page", "block"],
  setup: (props) => () => {
    const heads = [...walk(props.page.tree.blocks)].filter((one) => one.kind.startsWith("heading_") && textOf(one.content.text));
    if (heads.length === 0) return h("p", { class: "quiet" }, "No headings yet");
    return h("nav", { class: "note-contents", "aria-label": "Table of contents" }, heads.map((one) => h("a", {
      key: one.id, "data-level": one.kind.at(-1), href: `#${one.id}`,
      onClick: (event) => { event.preventDefault(); document.querySelector(`[data-block="${one.id}"]`)?.scrollIntoView({ block: "start" }); props.page.focus({ id: one.id, at: Infinity }); },
    }, textOf(one.content.text))));
  },
};

export const PARTS = {
  code: Code, equation: Equation, table: Table, divider: { render: () => h("hr") }, image: Media, video: Media, audio: Media, file: Media, bookmark: Bookmark, embed: Bookmark,
  item_link: linkTo("itemId", (id) => `/v1/items/${id}`, (id) => `/items/${id}`), record_link: linkTo("recordId", (id) => `/v1/records/${id}`, (id) => `/records/${id}`),
  database_view: DatabaseView, table_of_contents: Contents, column_list: { render: () => null }, column: { render: () => null },
  unknown: { props: ["page", "block"], setup: (props) => () => h("p", { class: "quiet" }, props.block.kind) },
};

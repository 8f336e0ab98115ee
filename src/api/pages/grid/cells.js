// A row of the table, and its cells as they are shown.

import { editorOf } from "./editors.js";
import { cellKey } from "./edits.js";
import { isNumeric, isWritten, textOf, valueOf } from "./values.js";

const { h } = Vue;

const COLORS = new Set(["gray", "brown", "orange", "yellow", "green", "blue", "purple", "pink", "red", "teal"]);
const chip = (text, color, key) => h("span", { class: "option", key, "data-color": COLORS.has(color?.toLowerCase()) ? color.toLowerCase() : "gray" }, text);
const isWeb = (text) => /^https?:\/\//i.test(text);

/** A value as a cell shows it. */
function shown(field, value, table) {
  const { names } = table;
  switch (field.kind) {
    case "select": case "status": case "multi_select": {
      if (value === null) return null;
      return [value].flat().map((key) => {
        const option = field.options.find((one) => one.key === key);
        return chip(option?.name ?? String(key), option?.color, key);
      });
    }
    case "relation": return value.map((id) => chip(names.title(id) || "Untitled", "gray", id));
    case "person": return value === null ? null : [value].flat().map((id) => chip(names.person(id), "gray", id));
    case "file": return value === null ? null : value.map((id) => {
      const file = names.files.get(id);
      return file?.downloadUrl ? h("a", { key: id, class: "option", href: file.downloadUrl, download: "", tabindex: -1 }, file.name) : chip(names.file(id), "gray", id);
    });
    case "url": return value && isWeb(value) ? h("a", { href: value, tabindex: -1, target: "_blank", rel: "noopener noreferrer nofollow", referrerpolicy: "no-referrer" }, value) : value;
    case "email": return value ? h("a", { href: `mailto:${value}`, tabindex: -1 }, value) : null;
    case "rating": return value === null ? null : h("span", { class: "stars", role: "img", "aria-label": `${value} of 10` }, textOf(field, value, names));
    default: {
      const text = textOf(field, value, names);
      return text.length > 300 ? `${text.slice(0, 300)}…` : text;
    }
  }
}

function tick(field, value, record, table) {
  const isOn = value === true;
  return h("span", {
    class: ["tick-box", { on: isOn }], role: "checkbox", "aria-checked": isOn ? "true" : "false", "aria-disabled": table.store.canWrite ? undefined : "true", "aria-label": field.label,
    onMousedown: (event) => { if (event.button === 0 && !event.shiftKey && table.store.canWrite) event.preventDefault(); },
    onClick: (event) => { if (!event.shiftKey && table.store.canWrite) table.toggle(record, field); },
  }, isOn ? "✓" : "");
}

function Cell({ table, record, field, row, col, state }) {
  const refused = table.edits.refused.get(cellKey(record.id, field.key));
  const value = valueOf(record, field);
  const { isActive, isIn, isEditing, seed, left } = state;
  const classes = ["cell", `kind-${field.kind}`, {
    number: isNumeric(field), active: isActive, in: isIn, refused, editing: isEditing, frozen: left !== null, computed: !isWritten(field), found: table.isHit(record, field),
  }];
  const place = { style: left === null ? undefined : { left: `${left}px` } };
  const base = { class: classes, role: col === 0 ? "rowheader" : "gridcell", id: `cell-${row}-${col}`, "aria-colindex": col + 2, "aria-selected": isIn || isActive ? "true" : undefined, "data-row": row, "data-col": col, "data-key": field.key, ...place };
  if (isEditing) {
    const editor = editorOf(field);
    return h("div", base, h(editor, {
      key: `${record.id}/${field.key}`, field, value, seed, names: table.names, refused,
      search: field.kind === "relation" ? (text) => table.searchRecords(field, text) : null,
      onCommit: (entry, way) => table.commit(record, field, entry, way), onCancel: () => table.cancelEdit(),
    }));
  }
  const described = isActive && refused ? `fault-${row}-${col}` : undefined;
  return h("div", { ...base, "aria-invalid": refused ? "true" : undefined, "aria-describedby": described, "aria-readonly": isWritten(field) && table.store.canWrite ? undefined : "true" }, [
    field.kind === "checkbox" && !refused ? tick(field, value, record, table) : h("span", { class: "cell-text" }, refused ? refused.text : shown(field, value, table)),
    isActive && table.store.canWrite && ["select", "status", "multi_select", "person", "relation"].includes(field.kind)
      ? h("button", { type: "button", class: "open-list", tabindex: -1, "aria-label": `Choose ${field.label}`, onClick: () => table.edit() }, "▾") : null,
    refused && isActive ? h("span", { class: "cell-fault", id: described, role: "alert" }, [refused.message, " ", h("button", { type: "button", class: "link", tabindex: -1, onClick: () => table.forget(record, field) }, "Discard")]) : null,
    state.hasHandle ? h("span", { class: "fill-handle", "aria-hidden": "true", onPointerdown: (event) => table.beginFill(event) }) : null,
  ]);
}

const EDGE = { isActive: false, isIn: false, isEditing: false, hasHandle: false, seed: null };

/** The state of a cell, from where the selection touches its row. */
function stateOf(props, col, left) {
  const { touched } = props;
  if (!touched) return { ...EDGE, left };
  const isActive = touched.active === col;
  return {
    left,
    isActive,
    isIn: touched.from <= col && col <= touched.to,
    isEditing: isActive && touched.isEditing,
    seed: touched.seed,
    hasHandle: touched.handle === col,
  };
}

export const Row = {
  props: ["table", "record", "index", "number", "line", "columns", "lefts", "touched", "isChecked", "top"],
  setup: (props) => () => {
    const { table, record, index, columns, lefts } = props;
    return h("div", { class: ["row", { checked: props.isChecked, editing: props.touched?.isEditing, archived: record.archived }], role: "row", "aria-rowindex": props.line + 2, "data-record": record.id, style: { top: `${props.top}px` } }, [
      h("div", { class: "gutter frozen", role: "gridcell", "aria-colindex": 1, "data-color": record.color }, [
        h("span", { class: "row-number", "aria-hidden": "true" }, props.number),
        table.store.canWrite ? h("input", {
          type: "checkbox", class: "pick-row", tabindex: -1, checked: props.isChecked, "aria-label": `Select ${record.title || "Untitled"}`,
          onClick: (event) => table.check(index, event.target.checked, event.shiftKey),
        }) : null,
        h("a", { class: "open-row", href: `/records/${record.id}`, tabindex: -1, "aria-label": `Open ${record.title || "Untitled"}`, onClick: (event) => { if (!event.ctrlKey && !event.metaKey) { event.preventDefault(); table.openBeside(index); } } }, "⤢"),
      ]),
      columns.map((field, col) => Cell({ table, record, field, row: index, col, state: stateOf(props, col, lefts[col] ?? null) })),
    ]);
  },
};

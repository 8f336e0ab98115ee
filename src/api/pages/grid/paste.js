// Pasting a table: what goes where, what does not fit, and the question about it.

import { isWritten, read, readExact, textOf, valueOf } from "./values.js";

const { h, onMounted, ref } = Vue;

export const MOST_CELLS = 100_000;
const MOST_TITLES = 100;
const SHOWN = 50;

/** The cells that a table covers: repeated where the range is a multiple of it. */
export function spread(cells, range) {
  const height = cells.length;
  const width = Math.max(...cells.map((row) => row.length));
  const rows = range.bottom - range.top + 1;
  const cols = range.right - range.left + 1;
  const down = rows % height === 0 ? rows : height;
  const across = cols % width === 0 ? cols : width;
  return Array.from({ length: down }, (_, row) => Array.from({ length: across }, (__, col) => cells[row % height][col % width] ?? { text: "" }));
}

/** Ids of records by their titles, for each relation that the texts name; several of one title are none. */
async function titlesOf(lookups, call) {
  const found = new Map();
  for (const [field, texts] of lookups) {
    const ids = new Map();
    const all = [...texts];
    for (let at = 0; at < all.length; at += MOST_TITLES) {
      const page = await call("POST", `/v1/databases/${field.settings.databaseId}/records/query`, { filter: { field: "title", op: "in", value: all.slice(at, at + MOST_TITLES) }, fields: [], limit: 200 });
      for (const one of page.records) ids.set(one.title, [...(ids.get(one.title) ?? []), one.id]);
    }
    found.set(field.key, ids);
  }
  return found;
}

const partsOf = (text) => text.split(/[,;\n]/).map((one) => one.trim()).filter(Boolean);

function related(field, text, ids, names) {
  const many = ids.get(text) ? [text] : partsOf(text);
  const chosen = [];
  for (const part of many) {
    const known = ids.get(part) ?? [];
    if (known.length !== 1) return { problem: known.length ? `Several records are named “${part}”.` : `No record is named “${part}”.` };
    names.titles.set(known[0], part);
    chosen.push(known[0]);
  }
  if (chosen.length > 1 && field.settings?.cardinality === "one") return { problem: `${field.label} takes one record.` };
  return { value: [...new Set(chosen)] };
}

/**
 * The effect of a paste: `changes` of records that are there, `creations` of new ones below the last
 * row, and `misfits`, which have a reason.
 */
export async function plan({ cells, range, columns, records, names, call, canAdd, numberOf }) {
  const table = spread(cells, range);
  const lookups = new Map();
  const outcomes = table.map((row, down) => row.map((cell, across) => {
    const field = columns[range.left + across];
    if (!field) return cell.text === "" ? null : { problem: "There is no field for this column." };
    const outcome = isWritten(field) ? readExact(field, cell, names) : read(field, cell.text, names);
    if (outcome.lookup !== undefined) {
      const texts = lookups.get(field) ?? new Set();
      for (const one of [outcome.lookup, ...partsOf(outcome.lookup)]) texts.add(one);
      lookups.set(field, texts);
    }
    if (outcome.problem && cell.text === "") return null;
    return { ...outcome, field, text: cell.text, row: range.top + down };
  }));
  const titles = await titlesOf(lookups, call);
  const changes = [];
  const creations = [];
  const misfits = [];
  outcomes.forEach((row, down) => {
    const record = records[range.top + down];
    const creation = { data: {}, relations: {}, texts: {} };
    row.forEach((outcome, across) => {
      if (!outcome) return;
      const { field, text } = outcome;
      const settled = outcome.lookup === undefined ? outcome : related(field, outcome.lookup, titles.get(field.key), names);
      if (settled.problem || (!record && !canAdd)) {
        misfits.push({ row: numberOf(range.top + down), field: field?.label ?? `Column ${across + 1}`, text: text ?? table[down][across].text, problem: settled.problem ?? "There is no record for this row." });
      } else if (record) changes.push({ id: record.id, key: field.key, before: valueOf(record, field), after: settled.value, text });
      else if (text !== "") {
        creation[field.kind === "relation" ? "relations" : "data"][field.key] = settled.value;
        creation.texts[field.key] = text;
      }
    });
    if (!record && canAdd) creations.push(creation);
  });
  return { changes, creations, misfits };
}

/** Texts and exact values of a range, for the clipboard. */
export const copied = (rows, fields, names) => rows.map((record) => fields.map((field) => {
  const value = valueOf(record, field);
  const isText = typeof value === "string" || Array.isArray(value);
  return { text: textOf(field, value, names, { plain: true }), isText, own: value === null || field.kind === "relation" ? undefined : { kind: field.kind, value } };
}));

const count = (number, one, many = `${one}s`) => `${number.toLocaleString()} ${number === 1 ? one : many}`;

/** Asks about values that do not fit. Emits `paste` and `close`. */
export const PasteDialog = {
  props: ["plan"],
  emits: ["paste", "close"],
  setup(props, { emit }) {
    const dialog = ref(null);
    onMounted(() => dialog.value.showModal());
    return () => {
      const { changes, creations, misfits } = props.plan;
      const rows = new Set(changes.map((one) => one.id)).size;
      const isAny = changes.length + creations.length > 0;
      return h("dialog", { ref: dialog, id: "paste", class: "paste-preview", "aria-labelledby": "paste-title", onClose: () => emit("close") }, [
        h("h2", { id: "paste-title" }, `${count(misfits.length, "value doesn’t", "values don’t")} fit`),
        h("p", null, isAny ? `${[changes.length > 0 ? `${count(changes.length, "value")} in ${count(rows, "record")}` : "", creations.length > 0 ? count(creations.length, "new record") : ""].filter(Boolean).join(" and ")} can be pasted. The values below are left out.` : "None of the values can be pasted."),
        h("div", { class: "misfits" }, h("table", { class: "table" }, [
          h("thead", null, h("tr", null, ["Row", "Field", "Value", "Reason"].map((name) => h("th", { key: name, scope: "col" }, name)))),
          h("tbody", null, misfits.slice(0, SHOWN).map((one, at) => h("tr", { key: at }, [h("td", null, one.row), h("td", null, one.field), h("td", { class: "misfit-text" }, one.text), h("td", null, one.problem)]))),
        ])),
        misfits.length > SHOWN ? h("p", { class: "quiet" }, `Showing the first ${SHOWN}`) : null,
        h("div", { class: "buttons" }, [
          h("button", { type: "button", class: "button", onClick: () => dialog.value.close() }, "Cancel"),
          h("button", { type: "button", class: "button primary", disabled: !isAny, autofocus: true, onClick: () => { emit("paste"); dialog.value.close(); } }, "Paste the rest"),
        ]),
      ]);
    };
  },
};

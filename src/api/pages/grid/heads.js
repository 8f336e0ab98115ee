// The heads of groups: name, number of records and summaries. A head folds its rows, and takes new records.

import { figure, nameIn, nameOf } from "/pages/views/groups.js";
import { aggregateName } from "/pages/views/settings.js";
import { fieldsByKey } from "/pages/views/store.js";
import { optionTag } from "/pages/views/values.js";
import { isWritten, LANGUAGE, read } from "./values.js";

const { h, nextTick } = Vue;

/** The values of a group, which a new record needs to stand in it. */
export function valuesOf(table, group) {
  const { levels } = table.records.division;
  return Object.assign({}, ...group.chain.map(({ value }, depth) => {
    const { field } = levels[depth];
    if (value === null || !isWritten(field)) return {};
    return { [field.key]: field.form === "moment" ? read(field, `${value} 00:00`, table.names).value : value };
  }));
}

/** Add a record as the last one of a group. */
export function addTo(table, group) {
  const { division } = table.records;
  if (division.folded.has(group.path)) fold(table, group, false);
  const { first, length } = division.parts.find((one) => one.group === group && !one.isHead);
  return table.addAt(first + length, { ...table.shared, ...valuesOf(table, group) });
}

/** Hide the rows of a group, or show them. What is hidden is not selected. */
export function fold(table, group, isFolded) {
  const { records, checked } = table;
  for (const { id } of isFolded ? records.division.rowsIn(group) : []) checked.delete(id);
  records.fold([group], isFolded);
  table.keepFolded(records.division.folded);
}

export function foldAll(table, isFolded) {
  const { records, checked } = table;
  checked.clear();
  records.fold(records.division.heads, isFolded);
  table.keepFolded(records.division.folded);
}

/** Count the groups anew: what one looks at stays where it is. */
export async function recount(table) {
  const { records } = table;
  const id = records.list[table.firstSeen()]?.id;
  const before = records.division.lineOf(records.at(id));
  await records.count();
  await nextTick();
  const at = records.at(id);
  if (at >= 0) table.keepPlace(records.division.lineOf(at) - before);
}

/** True when a record can be added to a group: it is an innermost one, and a person writes its values. */
const takesRecords = (table, group) => table.store.canWrite && !group.groups && table.records.division.levels.every(({ field }) => isWritten(field));

/** The figures of a field among summaries, in words. */
function summaryOf(aggregates, figures, field) {
  return aggregates.filter((one) => one.field === field.key && figures[nameIn(one)] != null)
    .map((one) => `${aggregateName(one.op)} ${figure(one, figures[nameIn(one)])}`).join(" · ");
}

/** A cell with the figures of a field; its title has what is cut off. */
export function figureCell(aggregates, figures, field, more) {
  const text = summaryOf(aggregates, figures, field);
  return h("div", { key: field.key, class: "group-figure", role: "gridcell", title: text || undefined, ...more }, text);
}

export function groupHead(table, group, line, top) {
  const { division, grouping } = table.records;
  const { field: { key }, granularity } = division.levels[group.depth];
  const field = fieldsByKey.get(key);
  const isFolded = division.folded.has(group.path);
  const { name, color } = nameOf(field, granularity, { key: String(group.value), value: group.value }, new Map());
  const count = group.count.toLocaleString(LANGUAGE);
  const keydown = (event) => {
    if (event.key === "ArrowDown") table.go(line + 1);
    else if (event.key === "ArrowUp") table.go(line - 1);
    else if (event.key === "ArrowLeft") fold(table, group, true);
    else if (event.key === "ArrowRight") fold(table, group, false);
    else if (event.key === "Enter" && event.shiftKey && takesRecords(table, group)) addTo(table, group);
    else if (event.key === "Escape") table.focus();
    else return;
    event.preventDefault();
    event.stopPropagation();
  };
  return h("div", { key: group.path, class: ["row group-head", { inner: group.depth > 0 }], role: "row", "aria-rowindex": line + 2, style: { top: `${top}px` } }, [
    h("div", { class: "group-name frozen", role: "rowheader", "aria-colindex": 1, "aria-colspan": 2 }, [
      h("button", { type: "button", class: "fold", tabindex: -1, "data-group": group.path, "data-line": line, "aria-expanded": isFolded ? "false" : "true", title: `${field.label}: ${name}`, onClick: () => fold(table, group, !isFolded), onKeydown: keydown }, [
        h("span", { class: "fold-mark", "aria-hidden": "true" }, isFolded ? "▸" : "▾"),
        h("span", { class: "hidden" }, `${field.label}: `),
        color && group.value !== null ? optionTag({ name, color }) : h("span", { class: ["group-value", { quiet: group.value === null }] }, name),
        h("span", { class: "group-count quiet" }, [count, h("span", { class: "hidden" }, group.count === 1 ? " record" : " records")]),
      ]),
      takesRecords(table, group) ? h("button", { type: "button", class: "add-to", tabindex: -1, "aria-label": `Add a record to ${name}`, title: "Add record", onClick: () => addTo(table, group) }, "+") : null,
    ]),
    table.columns.value.slice(1).map((column, at) => figureCell(grouping.aggregates, group.figures, column, { "aria-colindex": at + 3 })),
  ]);
}

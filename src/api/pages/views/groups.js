// Groups of records: what they are called, how many records they have, and their sums.

import { addressOf } from "./controls.js";
import { aggregateName } from "./settings.js";
import { ask, call, facts, fieldsByKey, language } from "./store.js";
import { divides } from "/pages/grid/groups.js";
import { numberText } from "/pages/words.js";
import { dayText, loadPeople, needsPeople, optionOf, optionTag, people } from "./values.js";

const { h } = globalThis.Vue;

/** The titles of the related records that groups are of, by their ids. */
export async function titlesOf(groups) {
  const records = await Promise.all(groups.slice(0, 30).map((group) => (group.value ? call("GET", `/v1/records/${group.value}`).catch(() => null) : null)));
  return new Map(records.filter(Boolean).map((record) => [record.id, record.title || "Untitled"]));
}

const month = new Intl.DateTimeFormat(language, { month: "short", year: "numeric", timeZone: "UTC" });

function periodText(text, granularity) {
  const date = new Date(`${text.slice(0, 10)}T00:00:00Z`);
  if (granularity === "month") return month.format(date);
  if (granularity === "quarter") return `Q${Math.floor(date.getUTCMonth() / 3) + 1} ${date.getUTCFullYear()}`;
  return granularity === "year" ? String(date.getUTCFullYear()) : dayText(text.slice(0, 10));
}

/** The name of a group, with the colour of an option. */
export function nameOf(field, granularity, { key, value }, titles) {
  if (value === null) return { name: "Empty", color: "gray" };
  switch (field.form) {
    case "option": case "options": {
      const option = optionOf(field, value);
      return { name: option.name, color: option.color };
    }
    case "user": case "users": return { name: people.byId.get(value) ?? "Unknown" };
    case "records": return { name: titles.get(value) ?? "Unknown" };
    case "boolean": return { name: value ? "Yes" : "No", color: value ? "green" : "gray" };
    case "day": case "moment": return { name: periodText(String(value), granularity ?? "day") };
    case "number": return { name: numberText(field, value) };
    default: return { name: key };
  }
}

const levelsOf = (view) => [view?.manifest.groupBy ?? []].flat();
/** Forms whose records can be in several groups at once. */
const MANY = new Set(["options", "users", "records"]);
const COMPARED = new Set(["option", "options", "text", "number", "boolean"]);
const OF_THE_FIELD = new Set(["sum", "avg", "min", "max", "median", "range"]);
export const nameIn = (one) => one.as ?? (one.field ? `${one.op}_${one.field}` : "count");

/** The groups of a view whose table is not divided by them: its heads would say the same. */
export async function loadGroups(store) {
  const levels = levelsOf(store.view);
  const fields = levels.map((level) => fieldsByKey.get(level.field));
  if (levels.length === 0 || fields.includes(undefined)) return { groups: null };
  const table = document.getElementById("table");
  if (table && table.dataset.isCut !== "true" && fields.every(divides)) return { groups: null };
  if (needsPeople(fields)) await loadPeople();
  const page = await ask(store, { limit: 1, fields: ["title"] });
  const related = fields.flatMap((field, depth) => (field.form === "records" ? [depth === 0 ? page.groups : page.groups.flatMap((group) => group.groups ?? [])] : []));
  const titles = await titlesOf(related.flat());
  return { groups: { levels, fields, titles, groups: page.groups, totals: page.aggregates ?? {}, aggregates: store.view.manifest.aggregates ?? [], isCut: Boolean(page.groupsTruncated) } };
}

export function figure(one, value) {
  if (typeof value === "number") return numberText(OF_THE_FIELD.has(one.op) ? fieldsByKey.get(one.field) : null, value);
  return typeof value === "string" ? value.slice(0, 10) : "";
}

function groupName(field, level, group, titles) {
  const { name } = nameOf(field, level.granularity, group, titles);
  const isOption = group.value !== null && (field.form === "option" || field.form === "options");
  const shown = isOption ? optionTag(optionOf(field, group.value)) : name;
  if (!COMPARED.has(field.form)) return shown;
  const query = new URLSearchParams(new URL(addressOf(facts.view.id), location.origin).search);
  query.set("field", field.key);
  query.set("comparison", group.value === null ? "empty" : "is");
  if (group.value !== null) query.set("value", field.form === "boolean" ? (group.value ? "yes" : "no") : group.key);
  return h("a", { href: `?${query}` }, shown);
}

function rows({ levels, fields, titles, aggregates }, groups, depth = 0, path = "") {
  return groups.flatMap((group) => [
    h("tr", { key: `${path}/${group.key}`, class: { inner: depth > 0 } }, [
      h("th", { scope: "row", class: depth > 0 ? "inner-name" : "main" }, depth === 0 ? groupName(fields[0], levels[0], group, titles) : nameOf(fields[1], levels[1].granularity, group, titles).name),
      h("td", { class: "number end" }, group.count.toLocaleString(language)),
      ...aggregates.map((one) => h("td", { class: "number end", key: nameIn(one) }, figure(one, group.aggregates[nameIn(one)]))),
    ]),
    ...rows({ levels, fields, titles, aggregates }, group.groups ?? [], depth + 1, group.key),
  ]);
}

/** The groups of a view with their counts and sums; nothing for a view without groups. */
export const Groups = {
  props: ["store"],
  setup: (props) => () => {
    const { groups, problem } = props.store;
    if (problem) return h("p", { class: "alert", role: "alert" }, problem);
    if (!groups) return null;
    const { fields, aggregates, totals } = groups;
    return h("div", { class: "card scroll view-groups" }, h("table", { class: "table" }, [
      h("caption", { class: "hidden" }, "Groups"),
      h("thead", null, h("tr", null, [
        h("th", { scope: "col" }, fields.map((field) => field.label).join(", ")), h("th", { scope: "col", class: "end" }, "Records"),
        ...aggregates.map((one) => h("th", { scope: "col", class: "end", key: nameIn(one) }, one.op === "count" ? aggregateName("count") : `${aggregateName(one.op)}: ${fieldsByKey.get(one.field)?.label ?? one.field}`)),
      ])),
      h("tbody", null, rows(groups, groups.groups)),
      aggregates.length > 0 ? h("tfoot", null, h("tr", null, [h("th", { scope: "row" }, "All"), h("td", { class: "number end" }, groups.isCut || MANY.has(fields[0].form) ? "" : groups.groups.reduce((sum, group) => sum + group.count, 0).toLocaleString(language)), ...aggregates.map((one) => h("td", { class: "number end", key: nameIn(one) }, figure(one, totals[nameIn(one)])))])) : null,
    ]), groups.isCut ? h("p", { class: "quiet" }, "Not all groups are shown.") : null);
  },
};

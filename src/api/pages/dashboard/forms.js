// New widgets and their settings, asked for in dialogs.

import { call } from "/pages/views/store.js";
import { ask } from "/pages/notes/dialogs.js";
import { mediaContent } from "/pages/notes/menus.js";
import { inline } from "/pages/notes/paste.js";
import { safeLink, textOf } from "/pages/notes/text.js";
import { factsOf } from "./widgets.js";

const OPS = { count: "Number of records", sum: "Sum", avg: "Average", min: "Minimum", max: "Maximum", median: "Median", count_unique: "Distinct values" };
const PERIODS = ["day", "week", "month", "quarter", "year"].map((key) => ({ key, label: key }));
const choices = (list) => list.map(({ key, label }) => ({ key, label }));
const title = (content) => ({ name: "title", label: "Title (optional)", value: content.title ?? "", maxlength: 200 });
const kept = (values, content) => ({ ...(values.title ? { title: values.title } : {}), ...(content.filter ? { filter: content.filter } : {}) });

async function database(page, content) {
  const { databases } = await call("GET", `/v1/workspaces/${page.workspaceId}/databases?limit=200`);
  if (databases.length === 0) return page.say("This workspace has no databases."), null;
  const known = content.databaseId ?? page.databases[content.viewId] ?? "";
  const values = await ask({ title: "Database", action: "Next", fields: [{ name: "databaseId", label: "Database", value: known, options: choices(databases.map((one) => ({ key: one.id, label: one.label }))) }] });
  return values ? factsOf(page, values.databaseId) : null;
}

/** The function of a figure and its field; null for a field that it does not fit. */
function aggregateOf(page, fields, { op, field }) {
  if (op === "count") return { op };
  const known = fields.find((one) => one.key === field);
  if (known?.aggregates.includes(op)) return { op, field };
  page.say(`${OPS[op]} does not apply to ${known?.label ?? "this field"}.`);
  return null;
}

function figureFields(fields, { op = "count", field = "" } = {}) {
  const measured = fields.filter((one) => Object.keys(OPS).some((name) => name !== "count" && one.aggregates.includes(name)));
  return [
    { name: "op", label: "Figure", value: op, options: choices(Object.entries(OPS).map(([key, label]) => ({ key, label }))) },
    { name: "field", label: "Of the field (not for the number of records)", value: field, options: choices(measured) },
  ];
}

async function number(page, content) {
  const known = await database(page, content);
  if (!known) return null;
  const values = await ask({ title: "Number", fields: [...figureFields(known.fields, content.aggregate), title(content)] });
  const aggregate = values && aggregateOf(page, known.fields, values);
  return aggregate ? { databaseId: known.database.id, aggregate, ...kept(values, content) } : null;
}

async function chart(page, content) {
  const known = await database(page, content);
  if (!known) return null;
  const types = known.chartTypes.filter((one) => one.key !== "number");
  const values = await ask({ title: "Chart", fields: [
    { name: "type", label: "Chart type", value: content.type ?? "bar", options: choices(types) },
    { name: "xFieldKey", label: "Values of", value: content.xFieldKey ?? "", options: choices(known.fields.filter((one) => one.isGrouped)) },
    { name: "granularity", label: "Period (for dates)", value: content.granularity ?? "month", options: PERIODS },
    ...figureFields(known.fields, content.aggregate), title(content),
  ] });
  const aggregate = values && aggregateOf(page, known.fields, values);
  if (!aggregate) return null;
  const isDate = ["day", "moment"].includes(known.fields.find((one) => one.key === values.xFieldKey)?.form);
  return { databaseId: known.database.id, type: values.type, xFieldKey: values.xFieldKey, ...(isDate ? { granularity: values.granularity } : {}), aggregate, ...kept(values, content) };
}

async function view(page, content) {
  const known = await database(page, content);
  if (!known) return null;
  const shown = known.views.filter((one) => one.kind !== "form");
  if (shown.length === 0) return page.say("This database has no views. Create one first."), null;
  const values = await ask({ title: "View", fields: [{ name: "viewId", label: "View", value: content.viewId ?? "", options: choices(shown.map((one) => ({ key: one.id, label: one.label }))) }, title(content)] });
  if (!values) return null;
  page.databases[values.viewId] = known.database.id;
  return { viewId: values.viewId, ...kept(values, {}) };
}

const listing = (name) => async (_, content) => {
  const values = await ask({ title: name, fields: [{ name: "limit", label: "Rows", type: "number", min: 1, max: 50, value: content.limit ?? 10 }, title(content)] });
  return values ? { limit: Math.min(50, Math.max(1, Number(values.limit) || 10)), ...kept(values, {}) } : null;
};

async function text(_, content) {
  const values = await ask({ title: "Text", fields: [{ name: "text", label: "Text", value: textOf(content.text), maxlength: 5000 }] });
  return values ? { text: inline(values.text) } : null;
}

async function shortcut(page, content) {
  const { items } = await call("GET", `/v1/items?workspaceId=${page.workspaceId}&limit=200`);
  const values = await ask({ title: "Link", fields: [
    { name: "itemId", label: "Item", value: content.itemId ?? "", options: [{ key: "", label: "—" }, ...items.map((one) => ({ key: one.id, label: one.title || "Untitled" }))] },
    { name: "url", label: "Or a URL", type: "url", value: content.url ?? "", placeholder: "https://" }, title(content),
  ] });
  if (!values) return null;
  const url = values.url ? safeLink(values.url) : null;
  return values.itemId ? { itemId: values.itemId, ...kept(values, {}) } : url ? { url, ...kept(values, {}) } : null;
}

async function embed(_, content) {
  const values = await ask({ title: "Web page", fields: [{ name: "url", label: "URL", type: "url", required: true, value: content.url ?? "", placeholder: "https://" }, { name: "caption", label: "Caption", value: content.caption ?? "" }] });
  const url = values && safeLink(values.url);
  return url ? { url, ...(values.caption ? { caption: values.caption } : {}) } : null;
}

/** The content of a widget by its kind, from what it was before; null for none. */
export const FORMS = {
  number, chart, view, text, shortcut, embed, runs: listing("Latest runs"), automations: listing("Automations"), recent: listing("Items"),
  image: (page, content) => mediaContent(page, "image", content),
};

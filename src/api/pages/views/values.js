// Values of records as texts: options with colours, people and related records by name, dates.

import { numberText } from "/pages/words.js";
import { call, facts, language, zone } from "./store.js";

const { h, shallowReactive } = globalThis.Vue;

/** Members by their ids, once a name is needed. */
export const people = shallowReactive({ list: null, byId: new Map() });
let asked = null;

export function loadPeople() {
  asked ??= (async () => {
    const list = [];
    let cursor;
    do {
      const query = new URLSearchParams({ limit: "200", ...(cursor ? { cursor } : {}) });
      const page = await call("GET", `/v1/workspaces/${facts.database.workspaceId}/members?${query}`);
      list.push(...page.members.map((one) => ({ id: one.userId, label: one.name ?? one.email ?? one.userId })));
      cursor = page.cursor;
    } while (cursor && list.length < 1000);
    people.byId = new Map(list.map((one) => [one.id, one.label]));
    people.list = list;
  })().catch(() => {
    people.list = [];
  });
  return asked;
}

export const valueOf = (record, field) =>
  (field.part === "title" ? record.title : field.part === "relations" ? record.related[field.key] : record[field.part][field.key]);

const COLORS = new Set(["gray", "brown", "orange", "yellow", "green", "blue", "purple", "pink", "red", "teal"]);
export const colorOf = (color) => (COLORS.has(color?.toLowerCase()) ? color.toLowerCase() : "gray");

export function optionOf(field, key) {
  return field.options.find((one) => one.key === key) ?? { key, name: String(key), color: "gray" };
}

export const optionTag = (option) => h("span", { class: "option", "data-color": colorOf(option.color) }, option.name);

const day = new Intl.DateTimeFormat(language, { day: "numeric", month: "short", year: "numeric", timeZone: "UTC" });
const moment = new Intl.DateTimeFormat(language, { dateStyle: "medium", timeStyle: "short", timeZone: zone });

export const dayText = (text) => day.format(new Date(`${text}T00:00:00Z`));

/** A length in milliseconds as `1:05:00`. */
function clock(ms) {
  const seconds = Math.round(ms / 1000);
  const two = (number) => String(number).padStart(2, "0");
  return `${Math.floor(seconds / 3600)}:${two(Math.floor(seconds / 60) % 60)}:${two(seconds % 60)}`;
}

/** A value in words, "" for none. */
export function textOf(field, value) {
  if (value === null || value === undefined || value === "") return "";
  switch (field.form) {
    case "option": return optionOf(field, value).name;
    case "options": return value.map((key) => optionOf(field, key).name).join(", ");
    case "user": return people.byId.get(value) ?? "Unknown";
    case "users": return value.map((id) => people.byId.get(id) ?? "Unknown").join(", ");
    case "records": return value.map((one) => one.title || "Untitled").join(", ");
    case "files": return value.map((one) => one.name ?? "file").join(", ");
    case "boolean": return value ? "Yes" : "No";
    case "day": return dayText(value);
    case "moment": return moment.format(new Date(value));
    case "number":
      if (field.kind === "duration" || field.kind === "timer") return clock(value);
      return field.kind === "rating" ? "★".repeat(value) : numberText(field, value);
    default: return typeof value === "string" ? value : JSON.stringify(value);
  }
}

/** The same as part of a page; null for nothing. */
export function shownValue(field, value) {
  if (field.form === "option" && value) return optionTag(optionOf(field, value));
  if (field.form === "options" && value?.length) return h("span", { class: "parts" }, value.map((key) => optionTag(optionOf(field, key))));
  const text = textOf(field, value);
  return text === "" ? null : h("span", { class: "value-text" }, text.length > 120 ? `${text.slice(0, 119)}…` : text);
}

/** The values of a card: a tag speaks for itself, before any other value is the name of its field. */
export const cardValues = (fields, record) => fields.map((field) => {
  const value = shownValue(field, valueOf(record, field));
  if (!value) return null;
  const isNamed = field.form !== "option" && field.form !== "options";
  return h("span", { class: "card-value", key: field.key, title: field.label }, [isNamed ? h("span", { class: "card-label" }, field.label) : null, value]);
});

export const needsPeople = (fields) => fields.some((field) => field.form === "user" || field.form === "users");

/** The fields of a card: those that the view names, else the first of its columns. */
export function cardFields(view, fields, apart = []) {
  const known = new Map(fields.map((field) => [field.key, field]));
  const { cardFields: named, fields: columns } = view?.manifest ?? {};
  const shown = (columns ?? []).filter((one) => one.visible !== false).map((one) => one.key);
  const keys = named?.length ? named : shown.length ? shown.slice(0, 6) : [...known.keys()].slice(0, 5);
  return keys.filter((key) => key !== "title" && !apart.includes(key)).map((key) => known.get(key)).filter(Boolean);
}

/** The fields of a record, as an answer keeps only those of the view. */
export const fieldsAsked = (fields) => [...new Set(["title", ...fields.filter(Boolean).map((field) => field.key)])];

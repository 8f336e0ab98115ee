// Values of fields: as they are shown, as they are copied, and as a reader's texts are read.

import { numberText } from "/pages/words.js";

const root = document.documentElement;
export const LANGUAGE = root.dataset.language || navigator.language || "en";
export const ZONE = root.dataset.zone || Intl.DateTimeFormat().resolvedOptions().timeZone || "UTC";

const NUMBERS = new Set(["number", "currency", "percent"]);
const TEXTS = new Set(["text", "long_text", "rich_text", "email", "url", "phone"]);
const SYSTEM = new Set(["auto_number", "created_at", "updated_at", "created_by", "updated_by"]);
const COMPUTED = new Set(["rollup", "lookup", "formula", "timer"]);
export const LONG = new Set(["long_text", "rich_text", "json"]);
export const OPTIONS = new Set(["select", "status", "multi_select"]);

/** True when a person writes values of the field. */
export const isWritten = (field) => !SYSTEM.has(field.kind) && !COMPUTED.has(field.kind) && field.kind !== "button";
export const isNumeric = (field) => NUMBERS.has(field.kind) || ["rating", "duration", "auto_number"].includes(field.kind);
export const isSeveral = (field) => ["multi_select", "person", "file"].includes(field.kind)
  || (field.kind === "relation" && field.settings?.cardinality !== "one");

/** The value that a record has in a field; null for none. */
export function valueOf(record, field) {
  if (field.key === "title") return record.title || null;
  if (field.kind === "relation") return record.relations[field.key] ?? [];
  if (COMPUTED.has(field.kind)) return record.computed[field.key] ?? null;
  if (SYSTEM.has(field.kind)) return record.system[field.key] ?? null;
  return record.data[field.key] ?? null;
}

const ordered = (value) => JSON.stringify(value, (_, one) => (one && typeof one === "object" && !Array.isArray(one)
  ? Object.fromEntries(Object.entries(one).sort(([a], [b]) => (a < b ? -1 : 1))) : one));
const isEmpty = (value) => value === null || value === undefined || value === "" || (Array.isArray(value) && value.length === 0);

/** Equal values; none, an empty text and an empty list are one. */
export const isSame = (one, other) => (isEmpty(one) && isEmpty(other)) || ordered(one) === ordered(other);

/** The part of an operation that writes a value: relations have a place of their own. */
export function changeOf(field, value) {
  return field.kind === "relation" ? { relations: { [field.key]: value ?? [] } } : { data: { [field.key]: value ?? null } };
}

/** The values that a new record needs to pass a filter, where its conditions name one. */
export function passing(filter, fieldOf) {
  if (!filter) return {};
  if (filter.and) return Object.assign({}, ...filter.and.map((one) => passing(one, fieldOf)));
  const field = fieldOf(filter.field);
  const isOne = filter.op === "eq" && typeof filter.value !== "object" && field && isWritten(field) && field.kind !== "relation" && !isSeveral(field);
  return isOne ? { [field.key]: filter.value } : {};
}

/* Numbers in the reader's way. */

function signsOf(language) {
  const parts = new Intl.NumberFormat(language).formatToParts(1234567.5);
  const sign = (type, otherwise) => parts.find((one) => one.type === type)?.value ?? otherwise;
  return { decimal: sign("decimal", "."), group: sign("group", ",") };
}
const known = new Map();
const once = (name, make) => {
  if (!known.has(name)) known.set(name, make());
  return known.get(name);
};
const signs = (language) => once(`signs ${language}`, () => signsOf(language));

const plainNumber = (text) => (/^-?(\d+\.?\d*|\.\d+)(e[+-]?\d{1,3})?$/i.test(text) && Number.isFinite(Number(text)) ? Number(text) : null);

/**
 * The number of a text, null for none. What two readers would read otherwise is read in the way of
 * this one: `1,234` is a thousand where commas group digits.
 */
export function readNumber(text, language = LANGUAGE) {
  let digits = text.trim().replace(/[\u00a0\u202f\u2009 '’]/g, "").replace(/[\u2212\u2013]/g, "-");
  const isNegative = /^\(.*\)$/.test(digits) || /^-/.test(digits) || /-$/.test(digits);
  digits = digits.replace(/^[(+-]|[)-]$/g, "");
  const { decimal, group } = signs(language);
  const own = decimal === "," ? "," : ".";
  const commas = digits.split(",").length - 1;
  const dots = digits.split(".").length - 1;
  let isDecimal = own;
  if (commas && dots) isDecimal = digits.lastIndexOf(",") > digits.lastIndexOf(".") ? "," : ".";
  else if (commas + dots === 1) {
    const used = commas ? "," : ".";
    const isGrouped = /^\d{1,3}[.,]\d{3}$/.test(digits) && !digits.startsWith("0");
    isDecimal = used === own || !isGrouped || (group !== used && group !== "." && group !== ",") ? used : own;
  } else if (commas > 1) isDecimal = ".";
  else if (dots > 1) isDecimal = ",";
  const grouped = isDecimal === "," ? "." : ",";
  const [whole, ...rest] = digits.split(isDecimal);
  if (rest.length > 1) return null;
  const parts = whole.split(grouped);
  if (parts.length > 1 && !(parts[0].length <= 3 && parts[0] && parts.slice(1).every((part) => /^\d{2,3}$/.test(part)) && parts.at(-1).length === 3)) return null;
  if (rest[0]?.includes(grouped)) return null;
  const value = plainNumber(`${parts.join("") || "0"}${rest.length ? `.${rest[0]}` : ""}`);
  if (value === null || !/\d/.test(digits)) return null;
  return isNegative && value !== 0 ? -value : value;
}

const number = (value, language, style = {}) =>
  once(`number ${language} ${JSON.stringify(style)}`, () => new Intl.NumberFormat(language, { maximumFractionDigits: 20, ...style })).format(value);

/* Days and times. */

const pad = (value, length = 2) => String(value).padStart(length, "0");
const isDay = (year, month, day) => {
  const date = new Date(Date.UTC(year, month - 1, day));
  return date.getUTCFullYear() === year && date.getUTCMonth() === month - 1 && date.getUTCDate() === day;
};
const dayText = (year, month, day) => (isDay(year, month, day) ? `${pad(year, 4)}-${pad(month)}-${pad(day)}` : null);

const orderOf = (language) => once(`order ${language}`, () => new Intl.DateTimeFormat(language, { year: "numeric", month: "numeric", day: "numeric" })
  .formatToParts(new Date(2026, 0, 31)).map((one) => one.type).filter((type) => ["day", "month", "year"].includes(type)));

const monthsOf = (language) => once(`months ${language}`, () => {
  const months = new Map();
  for (const one of [language, "en"]) {
    for (const style of ["long", "short"]) {
      const format = new Intl.DateTimeFormat(one, { day: "numeric", month: style, year: "numeric", timeZone: "UTC" });
      for (let month = 0; month < 12; month += 1) {
        const name = format.formatToParts(Date.UTC(2026, month, 1)).find((part) => part.type === "month").value;
        months.set(name.toLowerCase().replace(/\.$/, ""), month + 1);
      }
    }
  }
  months.set("sept", 9);
  return months;
});

const fullYear = (text) => (text.length > 2 ? Number(text) : Number(text) + (Number(text) < 70 ? 2000 : 1900));

/** The day of a text as `2026-01-31`, in the reader's order where it has no other; null for none. */
export function readDay(text, language = LANGUAGE) {
  const trimmed = text.trim().replace(/^\p{L}{2,}\.?,\s*/u, "");
  let match = trimmed.match(/^(\d{4})[-/.](\d{1,2})[-/.](\d{1,2})$/);
  if (match) return dayText(Number(match[1]), Number(match[2]), Number(match[3]));
  match = trimmed.match(/^(\d{1,2})\s*[-/.]\s*(\d{1,2})\s*[-/.]\s*(\d{4}|\d{2})$/);
  if (match) {
    const isMonthFirst = orderOf(language).indexOf("month") < orderOf(language).indexOf("day");
    const [first, second, year] = [Number(match[1]), Number(match[2]), fullYear(match[3])];
    const [day, month] = isMonthFirst ? [second, first] : [first, second];
    // A month above twelve leaves one reading.
    return month > 12 ? dayText(year, day, month) : dayText(year, month, day);
  }
  match = trimmed.match(/^(\d{1,2})(?:st|nd|rd|th)?\.?[\s-]+(\p{L}+)\.?,?[\s-]+(\d{4}|\d{2})$/u)
    ?? trimmed.match(/^(?<name>\p{L}+)\.?\s+(?<day>\d{1,2})(?:st|nd|rd|th)?,?\s+(?<year>\d{4})$/u);
  if (!match) return null;
  const [day, name, year] = match.groups ? [match.groups.day, match.groups.name, match.groups.year] : match.slice(1);
  const month = monthsOf(language).get(name.toLowerCase());
  return month ? dayText(fullYear(year), month, Number(day)) : null;
}

/** The time of a text as `14:30` or `14:30:05`; null for none. */
export function readTime(text) {
  const match = text.trim().match(/^(\d{1,2})[:.](\d{2})(?:[:.](\d{2}))?\s*([ap])?\.?(?:m\.?)?$/i) ?? text.trim().match(/^(\d{1,2})()()\s*([ap])\.?m\.?$/i);
  if (!match) return null;
  let hours = Number(match[1]);
  if (match[4]) {
    if (hours < 1 || hours > 12) return null;
    hours = (hours % 12) + (match[4].toLowerCase() === "p" ? 12 : 0);
  }
  const [minutes, seconds] = [Number(match[2] || 0), Number(match[3] || 0)];
  if (hours > 23 || minutes > 59 || seconds > 59) return null;
  return `${pad(hours)}:${pad(minutes)}${seconds ? `:${pad(seconds)}` : ""}`;
}

const partsIn = (zone) => once(`parts ${zone}`, () => new Intl.DateTimeFormat("en-u-hc-h23", {
  timeZone: zone, year: "numeric", month: "2-digit", day: "2-digit", hour: "2-digit", minute: "2-digit", second: "2-digit",
}));

/** A moment as `2026-01-31` and `09:30` of a zone. */
export function local(moment, zone) {
  const parts = Object.fromEntries(partsIn(zone).formatToParts(new Date(moment)).map((one) => [one.type, one.value]));
  const seconds = parts.second === "00" ? "" : `:${parts.second}`;
  return { day: `${pad(parts.year, 4)}-${parts.month}-${parts.day}`, time: `${parts.hour}:${parts.minute}${seconds}` };
}

const DAY = 86_400_000;
const utcOf = ({ day, time }) => Date.parse(`${day}T${time.length === 5 ? `${time}:00` : time}Z`);

/**
 * The moment of a day and a time in a zone, as ISO in UTC. Of a time that clocks show twice it is the
 * first; one that they leave out goes on from the time before.
 */
export function momentOf(day, time, zone) {
  const wall = utcOf({ day, time });
  const offset = (moment) => utcOf(local(moment, zone)) - moment;
  const [before, after] = [offset(wall - DAY), offset(wall + DAY)];
  const isAfter = offset(wall - before) !== before && offset(wall - after) === after;
  return new Date(wall - (isAfter ? after : before)).toISOString();
}

export const zoneOf = (field) => field.settings?.timezone || ZONE;

function readMoment(text, field, language) {
  if (/^\d{4}-\d{2}-\d{2}T.*(Z|[+-]\d{2}:?\d{2})$/i.test(text) && !Number.isNaN(Date.parse(text))) return new Date(text).toISOString();
  const zone = zoneOf(field);
  const whole = readDay(text, language);
  if (whole) return momentOf(whole, "00:00", zone);
  const match = text.trim().match(/^(.*?)[T,\s]\s*(\d{1,2}(?:[:.]\d{2}){0,2}(?:[:.]\d{2})?(?:\.\d+)?\s*(?:[ap]\.?m\.?)?)$/i);
  const [day, time] = match ? [readDay(match[1].replace(/,$/, ""), language), readTime(match[2])] : [];
  return day && time ? momentOf(day, time, zone) : null;
}

/* Durations, yes and no. */

const clock = (ms) => {
  const seconds = Math.round(ms / 1000);
  const rest = seconds % 60;
  return `${Math.floor(seconds / 3600)}:${pad(Math.floor(seconds / 60) % 60)}${rest ? `:${pad(rest)}` : ""}`;
};

function readDuration(text) {
  const match = text.trim().match(/^(\d{1,7}):([0-5]\d)(?::([0-5]\d))?$/);
  return match ? ((Number(match[1]) * 60 + Number(match[2])) * 60 + Number(match[3] ?? 0)) * 1000 : null;
}

const YES = new Set(["true", "yes", "y", "1", "x", "✓", "✔", "☑", "on", "ja", "wahr", "oui", "vrai", "sí", "si", "verdadero", "vero", "sim"]);
const NO = new Set(["false", "no", "n", "0", "☐", "off", "nein", "falsch", "non", "faux", "falso", "não"]);

/* Texts. */

const optionOf = (field, key) => field.options.find((one) => one.key === key);
export const sortedOptions = (field) => [...field.options].sort((a, b) => a.order - b.order || (a.key < b.key ? -1 : 1));

function readOption(field, text) {
  const wanted = text.trim().toLowerCase();
  const named = field.options.filter((one) => one.name.trim().toLowerCase() === wanted);
  if (named.length === 1) return named[0].key;
  return field.options.find((one) => one.key === text.trim())?.key ?? null;
}

const day = (text, language) =>
  once(`day ${language}`, () => new Intl.DateTimeFormat(language, { day: "2-digit", month: "2-digit", year: "numeric", timeZone: "UTC" })).format(Date.parse(`${text}T00:00Z`));

/** Names of people and files by their ids, and titles by the ids of records. */
export class Names {
  constructor() {
    this.people = Vue.shallowReactive(new Map());
    this.files = Vue.shallowReactive(new Map());
    this.titles = new Map();
  }

  person(id) { return this.people.get(id)?.label ?? "Unknown"; }

  file(id) { return this.files.get(id)?.name ?? "File"; }

  title(id) { return this.titles.get(id) ?? ""; }
}

/** A value as it is shown. */
export function textOf(field, value, names, { language = LANGUAGE, plain = false } = {}) {
  if (isEmpty(value)) return "";
  switch (field.kind) {
    case "number": case "currency": case "percent": {
      if (typeof value !== "number") return String(value);
      return plain ? number(value, language, { useGrouping: false }) : numberText(field, value, language);
    }
    case "auto_number": return String(value);
    case "rating": return plain ? String(value) : "★".repeat(value);
    case "duration": return clock(value);
    case "timer": return clock(value.totalMs ?? 0);
    case "checkbox": return value ? "TRUE" : "FALSE";
    case "date": return plain ? value : day(value, language);
    case "datetime": case "created_at": case "updated_at": {
      const there = local(value, zoneOf(field));
      return `${plain ? there.day : day(there.day, language)} ${there.time}`;
    }
    case "select": case "status": return optionOf(field, value)?.name ?? String(value);
    case "multi_select": return value.map((key) => optionOf(field, key)?.name ?? key).join(", ");
    case "person": case "created_by": case "updated_by": return [value].flat().map((id) => names.person(id)).join(", ");
    case "file": return value.map((id) => names.file(id)).join(", ");
    case "relation": return value.map((id) => names.title(id) || "Untitled").join(", ");
    case "location": return value.label || `${value.lat}, ${value.lng}`;
    case "json": return JSON.stringify(value);
    default:
      if (Array.isArray(value)) return value.map((one) => (typeof one === "object" ? JSON.stringify(one) : String(one))).join(", ");
      return typeof value === "number" ? number(value, language, plain ? { useGrouping: false } : {}) : typeof value === "object" ? JSON.stringify(value) : String(value);
  }
}

const NOUNS = { currency: "amount", percent: "percentage", phone: "phone number", datetime: "date and time", select: "option", status: "option", multi_select: "option", json: "JSON value" };
const problem = (field, text) => ({ problem: text ?? `Enter a valid ${NOUNS[field.kind] ?? field.kind.replaceAll("_", " ")}.` });
const valid = (field, value) => (value === null ? problem(field) : { value });

const dayHint = (language) => day("2026-01-31", language);

/**
 * The meaning of a text in a field: `{value}`, or `{problem}` with the reason. Titles of records are
 * `{lookup}`: texts that are still to be looked up.
 */
export function read(field, text, names, language = LANGUAGE) {
  if (!isWritten(field)) return { problem: `${field.label} is computed.` };
  if (text.trim() === "" && !(TEXTS.has(field.kind) && text !== "")) return { value: isSeveral(field) ? [] : null };
  const settings = field.settings ?? {};
  switch (field.kind) {
    case "number": return valid(field, readNumber(settings.unit ? text.trim().replace(new RegExp(`${RegExp.escape?.(settings.unit) ?? settings.unit.replace(/\W/g, "\\$&")}$`), "") : text, language));
    case "percent": return valid(field, readNumber(text.trim().replace(/%$/, ""), language));
    case "currency": {
      const code = text.match(/[A-Z]{3}/)?.[0];
      if (code && settings.currencyCode && code !== settings.currencyCode) return problem(field, `Enter an amount in ${settings.currencyCode}.`);
      return valid(field, readNumber(text.replace(/[A-Z]{3}|[\p{Sc}]/gu, ""), language));
    }
    case "rating": {
      const stars = /^★+☆*$/.test(text.trim()) ? (text.match(/★/g) ?? []).length : readNumber(text, language);
      return Number.isInteger(stars) && stars >= 0 && stars <= 10 ? { value: stars } : problem(field, "Enter a number from 0 to 10.");
    }
    case "duration": return readDuration(text) === null ? problem(field, "Enter a duration as H:MM or H:MM:SS.") : { value: readDuration(text) };
    case "checkbox": {
      const word = text.trim().toLowerCase();
      return YES.has(word) ? { value: true } : NO.has(word) ? { value: false } : problem(field, "Enter yes or no.");
    }
    case "date": {
      const value = readDay(text, language) ?? readDay(text.trim().split(/[T\s]/)[0], language);
      return value ? { value } : problem(field, `Enter a date, such as ${dayHint(language)} or 2026-01-31.`);
    }
    case "datetime": {
      const value = readMoment(text, field, language);
      return value ? { value } : problem(field, `Enter a date and time, such as ${dayHint(language)} 14:30.`);
    }
    case "time": return readTime(text) ? { value: readTime(text) } : problem(field, "Enter a time, such as 14:30.");
    case "select": case "status": {
      const key = readOption(field, text);
      return key === null ? problem(field, `“${text.trim()}” is not an option of ${field.label}.`) : { value: key };
    }
    case "multi_select": {
      const whole = readOption(field, text);
      if (whole !== null) return { value: [whole] };
      const parts = text.split(/[,;\n]/).map((one) => one.trim()).filter(Boolean);
      const keys = parts.map((one) => readOption(field, one));
      const unknown = parts.filter((_, at) => keys[at] === null);
      return unknown.length ? problem(field, `“${unknown[0]}” is not an option of ${field.label}.`) : { value: [...new Set(keys)] };
    }
    case "person": {
      const ids = [];
      for (const part of text.split(/[,;\n]/).map((one) => one.trim()).filter(Boolean)) {
        const wanted = part.toLowerCase();
        const members = [...names.people.values()].filter((one) => [one.id, one.label, one.hint].some((name) => name?.toLowerCase() === wanted));
        if (members.length !== 1) return problem(field, members.length ? `Several members are named “${part}”.` : `No member is named “${part}”.`);
        ids.push(members[0].id);
      }
      return { value: [...new Set(ids)] };
    }
    case "relation": return { lookup: text.trim() };
    case "file": return problem(field, "Drop a file on the cell.");
    case "json":
      try { return { value: JSON.parse(text) }; } catch { return problem(field); }
    case "location": {
      try { const value = JSON.parse(text); if (value && typeof value === "object") return { value }; } catch { /* read as two numbers */ }
      const [lat, lng, ...rest] = text.split(/[,;]\s*/).map((one) => plainNumber(one.trim()));
      return rest.length === 0 && lat !== null && lng !== null && lng !== undefined ? { value: { lat, lng } } : problem(field, "Enter a latitude and a longitude.");
    }
    case "email": case "phone": return { value: text.trim() };
    case "url": return { value: /^[\w-]+(\.[\w-]+)+/.test(text.trim()) && !text.includes("://") ? `https://${text.trim()}` : text.trim() };
    case "text": return { value: text };
    default: return { value: text };
  }
}

/** The day and the time of a serial number of a spreadsheet; null for none. */
function serialOf(number) {
  if (typeof number !== "number" || number <= 0 || number >= 2_958_466) return null;
  const text = new Date(Math.round((number - 25_569) * 86_400) * 1000).toISOString();
  return { day: text.slice(0, 10), time: text.slice(11, 19) };
}

/** The exact value that a spreadsheet gives beside a text: of numbers, and of days as serial numbers. */
export function readExact(field, cell, names, language = LANGUAGE) {
  if (cell.own && cell.own.kind === field.kind && (!OPTIONS.has(field.kind) || [cell.own.value].flat().every((key) => optionOf(field, key)))) return { value: cell.own.value };
  if (typeof cell.exact === "number" && NUMBERS.has(field.kind)) {
    const isShare = field.kind === "percent" && /%\s*$/.test(cell.text);
    return { value: isShare ? Number((cell.exact * 100).toPrecision(15)) : cell.exact };
  }
  if (typeof cell.exact === "boolean" && field.kind === "checkbox") return { value: cell.exact };
  const outcome = read(field, cell.text, names, language);
  const serial = ["date", "datetime"].includes(field.kind) && readNumber(cell.text, language) === null ? serialOf(cell.exact) : null;
  // The text of a day may have another order; its serial number has none.
  if (!serial || (!outcome.problem && !(readDay(cell.text.trim().split(/[T\s]/)[0], language) ?? "").startsWith(serial.day.slice(0, 4)))) return outcome;
  return { value: field.kind === "date" ? serial.day : momentOf(serial.day, serial.time, zoneOf(field)) };
}

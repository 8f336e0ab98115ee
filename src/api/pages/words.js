// Times, states and values as texts.

export const STATES = [
  "running", "waiting", "queued", "succeeded", "failed", "skipped", "cancelled", "timed_out",
];

export const plain = (name) => name.replaceAll("_", " ");

/** `< 1 ms`, `850 ms`, `4.2 s`, `3 min 05 s`, `2 h 10 min`, `3 d 4 h`. */
export function duration(ms) {
  const two = (number) => String(number).padStart(2, "0");
  if (ms < 1000) return ms < 1 ? "< 1 ms" : `${Math.round(ms)} ms`;
  const seconds = ms / 1000;
  if (seconds < 60) return `${(Math.floor(seconds * 10) / 10).toFixed(1)} s`;
  const minutes = Math.floor(seconds / 60);
  if (minutes < 60) return `${minutes} min ${two(Math.floor(seconds % 60))} s`;
  const hours = Math.floor(minutes / 60);
  return hours < 48
    ? `${hours} h ${two(minutes % 60)} min`
    : `${Math.floor(hours / 24)} d ${hours % 24} h`;
}

/** `512 B`, `83.1 kB`, `1,204.0 MB`. */
export function bytes(count) {
  if (count < 1000) return `${count} B`;
  const [size, unit] = count < 1e6 ? [count / 1e3, "kB"] : [count / 1e6, "MB"];
  return `${size.toLocaleString(undefined, { minimumFractionDigits: 1, maximumFractionDigits: 1 })} ${unit}`;
}

/** The time between two moments, null without a first one; an open end is now. */
export const span = (from, to) =>
  from === undefined ? null : (to === undefined ? Date.now() : Date.parse(to)) - Date.parse(from);

/** The number of a field as people write it: its decimals, two of an amount that is no whole, and its unit. */
export function numberText(field, value, language = document.documentElement.dataset.language || undefined) {
  const { precision, format, currencyCode, unit } = field?.settings ?? {};
  const least = field?.kind === "currency" && !Number.isInteger(value) ? 2 : 0;
  const text = new Intl.NumberFormat(language, {
    useGrouping: format !== "plain", minimumFractionDigits: precision ?? least, maximumFractionDigits: precision ?? 10,
  }).format(value);
  const behind = field?.kind === "percent" ? "%" : currencyCode || unit;
  return behind ? `${text}\u00a0${behind}` : text;
}

export const moment = (text) => {
  const { language, zone } = document.documentElement.dataset;
  return new Date(text).toLocaleString(language || undefined, { dateStyle: "medium", timeStyle: "medium", timeZone: zone || undefined });
};

/** An element; children are elements or texts, which are never read as markup. */
export function element(name, attributes = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (key.startsWith("on")) made.addEventListener(key.slice(2), value);
    else made.setAttribute(key, value === true ? "" : value);
  }
  made.append(...children.filter((child) => child !== null && child !== undefined && child !== false));
  return made;
}

const SVG = "http://www.w3.org/2000/svg";

/** The same for drawings. */
export function shape(name, attributes = {}, ...children) {
  const made = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...children);
  return made;
}

export function icon(state) {
  const made = shape("svg", { class: "icon", "aria-hidden": "true" });
  made.append(shape("use", { href: `#icon-${state}` }));
  return made;
}

/** A state as sign and word, so that its colour is never all that tells it. */
export const tag = (state, kind = "tag") =>
  element("span", { class: kind, "data-status": state }, icon(state), plain(state));

export const present = (...parts) => parts.filter(Boolean);
export const mono = (text) => element("span", { class: "mono" }, text);
export const section = (title, ...parts) =>
  element("section", {}, element("h3", {}, title), ...present(...parts));

/** Names and values; what has no value is left out. */
export function pairs(facts) {
  const list = element("dl", { class: "pairs" });
  for (const [name, value] of Object.entries(facts)) {
    if (value) list.append(element("dt", {}, name), element("dd", {}, value));
  }
  return list;
}

/** The sign of a kind, by a word of its name; what computes has the rest. */
const SIGNS = [
  [/approval|^form/, "ask"], [/delay|wait/, "wait"], [/condition|switch|branch|join/, "branch"],
  [/each|while|loop|repeat/, "loop"], [/record|database|query/, "rows"], [/mail|notif|push|message/, "tell"],
  [/http|call|webhook|action|model|source/, "call"], [/stop|fail|end/, "end"],
];
export const sign = (kind) => SIGNS.find(([words]) => words.test(kind))?.[1] ?? "compute";

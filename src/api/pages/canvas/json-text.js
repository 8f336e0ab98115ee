// The document as a text: where its parts are, and what keeps it from being one. Pure.

import { isObject } from "/pages/canvas/bindings.js";
import { edgesOf, NOTE_COLORS, NOTE_SIZE, TRIGGER } from "/pages/canvas/graph.js";
import { resolve } from "/pages/canvas/schema.js";

const TOKEN = /"(?:[^"\\\n]|\\.)*"?|[{}[\],:]|[^ \t\r\n{}[\],:"]+/g;
const DEEPEST = 100;
const SHOWN_VALUES = 12;

/** The document as the API has it. */
export const textOf = ({ graph, trigger }) => JSON.stringify({ triggerConfig: trigger, graph }, null, 2);

/** The tokens of a text, each with its place. */
export function tokensOf(text) {
  let [row, line, seen] = [0, 0, 0];
  return [...text.matchAll(TOKEN)].map(({ 0: token, index: start }) => {
    for (let at = text.indexOf("\n", seen); at >= 0 && at < start; at = text.indexOf("\n", at + 1)) {
      row += 1;
      line = at + 1;
    }
    seen = start;
    return { text: token, start, end: start + token.length, row, column: start - line };
  });
}

const isString = (token) => token.text.startsWith('"');
/** A string that ends: what follows it is not a part of it. */
export const isClosed = (token) => isString(token) && /^"(?:[^"\\]|\\.)*"$/.test(token.text);

/** The text of a key, also of one that is not finished. */
export function keyOf(token) {
  try {
    return String(JSON.parse(token.text));
  } catch {
    return token.text.replace(/^"|"$/g, "");
  }
}

/**
 * The parts of a text as far as it can be read, and its first fault: `{root, fault}`. A part has a `row`; that of
 * an object or a list has `members`, each with its `key`, `row` and `part`; any other one has a `value`.
 */
export function partsOf(text) {
  const tokens = tokensOf(text);
  let at = 0;
  let fault = null;
  const wrong = (message, { row, column } = { row: 0, column: 0 }) => { fault ??= { message, row, column }; };

  function scalar(token) {
    try {
      return { row: token.row, value: JSON.parse(token.text) };
    } catch {
      const said = isString(token) ? (isClosed(token) ? "Invalid character in the text" : "Missing closing quotation mark") : `Invalid value: ${token.text.slice(0, 40)}`;
      wrong(said, token);
      return { row: token.row, value: undefined };
    }
  }

  function member(keys, depth) {
    const token = tokens[at];
    const found = { key: null, row: token.row, part: null };
    if ("{[".includes(token.text)) {
      wrong("Expected a key in quotation marks", token);
      return { ...found, part: part(depth) };
    }
    at += 1;
    found.key = keyOf(token);
    if (!isString(token)) wrong("Keys need quotation marks", token);
    else scalar(token);
    if (keys.has(found.key)) wrong(`Duplicate key: ${found.key}`, token);
    keys.add(found.key);
    if (tokens[at]?.text !== ":") {
      wrong("Missing colon and value after the key", token);
      return found;
    }
    at += 1;
    if (!tokens[at] || "}],:".includes(tokens[at].text)) wrong("Missing value", token);
    else found.part = part(depth);
    return found;
  }

  function part(depth = 0) {
    const open = tokens[at];
    at += 1;
    if (!"{[".includes(open.text)) return scalar(open);
    if (depth > DEEPEST) throw new RangeError("Nested too deeply");
    const [hasKeys, close] = open.text === "{" ? [true, "}"] : [false, "]"];
    const found = { row: open.row, members: [], hasKeys };
    const keys = new Set();
    for (let comma = null; ; ) {
      const token = tokens[at];
      if (!token) {
        wrong(`Missing ${close}`, tokens.at(-1));
        return found;
      }
      if (token.text === close) {
        if (comma) wrong(`Remove the comma before ${close}`, comma);
        at += 1;
        return found;
      }
      if ("}]".includes(token.text)) {
        wrong(`Expected ${close}`, token);
        return found;
      }
      if (",:".includes(token.text)) {
        if (token.text === ":" || comma || found.members.length === 0) wrong(`Unexpected ${token.text === "," ? "comma" : "colon"}`, token);
        if (token.text === ",") comma = token;
        at += 1;
        continue;
      }
      if (found.members.length > 0 && !comma) wrong("Missing comma", tokens[at - 1]);
      comma = null;
      found.members.push(hasKeys ? member(keys, depth + 1) : { key: found.members.length, row: token.row, part: part(depth + 1) });
    }
  }

  if (tokens.length === 0) return { root: null, fault: { message: "Enter a JSON object", row: 0, column: 0 } };
  try {
    const root = part();
    if (at < tokens.length) wrong("Unexpected text after the end", tokens[at]);
    return { root, fault };
  } catch (error) {
    return { root: null, fault: { message: error.message, row: tokens[at - 1].row, column: tokens[at - 1].column } };
  }
}

/** The part at a path, or as far as it leads: `{row, part}`; the part is null where it ends before. */
export function placeOf(root, path) {
  let found = { row: root?.row ?? 0, part: root };
  for (const key of path) {
    const next = found.part?.members?.find((one) => String(one.key) === String(key));
    if (!next) return { row: found.row, part: null };
    found = next;
  }
  return found;
}

const valueAt = (part, key) => placeOf(part, [key]).part?.value;

/** The row that a problem of the draft names: its key, else its node, else the document. */
export function rowOf(root, { nodeId, path }) {
  const keys = (path ?? "").split(".").filter(Boolean);
  if (!nodeId) return placeOf(root, keys).row;
  if (nodeId === TRIGGER) return placeOf(root, ["triggerConfig", ...keys.filter((key, index) => index > 0 || key !== "triggerConfig")]).row;
  const nodes = placeOf(root, ["graph", "nodes"]).part?.members ?? [];
  const index = nodes.findIndex((one) => valueAt(one.part, "id") === nodeId);
  return placeOf(root, index < 0 ? ["graph"] : ["graph", "nodes", index, ...keys]).row;
}

const FITS = {
  string: (value) => typeof value === "string", number: Number.isFinite, integer: Number.isInteger, boolean: (value) => typeof value === "boolean",
  array: Array.isArray, object: isObject, null: (value) => value === null,
};
const NAMES = { string: "text", number: "a number", integer: "a whole number", boolean: "true or false", array: "a list", object: "an object", null: "null" };

/** What of a value no schema of the canvas can show, as `{path, message}`; null for nothing. */
function misfit(value, schema, root, path) {
  const { options, nullable, ...found } = resolve(schema, root);
  if (value === null && nullable) return null;
  if (options) return options.some((one) => misfit(value, one, root, path) === null) ? null : { path, message: "Invalid value" };
  if (found.type && !FITS[found.type](value)) return { path, message: `Must be ${NAMES[found.type]}` };
  const allowed = found.enum ?? (found.const === undefined ? null : [found.const]);
  if (allowed && !allowed.includes(value)) {
    return { path, message: `Unknown value. Allowed: ${allowed.slice(0, SHOWN_VALUES).join(", ")}${allowed.length > SHOWN_VALUES ? ", …" : ""}` };
  }
  if (found.type === "string" && found.pattern && !new RegExp(found.pattern).test(value)) return { path, message: "Invalid characters or length" };
  if (Array.isArray(value)) return first(value.entries(), (index, one) => found.items && misfit(one, found.items, root, [...path, index]));
  if (!isObject(value)) return null;
  const missing = (found.required ?? []).find((key) => !Object.hasOwn(value, key));
  if (missing !== undefined) return { path, message: `Missing key: ${missing}` };
  return first(Object.entries(found.properties ?? {}), (key, part) => (Object.hasOwn(value, key) ? misfit(value[key], part, root, [...path, key]) : null));
}

function first(entries, find) {
  for (const [key, value] of entries) {
    const found = find(key, value);
    if (found) return found;
  }
  return null;
}

function twice(graph) {
  return first(["nodes", "edges", "notes"].entries(), (_, list) => {
    const ids = new Set();
    return first((graph[list] ?? []).entries(), (index, { id }) => {
      if (typeof id === "string" && ids.has(id)) return { path: ["graph", list, index, "id"], message: `Duplicate ID: ${id}` };
      ids.add(id);
      return null;
    });
  });
}

function faultOf(value, catalog) {
  if (!isObject(value)) return { path: [], message: "Enter a JSON object" };
  const unknown = Object.keys(value).find((key) => !["triggerConfig", "graph"].includes(key));
  if (unknown !== undefined) return { path: [unknown], message: "Unknown key. Allowed: triggerConfig, graph" };
  const kinds = catalog.triggers.map(({ kind }) => kind);
  const trigger = { type: "object", required: ["kind"], properties: { kind: { enum: kinds } } };
  const both = { required: ["triggerConfig", "graph"], properties: { triggerConfig: trigger } };
  const found = misfit(value, both, both, []) ?? misfit(value.graph, { type: "object", ...catalog.graph }, catalog.graph, ["graph"]) ?? twice(value.graph);
  const { schema } = catalog.triggers.find(({ kind }) => kind === value.triggerConfig?.kind) ?? {};
  // What a draft still lacks is no fault of its text.
  return found ?? misfit(value.triggerConfig, { ...schema, required: [] }, schema, ["triggerConfig"]);
}

/** The graph with what the canvas needs: an id of each edge, a size and a color of each note. */
function whole(graph) {
  const taken = new Set(edgesOf({ graph }).map(({ id }) => id));
  let number = 0;
  const fresh = () => {
    do number += 1; while (taken.has(`edge-${number}`));
    return `edge-${number}`;
  };
  const edges = graph.edges?.map((edge) => (edge.id ? edge : { ...edge, id: fresh() }));
  const notes = graph.notes?.map((note) => ({ text: "", ...NOTE_SIZE, color: NOTE_COLORS[0], ...note }));
  return { ...graph, ...(edges ? { edges } : {}), ...(notes ? { notes } : {}) };
}

/** The document that a text is, as `{root, document}`; `{root, fault}` for one that the canvas could not show. */
export function read(text, catalog) {
  const { root, fault } = partsOf(text);
  if (fault) return { root, fault };
  const value = JSON.parse(text);
  const found = faultOf(value, catalog);
  if (found) return { root, fault: { message: found.message, row: placeOf(root, found.path).row, column: 0 } };
  return { root, document: { graph: whole(value.graph), trigger: value.triggerConfig } };
}

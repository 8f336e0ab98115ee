// What can be written at a place of the document's text: keys of its schema, values, ids of nodes. Pure.

import { isClosed, keyOf, partsOf, placeOf, tokensOf } from "/pages/canvas/json-text.js";
import { controlOf, resolve } from "/pages/canvas/schema.js";

const OPEN = "{[";
const CLOSE = "}]";

/**
 * Where a cursor is: the `path` of the object or list around it, the `key` whose value it is at (null where a key
 * is written), and the tokens there: `edited` is the one it is in, `before` and `after` are those around it.
 */
export function cursorAt(text, offset) {
  const tokens = tokensOf(text);
  const stack = [];
  let index = 0;
  for (; tokens[index] && (tokens[index].end < offset || (tokens[index].end === offset && isWhole(tokens[index]))); index += 1) {
    const token = tokens[index];
    const top = stack.at(-1);
    if (OPEN.includes(token.text)) stack.push({ isObject: token.text === "{", key: token.text === "{" ? null : 0 });
    else if (CLOSE.includes(token.text)) stack.pop();
    else if (token.text === ":" && top?.isObject) top.key = keyOf(tokens[index - 1] ?? token);
    else if (token.text === "," && top) top.key = top.isObject ? null : top.key + 1;
  }
  const edited = tokens[index] && tokens[index].start < offset ? tokens[index] : null;
  const before = tokens[index - 1] ?? null;
  const top = stack.at(-1);
  const isKey = top?.isObject && before?.text !== ":";
  return { path: stack.slice(0, -1).map(({ key }) => key), isObject: top?.isObject ?? false, key: isKey || !top ? null : top.key, edited, before, after: tokens[index + (edited ? 1 : 0)] ?? null };
}

const isWhole = (token) => isClosed(token) || "{}[],:".includes(token.text);

/** The path of the value at a cursor: what is typed there is one step of undo. */
export function pathAt(text, offset) {
  const { path, key, edited, before } = cursorAt(text, offset);
  // The end of a text is at its value still.
  if (!edited && before?.end === offset && isClosed(before)) return pathAt(text, offset - 1);
  return key === null ? path : [...path, key];
}

/** The schemas that a value may have, without the choices between them. */
const ways = (schema, root) => {
  const { options, ...found } = resolve(schema, root);
  return options ? options.flatMap((one) => ways(one, root)) : [{ schema: found, root }];
};

/** The ways that have a constant for a key that the object has otherwise are none of it. */
const fitting = (all, part) => {
  const kept = all.filter(({ schema }) => Object.entries(schema.properties ?? {}).every(([key, one]) => {
    const value = placeOf(part, [key]).part?.value;
    return one.const === undefined || typeof value !== "string" || value === "" || value === one.const;
  }));
  return kept.length > 0 ? kept : all;
};

/** The schemas of what is at a path of the document. */
function schemasAt(root, path, catalog) {
  const textAt = (where) => placeOf(root, where).part?.value;
  const kindOf = (kinds, where) => kinds.find(({ kind }) => kind === textAt([...where, "kind"]));
  const graph = { schema: catalog.graph, root: catalog.graph };
  const trigger = kindOf(catalog.triggers, ["triggerConfig"])?.schema;
  const kind = { enum: catalog.triggers.map((one) => one.kind), title: "Kind" };
  const began = { ...trigger, properties: { ...trigger?.properties, kind } };
  const whole = { triggerConfig: [{ schema: began, root: began }], graph: [graph] };
  if (path.length === 0) return [{ schema: { properties: { triggerConfig: { type: "object", title: "Trigger" }, graph: { type: "object", title: "Graph" } } }, root: {} }];
  let found = whole[path[0]] ?? [];
  for (let depth = 1; depth < path.length; depth += 1) {
    const where = path.slice(0, depth);
    const key = path[depth];
    found = fitting(found, placeOf(root, where).part).flatMap(({ schema, root: own }) => {
      const next = schema.properties?.[key] ?? (typeof key === "number" ? schema.items : schema.additionalProperties);
      return next && typeof next === "object" ? ways(next, own) : [];
    });
    const isNode = depth === 3 && path[0] === "graph" && path[1] === "nodes";
    const config = isNode && ["config", "input"].includes(key) ? kindOf(catalog.kinds, where)?.schema : null;
    if (config) found = ways(key === "config" ? config : bound(config), key === "config" ? config : catalog.graph);
  }
  // Any value of a config may be a binding.
  const isInConfig = path[1] === "nodes" && ["config", "input"].includes(path[3]) && path.length > 4;
  return isInConfig && !found.some(({ schema }) => schema.properties) ? [...found, ...ways({ $ref: "#/$defs/Binding" }, catalog.graph)] : found;
}

/** The input of a node: each key of its config, with a binding. */
const bound = (config) => ({
  properties: Object.fromEntries(Object.entries(config.properties ?? {}).map(([key, { title, description }]) => [key, { $ref: "#/$defs/Binding", title, description }])),
});

/** What a new key begins with. */
function begun(schema, root) {
  const { control, values, type, minimum } = controlOf(schema, root);
  if (type === "object" || ["group", "map", "filter", "variants", "record"].includes(control)) return "{}";
  if (type === "array" || ["list", "checks", "pickers"].includes(control)) return "[]";
  if (control === "checkbox") return String(!schema.default);
  if (type === "number" || type === "integer") return String(schema.default ?? minimum ?? 0);
  return control === "select" && values.every((one) => typeof one !== "string") ? JSON.stringify(values[0]) : '""';
}

/** Values that a key may have, each with what it means. */
function valuesAt(root, path, catalog) {
  const nodes = (placeOf(root, ["graph", "nodes"]).part?.members ?? []).map(({ part }) => ({
    id: placeOf(part, ["id"]).part?.value, kind: placeOf(part, ["kind"]).part?.value, label: placeOf(part, ["label"]).part?.value, part }));
  const key = path.at(-1);
  const isEdge = path[0] === "graph" && path[1] === "edges";
  if ((isEdge && ["from", "to"].includes(key)) || (path[1] === "entryNodeIds" && path.length === 3)) {
    return nodes.filter(({ id }) => typeof id === "string").map(({ id, kind, label }) => ({ value: id, meta: label ?? kind ?? "" }));
  }
  const from = isEdge && nodes.find(({ id }) => id === placeOf(root, [...path.slice(0, -1), "from"]).part?.value);
  if (from && key === "caseKey") {
    return (placeOf(from.part, ["config", "cases"]).part?.members ?? []).map(({ part }) => placeOf(part, ["key"]).part?.value).filter(Boolean).map((value) => ({ value, meta: "case" }));
  }
  const outcomes = from && key === "outcome" && catalog.kinds.find(({ kind }) => kind === from.kind)?.outcomes;
  if (outcomes) return outcomes.map(({ name, label }) => ({ value: name, meta: label }));
  const titles = new Map([...(path[0] === "triggerConfig" ? catalog.triggers : catalog.kinds)].map((one) => [one.kind, one]));
  const isKind = key === "kind" && (path.length === 2 || (path[1] === "nodes" && path.length === 4));
  const values = schemasAt(root, path, catalog).flatMap(({ schema }) => schema.enum ?? (schema.const !== undefined ? [schema.const] : schema.type === "boolean" ? [true, false] : []));
  return [...new Set(values)].map((value) => ({ value, meta: (isKind && titles.get(value)?.title) || "value", says: isKind ? titles.get(value)?.description : undefined }));
}

/**
 * What can be written at a cursor: `[{name, meta, says, from, to, text, cursor}]`, where `text` takes the place
 * from `from` to `to`, and the cursor comes to be at `cursor`.
 */
export function proposals(text, offset, catalog) {
  const { path, isObject, key, edited, before, after } = cursorAt(text, offset);
  const { root } = partsOf(text);
  const [from, to] = edited ? [edited.start, edited.end] : [offset, offset];
  if (key !== null) {
    return valuesAt(root, [...path, key], catalog).map(({ value, meta, says }) => {
      const written = JSON.stringify(value);
      return { name: String(value), meta, says, from, to, text: written, cursor: from + written.length };
    });
  }
  if (!isObject) return [];
  const part = placeOf(root, path).part;
  const own = edited ? keyOf(edited) : null;
  const has = new Set((part?.members ?? []).map((one) => one.key).filter((one) => one !== own));
  // The comma that is missing before a new key stands behind the value before it.
  const isApart = "{,".includes(before.text);
  const start = isApart ? from : before.end;
  const lead = isApart ? "" : `,${text.slice(start, from)}`;
  const isNamed = after?.text === ":";
  const found = new Map();
  for (const { schema, root: base } of fitting(schemasAt(root, path, catalog), part)) {
    for (const [name, one] of Object.entries(schema.properties ?? {})) {
      if (has.has(name) || found.has(name)) continue;
      const value = begun(one, base);
      const tail = isNamed ? "" : `: ${value}${after && !"},".includes(after.text) ? "," : ""}`;
      const written = `${lead}${JSON.stringify(name)}${tail}`;
      const inside = isNamed ? 0 : { '""': 1, "{}": 1, "[]": 1 }[value] ?? value.length;
      const cursor = start + lead.length + JSON.stringify(name).length + (isNamed ? 0 : 2 + inside);
      found.set(name, { name, meta: [...schema.required ?? [], ...schema["x-needed"] ?? []].includes(name) ? "required" : "key", says: one.description ?? one.title, from: start, to, text: written, cursor });
    }
  }
  return [...found.values()];
}

// Bindings of configs as people write them: text, expressions and references. Pure.

import { TRIGGER } from "/pages/canvas/graph.js";

const TYPES = ["literal", "trigger", "node", "item", "run", "variable", "secret", "template", "expression"];
const ROOTS = { trigger: "trigger", node: "nodes", item: "item", run: "run", variable: "vars" };
const SOURCES = Object.fromEntries(Object.entries(ROOTS).map(([type, root]) => [root, type]));
export const SOURCE_TITLES = {
  trigger: "Trigger data", node: "Output of a node", item: "Item of the loop", run: "Fact of the run",
  variable: "Variable",
};

const IDENTIFIER = /^[A-Za-z_][A-Za-z0-9_]*$/;
const BARE = /^[^\s\x00-\x1f\x7f.[\]'"*?()@=~,:$`|&<>!+/\\{}]+$/;
const STEP = /^(?:\.([^\s\x00-\x1f\x7f.[\]'"*?()@=~,:$`|&<>!+/\\{}]+)|\[(-?\d{1,9})\]|\[(?:'([^'"\\\x00-\x1f]*)'|"([^'"\\\x00-\x1f]*)")\])/;
const CEL_STEP = /^(?:\.([A-Za-z_][A-Za-z0-9_]*)|\[(-?\d{1,9})\]|\[("(?:[^"\\\x00-\x1f]|\\.)*")\])/;

export const isObject = (value) => value !== null && typeof value === "object" && !Array.isArray(value);

/** True for an object that stands for a value of the run. */
export const isBinding = (value) =>
  isObject(value) && Object.keys(value).length === 2 && "value" in value && TYPES.includes(value.type);

/** The steps of a path in a text, null for a text that is more than a path. */
function stepsOf(text, pattern, read) {
  const steps = [];
  let rest = text;
  while (rest) {
    const match = pattern.exec(rest);
    if (match === null) return null;
    steps.push(read(match));
    rest = rest.slice(match[0].length);
  }
  return steps;
}

const pathSteps = (path) =>
  stepsOf(path === "" || path[0] === "[" ? path : `.${path}`, STEP, ([, name, index, single, double]) =>
    index === undefined ? name ?? single ?? double : Number(index));

function celSteps(text) {
  try {
    return stepsOf(text, CEL_STEP, ([, name, index, quoted]) =>
      index === undefined ? name ?? JSON.parse(quoted) : Number(index));
  } catch {
    return null;
  }
}

/** A path as configs have it, null where its keys can't be part of one. */
function pathOf(steps) {
  let path = "";
  for (const step of steps) {
    if (typeof step === "number") path += `[${step}]`;
    else if (BARE.test(step)) path += path ? `.${step}` : step;
    else if (/['"\\\x00-\x1f]/.test(step)) return null;
    else path += `['${step}']`;
  }
  return path.length <= 256 ? path : null;
}

/** The steps as an expression reads them. */
export const celOf = (root, steps) => root + steps.map((step) =>
  typeof step === "number" ? `[${step}]` : IDENTIFIER.test(step) ? `.${step}` : `[${JSON.stringify(step)}]`).join("");

/** The text of an expression or a reference; null for what a person can't write that way. */
export function textOf(binding) {
  if (binding.type === "expression") return typeof binding.value === "string" ? binding.value : null;
  const root = ROOTS[binding.type];
  if (root === undefined || typeof binding.value !== "string") return null;
  if (binding.type === "item" && binding.value === "$index") return "index";
  const steps = pathSteps(binding.value);
  if (steps === null) return null;
  const text = celOf(root, steps);
  const again = bindingOf(text);
  return again.type === binding.type && again.value === binding.value ? text : null;
}

/** The binding that a text stands for: a reference where it is a path alone, else an expression. */
export function bindingOf(text, facts = ["id", "startedAt", "source", "workspaceId", "resumeUrl"]) {
  const written = text.trim();
  if (written === "index") return { type: "item", value: "$index" };
  const root = /^[a-z]+/.exec(written)?.[0];
  const type = Object.hasOwn(SOURCES, root ?? "") ? SOURCES[root] : undefined;
  const steps = type && celSteps(written.slice(root.length));
  const path = steps ? pathOf(steps) : null;
  const named = steps && typeof steps[0] === "string";
  const whole = type === "trigger" || type === "item";
  if (path === null || !(whole || named) || (type === "run" && !facts.includes(steps[0]))) {
    return { type: "expression", value: text };
  }
  return { type, value: path };
}

/** The ways in which an expression field shows a value: as text with places, as an expression, or as a path. */
export function languageOf(value) {
  if (value.type === "template") return "text";
  return textOf(value) === null ? "path" : "value";
}

/** The value at steps, undefined where there is none. */
export function valueAt(value, steps) {
  let found = value;
  for (const step of steps) {
    if (found === null || typeof found !== "object" || !Object.hasOwn(found, step)) return undefined;
    found = found[step];
  }
  return found;
}

/** The data that the entries of a value tree hold, by the variables of expressions. */
export function variablesOf(outputs) {
  const run = { id: "", startedAt: new Date().toISOString(), source: "test", workspaceId: "" };
  const variables = { trigger: null, nodes: {}, run, vars: {}, item: null, index: null };
  for (const { id, source = id === TRIGGER ? "trigger" : "node", output } of outputs) {
    if (output === undefined || output === null) continue;
    if (source === "node") Object.defineProperty(variables.nodes, id, { value: output, enumerable: true });
    else variables[source] = output;
  }
  return variables;
}

// Filters by clicks: each part of the document is a group or a row, and an edit replaces that part
// alone. What cannot be drawn is shown as it is, and stays.

import { choices, fieldChoices, PeoplePicker, RecordPicker, removeButton, select } from "./controls.js";
import { momentOf, wallOf } from "./days.js";
import { facts, fieldsByKey } from "./store.js";

const { computed, h, ref, watch } = globalThis.Vue;

const isObject = (value) => typeof value === "object" && value !== null && !Array.isArray(value);
const only = (part, key) => isObject(part) && Object.keys(part).length === 1 && key in part;
const isLeaf = (part) => isObject(part) && typeof part.field === "string" && typeof part.op === "string"
  && Object.keys(part).every((key) => ["field", "op", "value", "timezone"].includes(key));

/** The way in which a group joins its parts: the drawn part of `{and}`, `{or}`, `{not: {or}}` and `{not: {and}}`. */
const JOINS = {
  and: { label: "All of", keys: ["and"] },
  or: { label: "Any of", keys: ["or"] },
  none: { label: "None of", keys: ["not", "or"] },
  notAll: { label: "Not all of", keys: ["not", "and"] },
};

/** The join of a group, its parts, and the path to them; null for what is not a group. */
export function groupOf(part) {
  for (const [join, { keys }] of Object.entries(JOINS)) {
    const inner = keys.length === 1 ? part : only(part, "not") ? part.not : null;
    const key = keys.at(-1);
    if (only(inner, key) && Array.isArray(inner[key])) return { join, parts: inner[key], path: keys.join(".") };
  }
  return null;
}

export function groupFor(join, parts) {
  return JOINS[join].keys.toReversed().reduce((inner, key) => ({ [key]: inner }), parts);
}

const WITHOUT = new Set(["is_empty", "is_not_empty"]);
const MANY = new Set(["in", "not_in", "has_any", "has_all", "has_none"]);

/** The operands of an operator: nothing, one value, several, two, a span of time or a period. */
export function operandOf(op) {
  if (WITHOUT.has(op)) return "none";
  if (MANY.has(op)) return "many";
  return { between: "pair", within: "span", relative: "period" }[op] ?? "one";
}

const DAY = /^\d{4}-\d\d-\d\d$/;
const TIME = /^([01]\d|2[0-3]):[0-5]\d(:[0-5]\d)?$/;
const isMoment = (value) => typeof value === "string" && value.includes("T") && !Number.isNaN(Date.parse(value));

/** True when a control of the form shows this value whole. */
function isShown(form, value) {
  switch (form) {
    case "number": return typeof value === "number";
    case "boolean": return typeof value === "boolean";
    case "day": return typeof value === "string" && DAY.test(value);
    case "moment": return typeof value === "string" && (DAY.test(value) || isMoment(value));
    case "time": return typeof value === "string" && TIME.test(value);
    // An input of one line would drop a line break.
    default: return typeof value === "string" && !/[\n\r]/.test(value);
  }
}

/** Forms whose values are not typed or chosen here. */
const NOT_ENTERED = new Set(["files", "opaque"]);

const fits = { // True where the operand of a kind can be drawn; null is one that is still to be entered.
  none: (_, value) => value === undefined || value === null || value === true,
  one: (form, value) => value === null || isShown(form, value),
  many: (form, value) => value === null || (Array.isArray(value) && value.every((one) => one === null || isShown(form, one))),
  pair: (form, value) => value === null || (Array.isArray(value) && value.length === 2 && value.every((one) => one === null || isShown(form, one))),
  span: (_, value) => isObject(value) && ["unit", "count", "direction"].every((key) => key in value) && facts.units.includes(value.unit) && facts.directions.includes(value.direction),
  period: (_, value) => facts.periods.some((one) => one.key === value),
};

/** The operators of a field whose operands can be entered. */
const offeredOf = (field) => facts.operators[field.form].filter(({ op }) => operandOf(op) === "none" || !NOT_ENTERED.has(field.form));

/** True when a row shows this condition whole. */
export function canDraw(part) {
  const field = isLeaf(part) ? fieldsByKey.get(part.field) : null;
  if (!field || !offeredOf(field).some((one) => one.op === part.op)) return false;
  return fits[operandOf(part.op)](field.form, part.value ?? null);
}

/** True when every condition has its operand. */
export function isComplete(part) {
  const group = groupOf(part);
  if (group) return group.parts.every(isComplete);
  if (!canDraw(part)) return true;
  const kind = operandOf(part.op);
  if (kind === "none") return true;
  return part.value !== null && part.value !== undefined && !(Array.isArray(part.value) && part.value.includes(null));
}

export function countOf(part) {
  const group = groupOf(part);
  if (group) return group.parts.reduce((sum, one) => sum + countOf(one), 0);
  return only(part, "not") ? countOf(part.not) : 1;
}

function firstValue(field, op) {
  switch (operandOf(op)) {
    case "none": return undefined;
    case "pair": return [null, null];
    case "span": return { unit: "day", count: 7, direction: "future" };
    case "period": return "this_week";
    case "one": return field.form === "boolean" ? true : null;
    default: return null;
  }
}

/** A condition with another operator: what was entered stays where it fits. */
function withOperator(leaf, field, op) {
  const { value, ...rest } = leaf;
  const [before, after] = [operandOf(leaf.op), operandOf(op)];
  let next = firstValue(field, op);
  if (before === after) next = value;
  else if (before === "one" && after === "many" && value !== null) next = [value];
  else if (before === "many" && after === "one" && value?.length) [next] = value;
  else if (before === "one" && after === "pair" && value !== null) next = [value, null];
  else if (before === "pair" && after === "one" && value) [next] = value;
  return after === "none" ? { ...rest, op } : { ...rest, op, value: next };
}

export function newCondition(fields) {
  const field = fields.find((one) => one.kind !== "text" || one.key !== "title") ?? fields[0];
  const [{ op }] = offeredOf(field);
  const value = firstValue(field, op);
  return { field: field.key, op, ...(value === undefined ? {} : { value }) };
}

/** A number as it is typed; null for a text that is not one. */
const numberOf = (text) => {
  const plain = text.trim().replace(/\s/g, "").replace(",", ".");
  const value = Number(plain);
  return plain !== "" && Number.isFinite(value) ? value : null;
};

/** Texts and numbers, which may be half typed. */
const TextInput = {
  props: ["label", "value", "isNumber"],
  emits: ["change"],
  setup(props, { emit }) {
    const shown = () => (props.value === null || props.value === undefined ? "" : String(props.value));
    const text = ref(shown());
    watch(() => props.value, () => {
      const isTyped = props.isNumber ? numberOf(text.value) === (props.value ?? null) : text.value === shown();
      if (!isTyped) text.value = shown();
    });
    const read = (typed) => {
      text.value = typed;
      emit("change", typed === "" ? null : props.isNumber ? numberOf(typed) : typed);
    };
    return () => {
      const isWrong = props.isNumber && text.value !== "" && numberOf(text.value) === null;
      return h("input", {
        type: "text", class: "filter-text", inputmode: props.isNumber ? "decimal" : undefined, "aria-label": props.label, autocomplete: "off", maxlength: 2000,
        placeholder: props.isNumber ? "Number" : "Value", value: text.value, "aria-invalid": isWrong ? "true" : undefined,
        onInput: (event) => { if (event.target.value !== text.value) read(event.target.value); },
      });
    };
  },
};

/**
 * A date, with a time where one matters; without a time it is the whole day, unless the operator
 * compares with moments exactly.
 */
function momentInput({ label, value, emit, isExact }) {
  const wall = value === null ? { day: "", time: "" } : DAY.test(value) ? { day: value, time: "" } : wallOf(value);
  const set = (day, time) => {
    if (day === wall.day && time === wall.time) return;
    if (day === "") emit(null);
    else emit(time === "" && !isExact ? day : momentOf(day, time || "00:00"));
  };
  return h("span", { class: "filter-moment" }, [
    h("input", { type: "date", "aria-label": label, value: wall.day, max: "9999-12-31", onChange: (event) => set(event.target.value, wall.time) }),
    h("input", { type: "time", step: "any", "aria-label": `${label}, time`, title: "Empty: the whole day", value: wall.time, onChange: (event) => set(wall.day, event.target.value) }),
  ]);
}

const typed = (type, { label, value, emit }) => h("input", {
  type, "aria-label": label, value: value ?? "", ...(type === "date" ? { max: "9999-12-31" } : { step: "any" }),
  onChange: (event) => { if (event.target.value !== (value ?? "")) emit(event.target.value || null); },
});

/** One value of a field. */
function oneInput(field, given) {
  const { label, value, emit } = given;
  const optionList = field.options.map(({ key, name }) => ({ key, label: name }));
  switch (field.form) {
    case "boolean": return select(label, String(value), [{ key: "true", label: "Yes" }, { key: "false", label: "No" }], (text) => emit(text === "true"));
    case "day": return typed("date", given);
    case "time": return typed("time", given);
    case "moment": return momentInput(given);
    case "option": case "options": return select(label, value ?? "", optionList, emit);
    case "user": case "users": return h(PeoplePicker, { label, value, onChange: emit });
    case "records": return h(RecordPicker, { label, value, databaseId: field.databaseId, onChange: (id) => emit(id || null) });
    default: return h(TextInput, { label, value, isNumber: field.form === "number", onChange: emit });
  }
}

/** Several values of a field. */
function manyInput(field, { label, value, emit }) {
  const set = (next) => emit(next.length === 0 ? null : next);
  const list = value ?? [];
  switch (field.form) {
    case "option": case "options": return choices(label, list, field.options.map(({ key, name }) => ({ key, label: name })), set);
    case "user": case "users": return h(PeoplePicker, { label, value: list, isMany: true, onChange: set });
    case "records": return h(RecordPicker, { label, value: list, databaseId: field.databaseId, isMany: true, onChange: set });
    default: return h("span", { class: "filter-many", role: "group", "aria-label": label }, [
      ...(list.length === 0 ? [null] : list).map((one, index) => h("span", { class: "filter-one", key: index }, [
        oneInput(field, { label: `${label} ${index + 1}`, value: one, isExact: true, emit: (next) => emit(list.length === 0 ? [next] : list.with(index, next)) }),
        list.length > 1 ? removeButton(`value ${index + 1}`, () => set(list.filter((_, at) => at !== index))) : null,
      ])),
      h("button", { type: "button", class: "button small subtle", disabled: list.length === 0 || list.includes(null), onClick: () => emit([...list, null]) }, "Add value"),
    ]);
  }
}

function spanInput({ label, value, emit }) {
  const set = (key, next) => emit({ ...value, [key]: next });
  return h("span", { class: "filter-span" }, [
    select(`${label}, direction`, value.direction, [{ key: "past", label: "the past" }, { key: "future", label: "the next" }], (next) => set("direction", next)),
    h("input", { type: "number", min: 1, max: 10_000, step: 1, "aria-label": `${label}, count`, value: value.count, onChange: (event) => {
      const count = Number(event.target.value);
      if (Number.isInteger(count) && count > 0 && count !== value.count) set("count", count);
    } }),
    select(`${label}, unit`, value.unit, facts.units.map((unit) => ({ key: unit, label: value.count === 1 ? unit : `${unit}s` })), (next) => set("unit", next)),
  ]);
}

function operandInput(field, leaf, given) {
  const value = leaf.value ?? null;
  switch (operandOf(leaf.op)) {
    case "none": return null;
    case "many": return manyInput(field, { ...given, value });
    case "span": return spanInput({ ...given, value });
    case "period": return select(given.label, value, facts.periods, given.emit);
    case "pair": {
      const pair = value ?? [null, null];
      return h("span", { class: "filter-pair" }, [
        oneInput(field, { label: `${given.label}, from`, value: pair[0], emit: (next) => given.emit([next, pair[1]]) }),
        h("span", { class: "quiet" }, "and"),
        oneInput(field, { label: `${given.label}, to`, value: pair[1], emit: (next) => given.emit([pair[0], next]) }),
      ]);
    }
    default: return oneInput(field, { ...given, value });
  }
}

/** A part that no row shows whole: it can be kept or removed. */
function keptPart({ part, path, emit }) {
  const known = isObject(part) && fieldsByKey.get(part.field);
  return h("div", { class: "filter-row filter-kept", key: path, "data-path": path }, [
    h("span", { class: "quiet" }, known ? `${known.label}: set by the API` : "Set by the API"),
    h("code", { title: JSON.stringify(part) }, JSON.stringify(part).slice(0, 80)),
    removeButton("this condition", () => emit(undefined)),
  ]);
}

function rowOf(tree, given) {
  const { part, path, emit, name } = given;
  if (!canDraw(part)) return keptPart(given);
  const field = fieldsByKey.get(part.field);
  const fault = tree.faults.get(path) ?? tree.faults.get(`${path}.value`) ?? tree.faults.get(`${path}.op`);
  const change = (key) => {
    const next = newCondition([fieldsByKey.get(key)]);
    emit(next);
  };
  return h("div", { class: ["filter-row", { faulty: fault }], key: `${path} ${part.field}`, "data-path": path }, [
    select(`Field of ${name}`, part.field, fieldChoices(tree.fields), change, { class: "filter-field" }),
    select(`Operator of ${name}`, part.op, offeredOf(field).map(({ op, label }) => ({ key: op, label })), (op) => emit(withOperator(part, field, op)), { class: "filter-op" }),
    operandInput(field, part, { label: `Value of ${name}`, emit: (value) => emit({ ...part, value }) }),
    part.timezone ? h("span", { class: "quiet" }, part.timezone) : null,
    removeButton(name, () => emit(undefined)),
    fault ? h("p", { class: "fault", role: "alert" }, fault) : null,
  ]);
}

/** A group with its parts; `emit` takes what replaces it, or nothing to remove it. */
function groupBox(tree, { part, path, emit, name, depth }) {
  const { join, parts, path: inner } = groupOf(part);
  const set = (next) => emit(groupFor(join, next));
  const isRoot = depth === 1;
  const isDeep = depth + JOINS[join].keys.length >= facts.limits.depth;
  return h("fieldset", { class: ["filter-group", { root: isRoot }], key: path, "data-path": path }, [
    h("legend", { class: "hidden" }, isRoot ? "Filter" : `Group ${name}`),
    h("div", { class: "filter-join" }, [
      select(`Match of ${isRoot ? "the filter" : name}`, join, Object.entries(JOINS).map(([key, { label }]) => ({ key, label })), (next) => emit(groupFor(next, parts))),
      h("span", { class: "quiet" }, parts.length === 0 ? "no conditions" : "these conditions"),
      isRoot ? null : removeButton(`group ${name}`, () => emit(undefined)),
    ]),
    ...parts.map((one, index) => partOf(tree, {
      part: one, path: `${path}.${inner}.${index}`, depth: depth + JOINS[join].keys.length, name: isRoot ? `condition ${index + 1}` : `${name}.${index + 1}`,
      emit: (next) => set(next === undefined ? parts.filter((_, at) => at !== index) : parts.with(index, next)),
    })),
    h("div", { class: "filter-more" }, [
      h("button", { type: "button", class: "button small", disabled: tree.isFull, onClick: () => set([...parts, newCondition(tree.fields)]) }, "Add condition"),
      isDeep ? null : h("button", { type: "button", class: "button small subtle", disabled: tree.isFull, onClick: () => set([...parts, groupFor(join === "and" ? "or" : "and", [newCondition(tree.fields)])]) }, "Add group"),
    ]),
  ]);
}

function partOf(tree, given) {
  const { part, path, emit, name, depth } = given;
  if (groupOf(part)) return groupBox(tree, given);
  if (only(part, "not") && (isLeaf(part.not) || only(part.not, "not") || groupOf(part.not))) {
    return h("div", { class: "filter-not", key: path, "data-path": path }, [
      h("span", { class: "quiet" }, "Not"),
      partOf(tree, { part: part.not, path: `${path}.not`, name, depth: depth + 1, emit: (next) => emit(next === undefined ? undefined : { not: next }) }),
    ]);
  }
  return rowOf(tree, given);
}

/**
 * A filter to be changed by clicks: `filter` is the document or undefined, `faults` its problems by
 * path. Emits `change` with the document, undefined for none.
 */
export const FilterBuilder = {
  props: ["filter", "faults"],
  emits: ["change"],
  setup(props, { emit }) {
    const fields = computed(() => facts.fields.filter((field) => offeredOf(field).length > 0));
    return () => {
      const document = props.filter ?? { and: [] };
      const isGroup = groupOf(document) !== null;
      const tree = { fields: fields.value, faults: props.faults ?? new Map(), isFull: countOf(document) >= facts.limits.leaves };
      const root = isGroup ? document : { and: [document] };
      return h("div", { class: "filter-builder" }, groupBox(tree, {
        part: root, path: "filter", name: "the filter", depth: 1,
        emit: (next) => {
          const group = next && groupOf(next);
          emit("change", !group || (group.parts.length === 0 && group.join !== "or") ? undefined : next);
        },
      }));
    };
  },
};

/** The problems of a refusal by the paths of a filter that is at `place` in the body. */
export function faultsAt(error, place) {
  return new Map((error.details ?? []).filter((one) => one.path.startsWith(place)).map((one) => [`filter${one.path.slice(place.length)}`, one.message]));
}

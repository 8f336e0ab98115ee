// Controls that offer what the workspace has by name: tables, fields, people, and filters over them.

import { isBinding, isObject } from "/pages/canvas/bindings.js";
import { freshId } from "/pages/canvas/expression.js";
import { CONTROLS, Field, Properties, removeButton, segments, words } from "/pages/canvas/form.js";
import { controlOf, firstOf, fits, withKey } from "/pages/canvas/schema.js";

const { computed, h, ref, shallowRef, watch } = globalThis.Vue;

/** The names of a list, once they are there; null before. */
function offered(form, list) {
  const found = shallowRef(null);
  const database = computed(() => {
    const { databaseId } = form.config();
    return typeof databaseId === "string" && databaseId ? databaseId : null;
  });
  watch(() => [list(), database.value], async ([name, id]) => {
    if (name === null) return;
    if (!["fields", "views"].includes(name)) found.value = await form.names[name]();
    else found.value = id === null ? [] : await form.names[name](id);
  }, { immediate: true });
  return found;
}

const titleOf = ({ label, hint }) => (hint ? `${label} (${words(hint).toLowerCase()})` : label);

/** One of what is there. An id that is not in the list stays, and can be typed where there is no list. */
const Picker = {
  props: ["field", "list", "value"],
  setup(props) {
    const names = offered(props.field.form, () => props.list);
    return () => {
      const { field, value } = props;
      const disabled = field.form.readonly();
      const shared = { id: field.id, "aria-describedby": field.describedBy, "aria-label": field.isBare ? field.label : undefined };
      if (names.value !== null && names.value.length === 0) {
        return h("input", {
          ...shared, type: "text", value: value ?? "", readonly: disabled, autocomplete: "off",
          placeholder: { fields: "Choose a database first, or enter a key", secrets: "Name of a secret" }[props.list] ?? `No ${props.list} found. Enter an ID`,
          onInput: (event) => field.emit(event.target.value || undefined),
        });
      }
      const isKnown = !value || names.value?.some(({ id }) => id === value);
      return h("select", {
        ...shared, disabled, value: value ?? "",
        onChange: (event) => field.emit(event.target.value || undefined),
      }, [
        h("option", { value: "" }, names.value === null ? "Loading…" : "Choose…"),
        !isKnown && h("option", { value }, names.value === null ? value : `Not found: ${value}`),
        ...(names.value ?? []).map((one) => h("option", { value: one.id, key: one.id }, titleOf(one))),
      ]);
    };
  },
};
CONTROLS.picker = (field) => h(Picker, { field, list: field.control.names, value: field.value });

/** Several of what is there, or the one word that stands for all of it. */
const Pickers = {
  props: ["field", "value"],
  setup(props) {
    const names = offered(props.field.form, () => props.field.control.names);
    return () => {
      const { field } = props;
      const { alone } = field.control;
      const readonly = field.form.readonly();
      const chosen = Array.isArray(props.value) ? props.value : [];
      const known = new Map((names.value ?? []).map((one) => [one.id, one]));
      const set = (next) => field.emit(next.length === 0 ? undefined : next);
      const add = (id) => id && !chosen.includes(id) && set([...chosen, id]);
      const rest = [...known.values()].filter(({ id }) => !chosen.includes(id));
      return h("div", { class: "pickers", role: "group", "aria-label": field.label }, [
        chosen.length === 0 && alone !== undefined && h("p", { class: "quiet" }, words(alone)),
        h("ul", { class: "chosen" }, chosen.map((id) => h("li", { key: id }, [
          known.has(id) ? titleOf(known.get(id)) : id,
          !readonly && removeButton(known.get(id)?.label ?? id, () => set(chosen.filter((one) => one !== id)))]))),
        !readonly && (names.value?.length === 0
          ? h("input", {
            type: "text", placeholder: "Enter an ID and press Enter", "aria-label": `Add to ${field.label}`,
            onKeydown: (event) => {
              if (event.key !== "Enter") return;
              event.preventDefault();
              add(event.target.value.trim());
              event.target.value = "";
            },
          })
          : h("select", { "aria-label": `Add to ${field.label}`, value: "", onChange: (event) => { add(event.target.value); event.target.value = ""; } },
            [h("option", { value: "" }, names.value === null ? "Loading…" : "Add…"), ...rest.map((one) => h("option", { value: one.id, key: one.id }, titleOf(one)))])),
      ]);
    };
  },
};
CONTROLS.pickers = (field) => h(Pickers, { field, value: field.value });

const READ_ONLY = new Set(["formula", "rollup", "lookup", "created_at", "updated_at", "created_by", "updated_by", "button", "timer", "auto_number", "relation"]);
const NUMBERS = new Set(["number", "currency", "percent", "rating", "duration"]);

/** The schema of the values of a field of a table. */
export function valueSchema({ kind, options = [] }) {
  const keys = options.map(({ key }) => key);
  const labels = Object.fromEntries(options.map(({ key, name }) => [key, name]));
  if (kind === "checkbox") return { type: "boolean" };
  if (NUMBERS.has(kind)) return { type: "number" };
  if (keys.length > 0 && kind === "multi_select") return { type: "array", items: { enum: keys, labels } };
  if (keys.length > 0) return { enum: keys, labels };
  if (kind === "long_text" || kind === "rich_text") return { type: "string", maxLength: 20_000 };
  if (["text", "email", "url", "phone", "date", "datetime", "time"].includes(kind)) return { type: "string" };
  return {};
}

/** Values of a record: a row for each field that gets one, by its name. */
const RecordField = {
  props: ["field"],
  setup(props) {
    const fields = offered(props.field.form, () => "fields");
    return () => {
      const { field } = props;
      if (!fields.value?.length) return CONTROLS.map({ ...field, control: { ...field.control, items: {} } });
      const value = field.value ?? {};
      const readonly = field.form.readonly();
      const known = new Map(fields.value.map((one) => [one.key, one]));
      const relations = field.control.control === "relations";
      const isOffered = (one) => !(one.key in value) && (relations ? one.kind === "relation" : !READ_ONLY.has(one.kind));
      const set = (key, next) => {
        const changed = withKey(value, key, next);
        field.emit(Object.keys(changed).length === 0 && !field.required ? undefined : changed);
      };
      const missing = [...known.values()].filter((one) => one.required && isOffered(one));
      return h("div", { class: "rows-of record", role: "group", "aria-label": field.label }, [
        ...Object.entries(value).map(([key, one]) => h("div", { class: "row-of", key }, [
          h(Field, {
            schema: known.has(key) ? (relations ? { type: "array", items: { type: "string" } } : { ...valueSchema(known.get(key)), nullable: true }) : {},
            root: {}, name: "", owner: "field", value: one, path: `${field.path}.${key}`, label: known.get(key)?.label ?? key,
            required: known.get(key)?.required, isFixed: field.isFixed, onChange: (next) => set(key, next === undefined ? null : next),
          }),
          !readonly && removeButton(known.get(key)?.label ?? key, () => set(key, undefined)),
        ])),
        !readonly && h("select", {
          class: "add", "aria-label": `Add a field to ${field.label}`, value: "",
          onChange: (event) => {
            const { value: key } = event.target;
            event.target.value = "";
            const schema = key && valueSchema(known.get(key));
            if (key) set(key, relations || schema.type === "array" ? [] : schema.enum ? schema.enum[0] : schema.type === "boolean" ? false : schema.type === "number" ? 0 : "");
          },
        }, [
          h("option", { value: "" }, missing.length > 0 ? `Add field (required: ${missing.map(({ label }) => label).join(", ")})…` : "Add field…"),
          ...[...known.values()].filter(isOffered).map((one) => h("option", { value: one.key, key: one.key }, titleOf(one))),
        ]),
      ]);
    };
  },
};
CONTROLS.record = (field) => h(RecordField, { field });
CONTROLS.relations = CONTROLS.record;

const WITHOUT_VALUE = new Set(["is_empty", "is_not_empty"]);
const LISTS = new Set(["in", "not_in", "between", "has_any", "has_all", "has_none"]);

/** True when a control shows a value, and each element of a list, whole. */
const fitsWhole = (value, control) => fits(value, control)
  && (control.control !== "list" || (Array.isArray(value) && value.every((one) => one !== undefined && fits(one, controlOf(control.items, {})))));

const isLeaf = (tree) => isObject(tree) && typeof tree.field === "string" && typeof tree.op === "string" && Object.keys(tree).every((key) => ["field", "op", "value"].includes(key));

/** The rows of a filter, null for one that is nested deeper. */
export function rowsOf(filter) {
  if (filter === undefined || filter === null) return { join: "and", leaves: [], joined: false };
  if (isLeaf(filter)) return { join: "and", leaves: [filter], joined: false };
  const [join] = Object.keys(filter);
  const leaves = filter[join];
  const isFlat = Object.keys(filter).length === 1 && ["and", "or"].includes(join) && Array.isArray(leaves) && leaves.every(isLeaf);
  return isFlat ? { join, leaves, joined: true } : null;
}

/** The filter of rows: one row alone is a leaf, unless it was written as a list. */
export function filterOf({ join, leaves, joined }) {
  if (leaves.length === 0) return undefined;
  return leaves.length === 1 && !joined ? leaves[0] : { [join]: leaves };
}

/** Rows of field, operator and value; a trigger also takes an expression. */
const FilterField = {
  props: ["field"],
  setup(props) {
    const list = `${freshId("paths")}`;
    const fields = offered(props.field.form, () => "fields");
    const mode = ref(typeof props.field.value === "string" ? "expression" : "rows");
    watch(() => props.field.value, (value) => {
      if (value !== undefined && value !== null) mode.value = typeof value === "string" ? "expression" : "rows";
    });
    const keyOf = (name) => name.replace(/^record\.(data|computed|system|relations)\./, "");
    return () => {
      const { field } = props;
      const readonly = field.form.readonly();
      const takesExpression = field.control.expression;
      const switcher = takesExpression && segments(`Kind of ${field.label}`, [["rows", "Conditions"], ["expression", "Expression"]], mode.value, (next) => {
        mode.value = next;
        field.emit(undefined);
      }, readonly);
      if (mode.value === "expression") return h("div", [switcher, CONTROLS.cel(field)]);
      const rows = rowsOf(field.value);
      if (rows === null) return h("div", [switcher, CONTROLS.json(field)]);
      const { leaves } = rows;
      const set = (next) => field.emit(filterOf({ ...rows, joined: rows.joined || next.length > 1, leaves: next }));
      const known = new Map((fields.value ?? []).map((one) => [one.key, one]));
      const { all, forms, kinds, results, periods, units, directions } = field.form.filters;
      /** The operators of the kind of a field; all where it is not known. */
      const operatorsOf = (name) => {
        const { kind, settings } = known.get(keyOf(name)) ?? {};
        return forms[results[settings?.resultKind] ?? kinds[kind]] ?? all;
      };
      const operandOf = (name, op) => {
        if (op === "relative") return { enum: periods };
        if (op === "within") return { type: "object", properties: { count: { type: "integer", minimum: 1, title: "Number" }, unit: { enum: units }, direction: { enum: directions } }, required: ["count", "unit", "direction"] };
        const described = known.get(keyOf(name));
        const schema = described ? valueSchema(described) : {};
        if (LISTS.has(op)) return { type: "array", items: schema.type === "array" ? schema.items : schema };
        return schema.type === "array" ? schema.items : schema;
      };
      const firstOperand = (name, op) => {
        if (op === "within") return { count: 7, unit: "day", direction: "future" };
        const first = firstOf(operandOf(name, op), {});
        return op === "between" ? [firstOf(operandOf(name, "eq"), {}), firstOf(operandOf(name, "eq"), {})] : first;
      };
      /** A condition with another field or operator; its value stays where it fits. */
      const compared = (leaf) => {
        const offered = operatorsOf(leaf.field);
        const op = offered.some((one) => one.op === leaf.op) ? leaf.op : offered[0].op;
        if (WITHOUT_VALUE.has(op)) return withKey({ ...leaf, op }, "value", undefined);
        const control = controlOf(operandOf(leaf.field, op), {});
        const candidates = [leaf.value, [leaf.value], leaf.value?.[0]];
        const kept = isBinding(leaf.value) ? leaf.value : candidates.find((one) => one !== undefined && fitsWhole(one, control) && (op !== "between" || one.length === 2));
        return { ...leaf, op, value: kept ?? firstOperand(leaf.field, op) };
      };
      const row = (leaf, index) => {
        const described = known.get(keyOf(leaf.field));
        const change = (key, value) => set(leaves.with(index, withKey(leaf, key, value)));
        const compare = (changes) => set(leaves.with(index, compared({ ...leaf, ...changes })));
        const operators = operatorsOf(leaf.field);
        return h("div", { class: "row-of filter-row", key: index }, [
          known.size > 0 ? h("select", { "aria-label": `Field ${index + 1}`, disabled: readonly, value: leaf.field, onChange: (event) => compare({ field: event.target.value }) }, [
            !known.has(leaf.field) && h("option", { value: leaf.field }, described ? `${described.label} (${leaf.field})` : leaf.field || "Choose…"),
            ...[...known.values()].map((one) => h("option", { value: one.key, key: one.key }, one.label))])
            : h("input", { type: "text", class: "mono", "aria-label": `Field ${index + 1}`, list, readonly, value: leaf.field, placeholder: "trigger.body.status", onInput: (event) => change("field", event.target.value) }),
          h("select", {
            "aria-label": `Operator ${index + 1}`, disabled: readonly, value: leaf.op,
            onChange: (event) => compare({ op: event.target.value }),
          }, [...operators, ...all.filter(({ op }) => op === leaf.op && !operators.some((one) => one.op === op))].map(({ op, label }) => h("option", { value: op, key: op }, label))),
          !WITHOUT_VALUE.has(leaf.op) && h(Field, {
            schema: operandOf(leaf.field, leaf.op),
            root: {}, name: "", owner: "field", value: leaf.value, path: `${field.path}.${rows.joined ? `${rows.join}.${index}.` : ""}value`, label: `Value ${index + 1}`, isBare: true, required: true,
            isFixed: field.isFixed || field.owner !== "RecordQuery", onChange: (value) => change("value", value === undefined ? "" : value),
          }),
          !readonly && removeButton(`condition ${index + 1}`, () => set(leaves.filter((_, at) => at !== index))),
        ]);
      };
      const first = known.size > 0 ? [...known.keys()][0] : "";
      return h("div", { class: "rows-of filter", role: "group", "aria-label": field.label }, [
        switcher,
        h("datalist", { id: list }, field.form.paths().map((path) => h("option", { value: path }))),
        leaves.length > 1 && h("select", { "aria-label": "Match", disabled: readonly, value: rows.join, onChange: (event) => field.emit({ [event.target.value]: leaves }) },
          [h("option", { value: "and" }, "All conditions"), h("option", { value: "or" }, "Any condition")]),
        ...leaves.map(row),
        !readonly && h("button", { type: "button", class: "button small add", onClick: () => set([...leaves, compared({ field: first, op: "eq" })]) }, "Add condition"),
      ]);
    };
  },
};
CONTROLS.filter = (field) => h(FilterField, { field });

const INPUT_KINDS = { string: "Text", number: "Number", integer: "Whole number", boolean: "Yes or no", object: "Fields", array: "List" };
const isPlain = (part) => isObject(part) && Object.keys(part).length === 1 && part.type in INPUT_KINDS;

/** The rows of an input schema, null for one that says more than names, kinds and what is required. */
export function inputRows(schema) {
  if (schema === undefined || schema === null) return [];
  const { type = "object", properties = {}, required = [], ...rest } = schema;
  const isFlat = type === "object" && Object.keys(rest).length === 0 && isObject(properties) && Array.isArray(required)
    && Object.values(properties).every(isPlain) && required.every((name) => name in properties);
  return isFlat ? Object.entries(properties).map(([name, part]) => ({ name, type: part.type, required: required.includes(name) })) : null;
}

export function inputSchemaOf(rows) {
  if (rows.length === 0) return undefined;
  const required = rows.filter((row) => row.required).map(({ name }) => name);
  const properties = Object.fromEntries(rows.map(({ name, type }) => [name, { type }]));
  return { type: "object", properties, ...(required.length > 0 ? { required } : {}) };
}

/** The input of a manual run: rows of a name, a kind, and whether it is required. */
const Inputs = {
  props: ["field"],
  setup(props) {
    const draft = ref("");
    return () => {
      const { field } = props;
      const rows = inputRows(field.value);
      const readonly = field.form.readonly();
      if (rows === null) return CONTROLS.json(field);
      const set = (next) => field.emit(inputSchemaOf(next));
      const isFree = (name, index = -1) => name !== "" && !rows.some((row, at) => row.name === name && at !== index);
      const add = () => {
        const name = draft.value.trim();
        if (!isFree(name)) return;
        draft.value = "";
        set([...rows, { name, type: "string", required: false }]);
      };
      return h("div", { class: "rows-of inputs", role: "group", "aria-label": field.label }, [
        ...rows.map((row, index) => h("div", { class: "row-of", key: row.name }, [
          h("input", {
            type: "text", value: row.name, readonly, "aria-label": `Name of input ${index + 1}`,
            onChange: (event) => {
              const name = event.target.value.trim();
              if (isFree(name, index)) set(rows.with(index, { ...row, name }));
              else event.target.value = row.name;
            },
          }),
          h("select", { "aria-label": `Kind of input ${index + 1}`, disabled: readonly, value: row.type, onChange: (event) => set(rows.with(index, { ...row, type: event.target.value })) },
            Object.entries(INPUT_KINDS).map(([name, title]) => h("option", { value: name, key: name }, title))),
          h("label", { class: "panel-check" }, [h("input", { type: "checkbox", checked: row.required, disabled: readonly, onChange: (event) => set(rows.with(index, { ...row, required: event.target.checked })) }), "Required"]),
          !readonly && removeButton(row.name, () => set(rows.filter((_, at) => at !== index))),
        ])),
        !readonly && h("div", { class: "adding" }, [
          h("input", {
            type: "text", placeholder: "Name", "aria-label": "Name of a new input", value: draft.value,
            onInput: (event) => { draft.value = event.target.value; },
            onKeydown: (event) => { if (event.key === "Enter") { event.preventDefault(); add(); } },
          }),
          h("button", { type: "button", class: "button small", onClick: add }, "Add input"),
        ]),
      ]);
    };
  },
};
CONTROLS.inputs = (field) => h(Inputs, { field });

const isScalar = (value) => ["string", "number", "boolean"].includes(typeof value);

/** An input schema as the form reads it: authors may write any schema, of which these parts are drawn. */
export function drawnSchema(schema) {
  if (!isObject(schema) || !isObject(schema.properties) || Object.keys(schema.properties).length === 0) return null;
  const text = (value) => (typeof value === "string" ? value.slice(0, 300) : undefined);
  const part = (given) => {
    const { type, title, description, enum: values } = isObject(given) ? given : {};
    const known = type in INPUT_KINDS && !["object", "array"].includes(type) ? { type } : {};
    const shown = { title: text(title), description: text(description) };
    return { ...known, ...(Array.isArray(values) && values.length > 0 && values.every(isScalar) ? { enum: values } : {}),
      ...Object.fromEntries(Object.entries(shown).filter(([, value]) => value)) };
  };
  return {
    properties: Object.fromEntries(Object.entries(schema.properties).slice(0, 200).map(([name, one]) => [name, part(one)])),
    required: Array.isArray(schema.required) ? schema.required.filter((one) => typeof one === "string") : [],
  };
}

/** The input of another automation: a field for each input that it asks for, else names and values. */
const CalledInput = {
  props: ["field"],
  setup(props) {
    const schema = shallowRef(null);
    const called = computed(() => props.field.form.config().automationId);
    watch(called, async (id) => {
      const { names } = props.field.form;
      const isKnown = typeof id === "string" && (await names.automations()).some((one) => one.id === id);
      schema.value = isKnown ? drawnSchema(await names.inputSchema(id)) : null;
    }, { immediate: true });
    return () => {
      const { field } = props;
      if (schema.value === null) return CONTROLS.map({ ...field, control: { ...field.control, items: {} } });
      return h("div", { class: "group", role: "group", "aria-label": field.label }, h(Properties, {
        schema: schema.value, root: schema.value, shape: "", value: field.value ?? {}, path: field.path, isFixed: field.isFixed, onChange: field.emit }));
    };
  },
};
CONTROLS.called = (field) => h(CalledInput, { field });

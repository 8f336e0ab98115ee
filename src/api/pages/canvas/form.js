// A form of a JSON Schema, in which a value may be a binding. What no control shows is edited as JSON.

import { bindingOf, isBinding, languageOf, SOURCE_TITLES, textOf } from "/pages/canvas/bindings.js";
import { CodeField, ExpressionField, freshId } from "/pages/canvas/expression.js";
import { CHOICES, controlOf, firstOf, fits, isMain, isNeeded, isShown, withChoice } from "/pages/canvas/schema.js";

const { h, inject, ref, watch } = globalThis.Vue;

/** The controls by name: each draws a field, given `{value, control, id, label, emit, …}`. */
export const CONTROLS = {};

const TEXTS = new Set(["text", "textarea", "timezone"]);
const capital = (text) => text.charAt(0).toUpperCase() + text.slice(1);
/** Values of configs whose names say too little. */
const SPELLED = {
  asc: "Ascending", desc: "Descending", queue: "Queue new runs", skip: "Skip the new run", buffer_one: "Queue one run",
  allow_all: "Start another run", cancel_other: "Cancel the open run", cancel_oldest: "Cancel the oldest run",
  immediate: "Respond immediately", wait: "Wait for the run", standard_webhooks: "Standard Webhooks", hmac_sha256: "HMAC SHA-256",
  body_hash: "Hash of the body", stop: "Stop the loop", continue: "Continue", database_record: "Records", null: "None",
};
export const words = (name) => SPELLED[name] ?? capital(String(name).replaceAll("_", " "));

/** A row of buttons of which one is pressed. */
export const segments = (label, options, chosen, choose, disabled = false) =>
  h("div", { class: "segments", role: "group", "aria-label": label }, options.map(([name, title]) =>
    h("button", {
      type: "button", key: name, disabled, "aria-pressed": name === chosen,
      onClick: () => name !== chosen && choose(name),
    }, title)));

/** The mark of a required field beside its label. */
export const needed = () => h("span", { class: "needed", title: "Required", "aria-hidden": "true" }, " *");

const asExpression = (value, control) => {
  if (TEXTS.has(control.control)) return { type: "template", value: value ?? "" };
  return { type: "expression", value: value === undefined ? "" : JSON.stringify(value) };
};

/** A property or an element: its label, its switch, its control, its hint and its problems. */
export const Field = {
  name: "Field",
  props: ["schema", "root", "name", "owner", "value", "path", "required", "isFixed", "label", "isBare", "isOnly", "unswitched", "isNeeded"],
  emits: ["change"],
  setup(props, { emit }) {
    const form = inject("form");
    const target = inject("target");
    const id = freshId("field");
    const kept = { fixed: undefined, bound: undefined };
    const control = () => controlOf(props.schema, props.root, props.name, props.owner);
    const takesBinding = () => !props.isFixed && !["cel", "collect", "inputs"].includes(control().control);
    const isBound = () => takesBinding() && isBinding(props.value) && props.value.type !== "literal";
    const modeOf = () => (!isBound() ? "fixed" : props.value.type === "secret" ? "secret" : "expression");
    function switchTo(mode) {
      const from = modeOf();
      if (from === "fixed") kept.fixed = props.value;
      else kept.bound = props.value;
      if (mode === "fixed") emit("change", kept.fixed);
      else if (mode === "secret") emit("change", { type: "secret", value: "" });
      else emit("change", kept.bound?.type !== "secret" && kept.bound ? kept.bound : asExpression(kept.fixed, control()));
    }
    // A reference that is chosen while the field is focused takes the place of its fixed value.
    const own = {
      insert(reference) {
        const binding = TEXTS.has(control().control) && props.value
          ? { type: "template", value: `${props.value}{{ ${reference} }}` } : bindingOf(reference);
        kept.fixed = props.value;
        emit("change", binding);
      },
    };
    const focused = () => { if (takesBinding() && !isBound() && !form.readonly()) target.value = own; };
    return () => {
      const is = control();
      const label = props.label ?? is.title ?? words(props.name);
      const mode = modeOf();
      const issues = form.issuesAt(props.path, !["group", "list", "map", "record"].includes(is.control));
      const hintId = `${id}-hint`;
      const hasHint = Boolean(is.description) && !props.isBare;
      const switches = takesBinding() && !form.readonly() && !props.unswitched && is.control !== "group";
      const modes = [["fixed", "Fixed"], ["expression", "Expression"], ...(form.secrets && TEXTS.has(is.control) ? [["secret", "Secret"]] : [])];
      const drawn = drawValue({
        ...props, control: is, id, label, mode, form, known: issues.map(({ message }) => message),
        describedBy: hasHint || issues.length > 0 ? hintId : undefined,
        emit: (value) => emit("change", value),
      });
      return h("div", { class: ["panel-field", `of-${is.control}`, { wrong: issues.length > 0 }], "data-path": props.path, onFocusin: focused }, [
        h("div", { class: "field-head" }, [
          h(["fixed", "secret"].includes(mode) && LABELLED.has(is.control) ? "label" : "span",
            { class: ["field-label", { hidden: props.isBare }], for: id, id: `${id}-label` },
            [label, (props.isNeeded ?? props.required) && needed()]),
          switches && segments(`Source of ${label}`, modes, mode, switchTo),
        ]),
        drawn,
        (hasHint || issues.length > 0) && h("p", { class: "field-hint", id: hintId },
          [hasHint && h("span", is.description), ...issues.map((issue) => h("span", { class: "fault", role: "alert" }, issue.message === "is required" ? "Required" : capital(issue.message)))]),
      ]);
    };
  },
};

/** Controls that are one element, which a label names. */
const LABELLED = new Set(["text", "textarea", "timezone", "number", "select", "picker", "checkbox", "collect"]);

function drawValue(field) {
  if (field.mode === "expression") return h(BoundField, { ...attributesOf(field), binding: field.value, isText: TEXTS.has(field.control.control) });
  if (field.mode === "secret") return CONTROLS.picker({ ...field, value: field.value.value, control: { names: "secrets" }, emit: (name) => field.emit({ type: "secret", value: name ?? "" }) });
  if (isBinding(field.value) && field.value.type === "literal" && fits(field.value.value, field.control)) {
    return drawFixed({ ...field, value: field.value.value, emit: (value) => field.emit(value === undefined ? undefined : { type: "literal", value }) });
  }
  return fits(field.value, field.control) && !(isBinding(field.value) && field.control.control !== "any")
    ? drawFixed(field) : CONTROLS.json(field);
}

const attributesOf = ({ label, describedBy, known, form, emit }) =>
  ({ label, describedBy, known, readonly: form.readonly(), onChange: emit });

const drawFixed = (field) => CONTROLS[field.control.control](field);

/** A binding that is no secret: a text with places, an expression, or a path that is neither. */
const BoundField = {
  props: ["binding", "label", "describedBy", "known", "readonly", "isText"],
  emits: ["change"],
  setup(props, { emit }) {
    const language = ref(languageOf(props.binding));
    // A stored text may read otherwise than the typed one; the field keeps the typed one.
    const text = ref(language.value === "text" ? props.binding.value : textOf(props.binding));
    let sent = props.binding;
    watch(() => props.binding, (binding) => {
      if (binding === sent || JSON.stringify(binding) === JSON.stringify(sent)) return;
      sent = binding;
      language.value = languageOf(binding);
      text.value = language.value === "text" ? binding.value : textOf(binding);
    });
    const send = (binding) => { sent = binding; emit("change", binding); };
    const typed = (written) => {
      if (written === text.value) return;
      text.value = written;
      send(language.value === "text" ? { type: "template", value: written } : bindingOf(written));
    };
    const speak = (next) => {
      const now = text.value ?? "";
      language.value = next;
      const inner = /^\s*\{\{\s*([^{}]*?)\s*\}\}\s*$/.exec(now)?.[1];
      text.value = next === "text" ? (now.trim() ? `{{ ${now} }}` : "") : inner ?? (now.includes("{{") || now === "" ? "" : JSON.stringify(now));
      send(next === "text" ? { type: "template", value: text.value } : bindingOf(text.value));
    };
    return () => {
      if (language.value === "path") return pathField(props, send);
      return h("div", { class: "bound" }, [
        h(ExpressionField, {
          binding: props.binding, text: text.value, language: language.value, label: props.label,
          readonly: props.readonly, describedBy: props.describedBy, known: props.known, onInput: typed,
        }),
        !props.readonly && (props.isText || language.value === "text")
          && segments(`Kind of expression of ${props.label}`, [["text", "Text {{ }}"], ["value", "Value"]], language.value, speak),
      ]);
    };
  },
};

const pathField = ({ binding, label, readonly, describedBy }, send) => h("div", { class: "bound path" }, [
  h("span", { class: "quiet" }, SOURCE_TITLES[binding.type] ?? "Expression"),
  h("input", {
    type: "text", class: "mono", value: binding.value, "aria-label": `${label}: path`, readonly, "aria-describedby": describedBy,
    onInput: (event) => send({ ...binding, value: event.target.value }),
  }),
]);

const inputOf = (field, type, more = {}) => h("input", {
  type, id: field.id, readonly: field.form.readonly(), disabled: field.form.readonly() && type === "checkbox", autocomplete: "off",
  "aria-describedby": field.describedBy, "aria-label": field.isBare ? field.label : undefined, required: Boolean(field.required || field.isNeeded) || undefined, ...more,
});
const textTyped = (field) => (event) =>
  field.emit(event.target.value === "" && !field.keepsEmpty ? (field.required ? "" : undefined) : event.target.value);

CONTROLS.text = (field) => inputOf(field, "text", {
  value: field.value ?? "", maxlength: field.control.maxLength, onInput: textTyped(field),
});
CONTROLS.textarea = (field) => h("textarea", {
  id: field.id, rows: field.rows ?? 4, required: Boolean(field.required || field.isNeeded) || undefined, readonly: field.form.readonly(), maxlength: field.control.maxLength, value: field.value ?? "",
  "aria-describedby": field.describedBy, "aria-label": field.isBare ? field.label : undefined, onInput: textTyped(field),
});
CONTROLS.timezone = (field) => h("div", [
  inputOf(field, "text", { list: `${field.id}-zones`, value: field.value ?? "", placeholder: field.control.default ?? "", onInput: textTyped(field) }),
  h("datalist", { id: `${field.id}-zones` }, Intl.supportedValuesOf("timeZone").map((zone) => h("option", { value: zone }))),
]);
const boundsOf = ({ minimum, maximum, exclusiveMinimum, type }) =>
  ({ min: minimum ?? exclusiveMinimum, max: maximum, step: type === "integer" ? 1 : "any" });
export const numberOf = (text) => (text.trim() === "" || Number.isNaN(Number(text)) ? undefined : Number(text));
CONTROLS.number = (field) => inputOf(field, "number", {
  value: field.value ?? "", placeholder: field.control.default ?? "", ...boundsOf(field.control),
  onInput: (event) => field.emit(numberOf(event.target.value)),
});
CONTROLS.checkbox = (field) => inputOf(field, "checkbox", {
  checked: field.value ?? field.control.default ?? false, onChange: (event) => field.emit(event.target.checked),
});
CONTROLS.select = (field) => h("select", {
  id: field.id, "aria-required": Boolean(field.required || field.isNeeded) || undefined, disabled: field.form.readonly(), "aria-describedby": field.describedBy, "aria-label": field.isBare ? field.label : undefined,
  value: String(field.value ?? ""),
  onChange: (event) => field.emit(field.control.values.find((value) => String(value) === event.target.value)),
}, [
  (!field.required || field.value === undefined || field.value === "") && h("option", { value: "" },
    field.control.default === undefined || field.control.default === null ? "–" : `Default: ${words(field.control.default)}`),
  ...field.control.values.map((value) => h("option", { value: String(value), key: String(value) }, field.control.labels?.[value] ?? words(value))),
]);
CONTROLS.checks = (field) => h("div", { class: "panel-checks", role: "group", "aria-label": field.label }, field.control.values.map((value) => {
  const chosen = field.value ?? [];
  return h("label", { class: "panel-check", key: value }, [
    h("input", {
      type: "checkbox", checked: chosen.includes(value), disabled: field.form.readonly(),
      onChange: (event) => field.emit(field.control.values.filter((one) => (one === value ? event.target.checked : chosen.includes(one)))),
    }), value]);
}));

const UNITS = [[86_400, "days"], [3600, "hours"], [60, "minutes"], [1, "seconds"]];
/** A number with its unit; the number is stored in the smallest unit. */
const Duration = {
  props: ["value", "field", "signed", "smallest"],
  setup(props) {
    const units = UNITS.filter(([size]) => size >= props.smallest).map(([size, name]) => [size / props.smallest, name]);
    const unitOf = (value) => units.find(([size]) => value && value % size === 0)?.[0] ?? units.at(-1)[0];
    const unit = ref(unitOf(props.value ?? props.field.control.default));
    const side = ref((props.value ?? 0) < 0 ? -1 : 1);
    watch(() => props.value, (value) => { if (value && value % unit.value !== 0) unit.value = unitOf(value); });
    return () => {
      const { field, value } = props;
      const disabled = field.form.readonly();
      return h("div", { class: "duration" }, [
        h("input", {
          type: "number", id: field.id, min: props.signed ? 0 : undefined, step: "any", disabled, "aria-label": field.label, "aria-describedby": field.describedBy,
          value: value === undefined || value === null ? "" : Math.abs(value) / unit.value,
          placeholder: field.control.default ? field.control.default / unit.value : "",
          onInput: (event) => {
            const number = numberOf(event.target.value);
            field.emit(number === undefined ? undefined : number * unit.value * side.value);
          },
        }),
        h("select", {
          "aria-label": `Unit of ${field.label}`, disabled, value: unit.value,
          onChange: (event) => {
            const next = Number(event.target.value);
            if (value !== undefined && value !== null) field.emit((value / unit.value) * next);
            unit.value = next;
          },
        }, units.map(([size, name]) => h("option", { value: size }, name))),
        props.signed && h("select", {
          "aria-label": `Direction of ${field.label}`, disabled, value: side.value,
          onChange: (event) => {
            side.value = Number(event.target.value);
            if (value) field.emit(Math.abs(value) * side.value);
          },
        }, [h("option", { value: -1 }, "before the date"), h("option", { value: 1 }, "after the date")]),
      ]);
    };
  },
};
CONTROLS.duration = (field) => h(Duration, { value: field.value, field, smallest: 1 });
CONTROLS.offset = (field) => h(Duration, { value: field.value, field, signed: true, smallest: 60 });

/** Any JSON, as text; what is not valid JSON is not stored. */
const JsonField = {
  props: ["field"],
  setup(props) {
    const show = (value) => (value === undefined ? "" : JSON.stringify(value, null, 2));
    const text = ref(show(props.field.value));
    const fault = ref("");
    let sent = JSON.stringify(props.field.value);
    watch(() => JSON.stringify(props.field.value), (value) => {
      if (value === sent) return;
      sent = value;
      text.value = show(props.field.value);
    });
    const typed = (written) => {
      if (written === text.value) return;
      text.value = written;
      try {
        const value = written.trim() === "" ? undefined : JSON.parse(written);
        fault.value = "";
        sent = JSON.stringify(value);
        props.field.emit(value);
      } catch {
        fault.value = "Invalid JSON. Your last valid value is kept.";
      }
    };
    return () => h("div", { class: "json-field" }, [
      h(CodeField, { text: text.value, label: `${props.field.label} (JSON)`, mode: "ace/mode/json", lines: 3, readonly: props.field.form.readonly(), onInput: typed }),
      fault.value && h("p", { class: "fault", role: "alert" }, fault.value),
    ]);
  },
};
CONTROLS.json = (field) => h(JsonField, { field });

CONTROLS.cel = (field) => h(ExpressionField, {
  binding: { type: "expression", value: field.value ?? "" }, text: field.value ?? "", language: "value", label: field.label, lines: 1, known: field.known,
  readonly: field.form.readonly(), describedBy: field.describedBy,
  onInput: (text) => text !== (field.value ?? "") && field.emit(text === "" ? undefined : text),
});

CONTROLS.collect = (field) => CONTROLS.select({
  ...field, control: { ...field.control, values: [...new Set([false, true, ...field.form.bodyNodes(), ...(typeof field.value === "string" ? [field.value] : [])])], labels: { false: "Do not collect", true: "Outputs of the last node" }, default: undefined }, required: true, value: field.value ?? false,
});

CONTROLS.group = (field) => {
  const optional = !field.required && field.value === undefined;
  if (optional) {
    return !field.form.readonly() && h("button", { type: "button", class: "button small", onClick: () => field.emit(firstOf(field.schema, field.root)) }, "Add");
  }
  return h("div", { class: "group", role: "group", "aria-label": field.label }, [
    h(Properties, { schema: field.control, root: field.root, shape: field.control.shape ?? field.name, value: field.value ?? {}, path: field.path, isFixed: field.isFixed, onChange: field.emit }),
    !field.required && !field.isOnly && !field.form.readonly() && h("button", { type: "button", class: "button small", "aria-label": `Remove ${field.label}`, onClick: () => field.emit(undefined) }, "Remove"),
  ]);
};
CONTROLS.variants = (field) => {
  const { key, variants } = field.control;
  const names = variants.map((variant) => variant.properties[key].const);
  const chosen = variants.find((variant) => variant.properties[key].const === field.value?.[key]);
  return h("div", { class: "group", role: "group", "aria-label": field.label }, [
    CONTROLS.select({ ...field, isBare: true, value: field.value?.[key], control: { values: names }, emit: (name) => field.emit(name === undefined ? undefined : { [key]: name }) }),
    chosen && h(Properties, { schema: chosen, root: field.root, shape: chosen.shape, value: field.value, path: field.path, isFixed: field.isFixed, hides: [key], onChange: field.emit }),
  ]);
};

export const removeButton = (label, remove) =>
  h("button", { type: "button", class: "remove", "aria-label": `Remove ${label}`, title: "Remove", onClick: remove }, "×");

/** Elements one below the other: each a field, with buttons to move and remove it. */
CONTROLS.list = (field) => {
  const single = field.control.single && field.value !== undefined && field.value !== null && !Array.isArray(field.value);
  const values = single ? [field.value] : field.value ?? [];
  const readonly = field.form.readonly();
  const set = (next) => field.emit(next.length === 0 && !field.required ? undefined : single && next.length === 1 ? next[0] : next);
  const singular = field.label.replace(/ies$/, "y").replace(/s$/, "").toLowerCase();
  const move = (from, to) => {
    const next = [...values];
    next.splice(to, 0, ...next.splice(from, 1));
    set(next);
  };
  return h("div", { class: "rows-of", role: "group", "aria-label": field.label }, [
    ...values.map((value, index) => h("div", { class: "row-of", key: index }, [
      h(Field, {
        schema: field.control.items, root: field.root, name: "", owner: field.control.shape, value, path: `${field.path}.${index}`, required: true, isFixed: field.isFixed,
        label: `${capital(singular)} ${index + 1}`, isBare: true,
        onChange: (next) => set(next === undefined ? values.filter((_, at) => at !== index) : values.with(index, next)),
      }),
      !readonly && h("div", { class: "row-tools" }, [
        index > 0 && h("button", { type: "button", class: "remove", "aria-label": `Move ${singular} ${index + 1} up`, onClick: () => move(index, index - 1) }, "↑"),
        removeButton(`${singular} ${index + 1}`, () => set(values.filter((_, at) => at !== index))),
      ]),
    ])),
    !readonly && h("button", { type: "button", class: "button small add", onClick: () => set([...values, firstOf(field.control.items, field.root)]) }, `Add ${singular || "row"}`),
  ]);
};

/** Names and values. A name that is typed again replaces the other row only once it is left. */
const MapField = {
  props: ["field"],
  setup(props) {
    const draft = ref("");
    return () => {
      const { field } = props;
      const entries = Object.entries(field.value ?? {});
      const readonly = field.form.readonly();
      const set = (next) => field.emit(next.length === 0 && !field.required ? undefined : Object.fromEntries(next));
      const add = () => {
        const name = draft.value.trim();
        if (name === "" || entries.some(([key]) => key === name)) return;
        draft.value = "";
        set([...entries, [name, firstOf(field.control.items, field.root)]]);
      };
      return h("div", { class: "rows-of map", role: "group", "aria-label": field.label }, [
        ...entries.map(([key, value], index) => h("div", { class: "row-of", key }, [
          h("input", {
            class: "row-name", type: "text", value: key, readonly, "aria-label": `Name ${index + 1} of ${field.label}`,
            onChange: (event) => {
              const name = event.target.value.trim();
              const isTaken = name === "" || entries.some(([other], at) => other === name && at !== index);
              if (isTaken) event.target.value = key;
              else set(entries.with(index, [name, value]));
            },
          }),
          h(Field, {
            schema: field.control.items, root: field.root, name: key, owner: `${field.control.shape ?? ""}*`, value, path: `${field.path}.${key}`, required: true, isFixed: field.isFixed,
            label: `Value of ${key}`, isBare: true,
            onChange: (next) => set(entries.with(index, [key, next === undefined ? null : next])),
          }),
          !readonly && removeButton(key, () => set(entries.filter((_, at) => at !== index))),
        ])),
        !readonly && h("div", { class: "adding" }, [
          h("input", {
            type: "text", placeholder: "Name", "aria-label": `New name in ${field.label}`, value: draft.value,
            onInput: (event) => { draft.value = event.target.value; },
            onKeydown: (event) => { if (event.key === "Enter") { event.preventDefault(); add(); } },
          }),
          h("button", { type: "button", class: "button small", onClick: add }, "Add"),
        ]),
      ]);
    };
  },
};
CONTROLS.map = (field) => h(MapField, { field });

const FREE = [["text", "Text"], ["number", "Number"], ["boolean", "Yes or no"], ["null", "Empty"], ["object", "Fields"], ["array", "List"]];
const BLANK = { text: "", number: 0, boolean: false, null: null, object: {}, array: [] };
const typeOf = (value) => {
  if (value === null) return "null";
  if (Array.isArray(value)) return "array";
  return { string: "text", undefined: "none" }[typeof value] ?? typeof value;
};
/** A value of any kind: first its kind, then the value. */
CONTROLS.any = (field) => {
  const types = new Set([...(field.control.types ?? [])].map((type) => ({ string: "text", integer: "number" })[type] ?? type));
  if (types.size > 0 && field.control.nullable) types.add("null");
  const now = typeOf(field.value);
  const offered = FREE.filter(([name]) => types.size === 0 || types.has(name) || name === now);
  const readonly = field.form.readonly();
  const { description: _described, ...plain } = field.control;
  const inner = {
    text: { ...plain, control: "textarea", maxLength: undefined }, number: { ...plain, control: "number" }, boolean: { control: "checkbox" },
    object: { control: "map", items: {} }, array: { control: "list", items: {} },
  }[now];
  return h("div", { class: "any-value" }, [
    h("select", {
      "aria-label": `Type of ${field.label}`, disabled: readonly, value: now,
      onChange: (event) => field.emit(event.target.value === "none" ? undefined : BLANK[event.target.value]),
    }, [(!field.required || now === "none") && h("option", { value: "none" }, "None"), ...offered.map(([name, title]) => h("option", { value: name, key: name }, title))]),
    inner && CONTROLS[inner.control]({ ...field, required: true, keepsEmpty: true, isBare: true, rows: 2, control: inner, emit: (value) => field.emit(value === undefined ? BLANK[now] : value) }),
  ]);
};

/** The properties of an object, one field each; what the schema does not know is kept and shown as JSON. */
export const Properties = {
  name: "Properties",
  props: ["schema", "root", "shape", "value", "path", "isFixed", "fixed", "hides", "pathOf"],
  emits: ["change"],
  setup(props, { emit }) {
    const form = inject("form");
    const picked = ref({});
    const set = (key, value) => emit("change", withChoice(props.shape, props.value, key, value), key, value);
    const isRequired = (key) => (props.schema.required ?? []).includes(key);
    const isMarked = (key) => isRequired(key) || isNeeded(props.schema, props.shape, key, props.value);
    const fieldOf = (key, more = {}) => h(Field, {
      key, schema: props.schema.properties[key], root: props.root, name: key, owner: props.shape, value: props.value[key],
      path: props.pathOf?.(key) ?? `${props.path}.${key}`, required: isRequired(key), isNeeded: isMarked(key),
      isFixed: props.isFixed || props.fixed?.includes(key), onChange: (value) => set(key, value), ...more,
    });
    const choiceOf = ({ keys, labels, none }, at) => {
      const chosen = keys.find((key) => props.value[key] !== undefined) ?? picked.value[at] ?? (none ? "" : keys[0]);
      const options = [...(none ? [["", none]] : []), ...keys.map((key, index) => [key, labels[index]])];
      const choose = (key) => {
        picked.value = { ...picked.value, [at]: key };
        const without = Object.fromEntries(Object.entries(props.value).filter(([name]) => !keys.includes(name)));
        if (keys.some((name) => props.value[name] !== undefined)) emit("change", without, null, undefined);
      };
      const title = none ? "Authentication" : labels.join(" or ");
      return h("div", { class: "panel-choice", key: keys.join() }, [
        none ? h("span", { class: "field-label", "aria-hidden": "true" }, title) : null,
        segments(title, options, chosen, choose, form.readonly()),
        ...keys.filter((key) => key === chosen || props.value[key] !== undefined).map((key) => fieldOf(key, { isOnly: true, isNeeded: !none })),
      ]);
    };
    return () => {
      const choices = CHOICES[props.shape] ?? [];
      const chosen = new Set(choices.flatMap(({ keys }) => keys));
      const keys = Object.keys(props.schema.properties ?? {}).filter((key) =>
        !props.hides?.includes(key) && !chosen.has(key) && isShown(props.shape, key, props.value));
      const ordered = [...keys].sort((a, b) => Number(isMarked(b)) - Number(isMarked(a)));
      const main = ordered.filter((key) => isMain(props.schema, props.shape, key));
      const more = ordered.filter((key) => !main.includes(key));
      const unknown = Object.keys(props.value).filter((key) => !(key in (props.schema.properties ?? {})) && !props.hides?.includes(key));
      return h("div", { class: "panel-rows" }, [
        ...main.filter(isMarked).map((key) => fieldOf(key)),
        ...choices.map(choiceOf),
        ...main.filter((key) => !isMarked(key)).map((key) => fieldOf(key)),
        more.length > 0 && h("details", { class: "panel-more", open: more.some((key) => props.value[key] !== undefined) || undefined }, [
          h("summary", "More options"), ...more.map((key) => fieldOf(key))]),
        ...unknown.map((key) => h(Field, {
          key: `unknown ${key}`, schema: {}, root: props.root, name: key, owner: "", value: props.value[key], label: key,
          path: props.pathOf?.(key) ?? `${props.path}.${key}`, isFixed: props.isFixed, onChange: (value) => set(key, value),
        })),
      ]);
    };
  },
};

/** The context of every field of a form: names, issues by place, and whether it may be changed. */
export const formOf = ({ names, issues, readonly, config, secrets = false, paths = () => [], bodyNodes = () => [], filters }) => ({
  names, readonly, config, secrets, paths, bodyNodes, filters,
  issuesAt: (path, below) => issues().filter((issue) => issue.path === path || (below && issue.path?.startsWith(`${path}.`))),
});

/** An issue with the place that its message begins with, if it has no other. */
export function placed(issue) {
  const found = /^((?:config|input|triggerConfig)(?:\.[^\s:]+)?): ([\s\S]*)$/.exec(issue.message);
  return found && !issue.path ? { ...issue, path: found[1], message: found[2] } : issue;
}


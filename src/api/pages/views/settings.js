// The settings of a view: its name, its kind, and the needs of the kind. Views are made and changed here.

import { addressOf, button, choices, fieldChoices, Modal, select } from "./controls.js";
import { call, facts, fieldsByKey } from "./store.js";

const { computed, h, reactive, ref } = globalThis.Vue;

const NONE = { key: "", label: "—" };
const PERIODS = ["day", "week", "month", "quarter", "year"].map((key) => ({ key, label: key }));
const AGGREGATES = {
  count: "Number of records", count_empty: "Empty", count_filled: "Not empty", count_unique: "Distinct values", percent_empty: "% empty", percent_filled: "% not empty",
  sum: "Sum", avg: "Average", min: "Minimum", max: "Maximum", median: "Median", range: "Range", stddev: "Standard deviation",
  earliest: "Earliest", latest: "Latest", checked: "Checked", unchecked: "Unchecked",
};

export const aggregateName = (op) => AGGREGATES[op] ?? op;
export const serving = (key) => facts.fields.filter((field) => field.serves.includes(key));
export const isDate = (field) => field?.form === "day" || field?.form === "moment";

/** One labelled control of a form. */
const line = (label, control, hint) => h("label", { class: "field", key: label }, [h("span", null, label), control, hint ? h("small", { class: "tip" }, hint) : null]);

function fieldLine(label, manifest, key, { isNeeded = false, hint } = {}) {
  const list = fieldChoices(serving(key));
  return line(label, select(label, manifest[key] ?? "", isNeeded ? list : [NONE, ...list], (value) => { manifest[key] = value || null; }),
    list.length === 0 ? hint : undefined);
}

/** The function of a chart or a summary, and the field that it is of. */
export function aggregateControls(label, aggregate, onChange) {
  const op = aggregate?.op ?? "count";
  const numeric = (field) => field.aggregates.includes(op);
  const fields = facts.fields.filter(numeric);
  const setOp = (next) => {
    const field = facts.fields.find((one) => one.key === aggregate?.field && one.aggregates.includes(next)) ?? facts.fields.find((one) => one.aggregates.includes(next) && one.key !== "title");
    onChange(next === "count" ? { op: next } : { op: next, field: field?.key });
  };
  const offered = Object.keys(AGGREGATES).filter((one) => facts.fields.some((field) => field.aggregates.includes(one)));
  return [
    select(label, op, offered.map((key) => ({ key, label: AGGREGATES[key] })), setOp),
    op === "count" ? null : select(`${label}, field`, aggregate?.field ?? "", fieldChoices(fields), (field) => onChange({ ...aggregate, op, field })),
  ];
}

function chartLines(manifest) {
  const chart = manifest.chart ?? {};
  const set = (parts) => { manifest.chart = Object.fromEntries(Object.entries({ ...chart, ...parts }).filter(([, value]) => value !== null && value !== undefined && value !== "")); };
  const field = fieldsByKey.get(chart.xFieldKey);
  return [
    line("Chart type", select("Chart type", chart.type, facts.chartTypes, (type) => set({ type }))),
    chart.type === "number" ? null : line("Values of", select("Values of", chart.xFieldKey ?? "", fieldChoices(facts.fields.filter((one) => one.isGrouped)), (key) => set({ xFieldKey: key, granularity: isDate(fieldsByKey.get(key)) ? chart.granularity ?? "month" : null }))),
    chart.type !== "number" && isDate(field) ? line("Period", select("Period", chart.granularity ?? "day", PERIODS, (granularity) => set({ granularity }))) : null,
    h("div", { class: "field", key: "figure" }, [h("span", null, "Figure"), ...aggregateControls("Figure", chart.aggregate, (aggregate) => set({ aggregate: aggregate.op === "count" ? null : aggregate }))]),
  ];
}

const cardLine = (manifest) => h("div", { class: "field", key: "cards" }, [
  h("span", null, "Shown on cards"),
  choices("Shown on cards", manifest.cardFields ?? [], fieldChoices(facts.fields.filter((one) => one.key !== "title")), (value) => { manifest.cardFields = value.length > 0 ? value : null; }),
]);

const LINES = {
  board: (manifest) => [
    fieldLine("Columns", manifest, "stackFieldKey", { isNeeded: true, hint: "Add a select, status, person or checkbox field first." }),
    fieldLine("Order by hand in", manifest, "orderFieldKey"),
    cardLine(manifest),
  ],
  calendar: (manifest) => [
    fieldLine("Date", manifest, "dateFieldKey", { isNeeded: true, hint: "Add a field with dates first." }),
    fieldLine("End date", manifest, "endDateFieldKey"),
  ],
  timeline: (manifest) => [
    fieldLine("Start date", manifest, "dateFieldKey", { isNeeded: true, hint: "Add a field with dates first." }),
    fieldLine("End date", manifest, "endDateFieldKey", { isNeeded: true }),
  ],
  gallery: (manifest) => [fieldLine("Cover", manifest, "coverFieldKey"), cardLine(manifest)],
  chart: chartLines,
};

const first = (key) => serving(key)[0]?.key ?? null;

/** The parts of a manifest that a kind cannot do without, with something to begin with. */
function begun(kind, manifest) {
  switch (kind) {
    case "board": return { stackFieldKey: manifest.stackFieldKey ?? first("stackFieldKey") };
    case "calendar": return { dateFieldKey: manifest.dateFieldKey ?? first("dateFieldKey") };
    case "timeline": return { dateFieldKey: manifest.dateFieldKey ?? first("dateFieldKey"), endDateFieldKey: manifest.endDateFieldKey ?? serving("endDateFieldKey")[1]?.key ?? first("endDateFieldKey") };
    case "chart": {
      const x = facts.fields.find((field) => field.options.length > 0) ?? facts.fields.find((field) => field.isGrouped);
      return { chart: manifest.chart ?? { type: "bar", xFieldKey: x.key, ...(isDate(x) ? { granularity: "month" } : {}) } };
    }
    case "form": return { form: manifest.form ?? { fields: facts.fields.filter((field) => field.isWritten).map(({ key }) => ({ key })) } };
    default: return {};
  }
}

const cleaned = (manifest) => Object.fromEntries(Object.entries(manifest).filter(([, value]) => value !== null && value !== undefined));

/** Views that are made from others keep what narrows and orders their records. */
const SHARED_PARTS = ["filter", "sorts", "fields", "colors"];

/**
 * Makes a view, or changes one. `view` is the one to change; `from` a manifest whose filter, order
 * and fields a new one takes. Emits `change` with the body for a view that is there, and `close`.
 */
export const ViewDialog = {
  props: ["view", "from", "kind"],
  emits: ["close", "change"],
  setup(props, { emit }) {
    const state = reactive({ label: props.view?.label ?? "", kind: props.view?.kind ?? props.kind ?? "table", scope: props.view?.scope ?? "shared" });
    const inherited = Object.fromEntries(SHARED_PARTS.filter((key) => props.from?.[key]).map((key) => [key, props.from[key]]));
    const manifest = reactive({ ...(props.view?.manifest ?? inherited) });
    const problem = ref("");
    const isBusy = ref(false);
    Object.assign(manifest, begun(state.kind, manifest));
    const kindLabel = computed(() => facts.kinds.find((one) => one.key === state.kind).label);
    const setKind = (kind) => {
      state.kind = kind;
      Object.assign(manifest, begun(kind, manifest));
    };
    async function save(event) {
      event.preventDefault();
      const body = { label: state.label.trim() || kindLabel.value, kind: state.kind, manifest: cleaned(manifest), scope: state.scope };
      isBusy.value = true;
      problem.value = "";
      try {
        if (props.view) {
          const empty = Object.fromEntries(Object.keys(props.view.manifest).filter((key) => !(key in body.manifest)).map((key) => [key, null]));
          await new Promise((done, fail) => emit("change", { ...body, manifest: { ...body.manifest, ...empty } }, done, fail));
          emit("close");
        } else {
          const view = await call("POST", `/v1/databases/${facts.database.id}/views`, body);
          globalThis.location.assign(addressOf(view.id));
        }
      } catch (error) {
        problem.value = error.message;
        isBusy.value = false;
      }
    }
    return () => h(Modal, { title: props.view ? "View settings" : "New view", name: "view-settings", onClose: () => emit("close") }, () => h("form", { class: "view-form", onSubmit: save }, [
      line("Name", h("input", { type: "text", "aria-label": "Name", maxlength: 200, autocomplete: "off", placeholder: kindLabel.value, value: state.label, onInput: (event) => { state.label = event.target.value; } })),
      line("Kind", select("Kind", state.kind, facts.kinds, setKind)),
      ...(LINES[state.kind]?.(manifest) ?? []),
      line("Visible to", select("Visible to", state.scope, [{ key: "shared", label: "Everyone" }, { key: "personal", label: "Only me" }], (scope) => { state.scope = scope; })),
      problem.value ? h("p", { class: "fault", role: "alert" }, problem.value) : null,
      h("div", { class: "buttons" }, [
        button("Cancel", () => emit("close")),
        h("button", { type: "submit", class: "button primary", disabled: isBusy.value }, props.view ? "Save" : "Create"),
      ]),
    ]));
  },
};

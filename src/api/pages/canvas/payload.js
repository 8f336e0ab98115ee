// The data that starts a test, as a form: made of the trigger, and of what started an earlier run.

import { isObject } from "/pages/canvas/bindings.js";
import { CONTROLS, Field, formOf, Properties } from "/pages/canvas/form.js";
import { drawnSchema, valueSchema } from "/pages/canvas/pickers.js";
import { withKey } from "/pages/canvas/schema.js";

const { computed, h, onMounted, provide, ref, shallowRef, watch } = globalThis.Vue;

const RECORDS = new Set(["record_created", "record_updated", "record_deleted", "record_matches", "record_date_reached", "button_pressed"]);
const WITH_BEFORE = new Set(["record_updated", "record_matches"]);
const ANY = { type: "object" };
const PAUSE = 250;

/** The moment that an input of a date and a time shows, in the zone of the browser. */
const asLocal = (text) => {
  const at = new Date(text);
  return Number.isNaN(at.getTime()) ? "" : new Date(at.getTime() - at.getTimezoneOffset() * 60_000).toISOString().slice(0, 16);
};

/** A payload of this trigger to begin with, where nothing has started a run yet. */
export function firstPayload(trigger, keys = []) {
  const { kind } = trigger;
  if (kind === "webhook") return { method: trigger.methods?.[0] ?? "POST", headers: {}, query: {}, body: {} };
  if (kind === "schedule") return { scheduledAt: new Date(Math.floor(Date.now() / 60_000) * 60_000).toISOString(), timezone: trigger.timezone ?? "UTC" };
  if (RECORDS.has(kind) || kind === "form_submitted") return {};
  return Object.fromEntries(keys.map((key) => [key, ["run", "entry", "triggerPayload"].includes(key) ? {} : ""]));
}

/** What a record event has, for a record as it is stored. */
export function payloadOf(trigger, record) {
  const at = new Date().toISOString();
  switch (trigger.kind) {
    case "record_updated": return { record, before: record, changedKeys: [] };
    case "record_matches": return { record, before: record };
    case "record_date_reached": return { record, dueAt: at };
    case "button_pressed": return { record, fieldKey: trigger.fieldKey ?? "" };
    case "record_deleted": return { record, before: record, changedKeys: [] };
    default: return { record, before: null, changedKeys: Object.keys(record.data ?? {}) };
  }
}

/** The payload with other values of its record; what differs from before is changed. */
export function withValues(payload, data) {
  const record = { ...payload.record, data };
  if (typeof data.title === "string") record.title = data.title;
  const before = payload.before?.data;
  const keys = new Set([...Object.keys(before ?? {}), ...Object.keys(data)]);
  const differs = (key) => JSON.stringify(before?.[key]) !== JSON.stringify(data[key]);
  return { ...payload, record, ...("changedKeys" in payload ? { changedKeys: [...keys].filter(differs).sort() } : {}) };
}

const labelled = (label, id, control) => h("div", { class: "panel-field" }, [h("div", { class: "field-head" }, h("label", { class: "field-label", for: id }, label)), control]);
const map = (label, name, value, change) => h(Field, {
  schema: { ...ANY, title: label }, root: {}, name, owner: "", value, path: name, isFixed: true, required: true, isNeeded: false, onChange: (next) => change(next ?? {}) });

/** Records of a table by their titles; one is picked, and its values can be changed for the test. */
const RecordForm = {
  props: ["trigger", "names", "value"],
  emits: ["change"],
  setup(props, { emit }) {
    const found = shallowRef(null);
    const text = ref("");
    let timer;
    const load = async () => {
      const id = props.trigger.databaseId;
      found.value = id ? await props.names.records(id, text.value.trim()).catch(() => []) : [];
    };
    onMounted(load);
    watch(text, () => { clearTimeout(timer); timer = setTimeout(load, PAUSE); });
    return () => {
      const { trigger, value } = props;
      if (!trigger.databaseId) return h("p", { class: "quiet" }, "Choose the table of the trigger first.");
      const record = isObject(value.record) ? value.record : null;
      const list = found.value ?? [];
      const isListed = !record || list.some(({ id }) => id === record.id);
      return h("div", { class: "panel-form" }, [
        labelled("Search records", "payload-search", h("input", { type: "search", id: "payload-search", autocomplete: "off", value: text.value, onInput: (event) => { text.value = event.target.value; } })),
        labelled("Record", "payload-record", h("select", {
          id: "payload-record", value: record?.id ?? "",
          onChange: (event) => {
            const picked = list.find(({ id }) => id === event.target.value);
            if (picked) emit("change", payloadOf(trigger, picked));
          },
        }, [
          h("option", { value: "" }, found.value === null ? "Loading…" : list.length === 0 ? "No records" : "Choose…"),
          !isListed && h("option", { value: record.id }, record.title || "Record of the earlier run"),
          ...list.map((one) => h("option", { value: one.id, key: one.id }, one.title || "Untitled")),
        ])),
        record && h("div", { class: "panel-field" }, [
          h("div", { class: "field-head" }, h("span", { class: "field-label" }, WITH_BEFORE.has(trigger.kind) ? "Values after the change" : "Values")),
          CONTROLS.record({ value: record.data ?? {}, form: props.names.form(trigger.databaseId), control: { control: "record" }, label: "Values", path: "data", isFixed: true, required: true,
            emit: (data) => emit("change", withValues(value, data ?? {})) }),
        ]),
      ]);
    };
  },
};

/** The questions of a form; the answers are the record that the form would create. */
const AnswersForm = {
  props: ["trigger", "names", "value"],
  emits: ["change"],
  setup(props, { emit }) {
    const form = shallowRef(null);
    const isAsked = ref(false);
    onMounted(async () => {
      form.value = await props.names.questions(props.trigger.formItemId).catch(() => null);
      isAsked.value = true;
    });
    const schema = computed(() => form.value && {
      properties: Object.fromEntries(form.value.fields.map((one) => [one.key, { ...valueSchema(one), title: one.label }])),
      required: form.value.fields.filter((one) => one.required).map(({ key }) => key),
    });
    const answer = (data) => emit("change", {
      record: { ...props.value.record, title: String(data.title ?? ""), databaseId: form.value.databaseId, data },
      submission: { formId: form.value.id, formItemId: form.value.itemId, submittedAt: new Date().toISOString(), ...props.value.submission },
    });
    return () => {
      const data = props.value.record?.data ?? {};
      if (!isAsked.value) return h("p", { class: "quiet" }, "Loading…");
      if (schema.value === null) return h("p", { class: "quiet" }, props.trigger.formItemId ? "The form could not be loaded." : "Choose the form of the trigger first.");
      return h(Properties, { schema: schema.value, root: schema.value, shape: "", value: data, path: "data", isFixed: true, onChange: answer });
    };
  },
};

function webhookForm(trigger, value, change) {
  const put = (key) => (next) => change(withKey(value, key, next));
  const methods = [...new Set([...(trigger.methods ?? ["POST"]), ...(typeof value.method === "string" ? [value.method] : [])])];
  return h("div", { class: "panel-form" }, [
    methods.length > 1 && labelled("Method", "payload-method", h("select", { id: "payload-method", value: value.method ?? methods[0], onChange: (event) => put("method")(event.target.value) }, methods.map((one) => h("option", { value: one }, one)))),
    map("Body", "body", value.body ?? {}, put("body")),
    h("details", { class: "panel-more" }, [h("summary", "Query and headers"), map("Query", "query", value.query ?? {}, put("query")), map("Headers", "headers", value.headers ?? {}, put("headers"))]),
  ]);
}

const scheduleForm = (value, change) => h("div", { class: "panel-form" }, [
  labelled("Due at", "payload-due", h("input", { type: "datetime-local", id: "payload-due", value: asLocal(value.scheduledAt),
    onChange: (event) => { if (event.target.value) change({ ...value, scheduledAt: new Date(event.target.value).toISOString() }); } })),
  labelled("Time zone", "payload-zone", h("input", { type: "text", id: "payload-zone", autocomplete: "off", value: value.timezone ?? "UTC", onInput: (event) => change({ ...value, timezone: event.target.value }) })),
]);

/** The form of the data that starts a run. Emits `change` with the whole payload. */
export const PayloadForm = {
  props: ["trigger", "names", "value"],
  emits: ["change"],
  setup(props, { emit }) {
    const form = formOf({ names: props.names, issues: () => [], readonly: () => false, config: () => ({ databaseId: props.trigger.databaseId }) });
    const names = { ...props.names, form: () => form };
    provide("target", shallowRef(null));
    provide("scope", null);
    provide("form", form);
    const change = (next) => emit("change", next);
    return () => {
      const { trigger, value } = props;
      if (trigger.kind === "webhook") return webhookForm(trigger, value, change);
      if (trigger.kind === "schedule") return scheduleForm(value, change);
      if (RECORDS.has(trigger.kind)) return h(RecordForm, { trigger, names, value, onChange: change });
      if (trigger.kind === "form_submitted") return h(AnswersForm, { trigger, names, value, onChange: change });
      const schema = drawnSchema(trigger.inputSchema);
      if (schema === null) return map("Input", "input", value, change);
      return h(Properties, { schema, root: schema, shape: "", value, path: "input", isFixed: true, onChange: change });
    };
  },
};

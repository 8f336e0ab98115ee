// The controls of a JSON Schema: one for each part of it, if one fits. Pure.

import { isObject } from "/pages/canvas/bindings.js";

const NULL = "null";
const LONG = 2000;

/** Properties whose values are ids or keys, with the list of names that they are chosen from. */
export const PICKED = {
  actionId: "actions", automationId: "automations", automationIds: "automations", assignees: "members",
  connectionId: "connections", databaseId: "databases", dataSourceId: "dataSources", endpointId: "endpoints",
  failureAutomationId: "automations", formItemId: "forms", secretName: "secrets", userIds: "members",
  viewId: "views", fieldKey: "fields", fieldKeys: "fields", upsertBy: "fields",
  "RecordQuery.fields": "fields", "Sort.field": "fields", "Aggregation.field": "fields",
};

/** Parts of a config of which one excludes the other, with the word for none where none is allowed. */
export const CHOICES = {
  condition: [{ keys: ["expression", "filter"], labels: ["Expression", "Filter"] }],
  delay: [{ keys: ["seconds", "until"], labels: ["For a time", "Until a date"] }],
  notify: [{ keys: ["userIds", "role"], labels: ["Members", "Role"] }],
  send_webhook: [{ keys: ["endpointId", "url"], labels: ["Webhook endpoint", "URL"] }],
  http_request: [{ keys: ["auth", "connectionId"], labels: ["Credentials", "Connection"], none: "None" }],
};

const is = (key, ...values) => (owner) => values.includes(owner[key]);
const HMAC = is("scheme", "hmac_sha256");
/** When a property makes sense beside the others; one that has a value is shown in any case. */
const SHOWN = {
  "join.count": is("mode", "count"),
  "delay.timezone": (owner) => owner.seconds === undefined,
  "HttpAuth.token": is("type", "bearer"), "HttpAuth.username": is("type", "basic"),
  "HttpAuth.password": is("type", "basic"), "HttpAuth.name": is("type", "header"),
  "HttpAuth.value": is("type", "header"), "ApprovalField.options": is("kind", "select"),
  "webhook.header": is("auth", "header"), "webhook.secretName": is("auth", "header", "basic", "signature", undefined),
  "webhook.signature": is("auth", "signature", undefined), "webhook.waitSeconds": is("respond", "wait"),
  "Signature.header": HMAC, "Signature.encoding": HMAC, "Signature.timestampHeader": HMAC,
  "Signature.signedContent": HMAC, "Deduplication.name": is("source", "header", "path"),
  "record_created.fieldKeys": () => false, "record_deleted.fieldKeys": () => false,
  "call_automation.versionPolicy": () => false, "query_records.cursor": () => false,
};

/** Properties that are required beside certain others, which their schema does not say. */
const NEEDED = {
  "join.count": is("mode", "count"), "HttpAuth.token": is("type", "bearer"), "HttpAuth.username": is("type", "basic"),
  "HttpAuth.password": is("type", "basic"), "HttpAuth.name": is("type", "header"), "Signature.header": HMAC,
  "Deduplication.name": is("source", "header", "path"),
};

/** True for a property that a draft may lack, but no published version. */
export const isNeeded = (schema, shape, key, owner) =>
  (schema["x-needed"] ?? []).includes(key) || (NEEDED[`${shape}.${key}`]?.(owner) ?? false);

const makesSense = (shape, key, owner) => SHOWN[`${shape}.${key}`]?.(owner) ?? true;

export const isShown = (shape, key, owner) => owner[key] !== undefined || makesSense(shape, key, owner);

/** An object with another value of a property, without what made sense beside the one before alone. */
export function withChoice(shape, owner, key, value) {
  const after = withKey(owner, key, value);
  return Object.fromEntries(Object.entries(after).filter(([name]) => !makesSense(shape, name, owner) || makesSense(shape, name, after)));
}

/** Optional properties that are shown beside the required ones; the others are under "More options". */
const MAIN = {
  http_request: ["method", "headers", "query", "body", "auth", "connectionId"], query_records: ["query"],
  create_record: ["title", "data"], update_record: ["databaseId", "title", "data"], delete_record: ["databaseId"],
  condition: ["expression", "filter"], transform: ["output"], join: ["mode", "count"], stop: ["result", "message"],
  for_each: ["parallelism"], repeat: ["while", "maxIterations"], delay: ["seconds", "until"],
  wait_event: ["eventKey", "timeoutSeconds"], approval: ["assignees", "role", "title", "message", "form"],
  call_automation: ["input", "wait"], notify: ["userIds", "role", "body"], send_email: ["body"],
  send_webhook: ["endpointId", "url", "data"], respond: ["status", "body"],
  RecordQuery: ["filter", "sorts", "limit"], webhook: ["methods", "auth", "header", "secretName", "respond", "waitSeconds"],
  record_created: ["databaseId", "filter"], record_updated: ["databaseId", "fieldKeys", "filter"],
  record_deleted: ["databaseId", "filter"], record_matches: ["databaseId", "filter"],
  record_date_reached: ["databaseId", "fieldKey", "offsetMinutes"], form_submitted: ["formItemId"],
  button_pressed: ["databaseId", "fieldKey"], data_source_finished: ["dataSourceId", "on"],
  schedule: ["timezone"], manual: ["inputSchema"], automation_called: ["inputSchema"], automation_failed: ["automationIds"], time_entry_completed: ["targetKind", "databaseId"],
  HttpAuth: ["type", "token", "username", "password", "name", "value"], ApprovalField: ["kind", "required", "options"],
  Sort: ["direction"], Aggregation: ["field", "as"], Concurrency: ["keyExpression", "policy"],
  Deduplication: ["name", "windowSeconds"], SaveAs: ["name"], Signature: ["scheme", "header"],
  Retry: ["maxAttempts", "initialDelaySeconds", "backoffMultiplier", "maxDelaySeconds"],
};

export const isMain = (schema, shape, key) =>
  (schema.required ?? []).includes(key) || !(shape in MAIN) || MAIN[shape].includes(key);

/** A part of a schema without references and nulls, and the name of its shape if it has one. */
export function resolve(schema, root) {
  let found = schema;
  let shape = null;
  let nullable = false;
  const around = {};
  for (let depth = 0; depth < 20; depth += 1) {
    const { $ref: reference, anyOf, oneOf, ...rest } = found;
    Object.assign(around, Object.fromEntries(Object.entries(rest).filter(([key]) => !(key in around))));
    if (reference !== undefined) {
      shape = reference.split("/").at(-1);
      found = root.$defs?.[shape] ?? {};
      continue;
    }
    const options = anyOf ?? oneOf;
    if (options === undefined) return { ...rest, ...around, shape, nullable };
    const kept = options.filter((option) => option.type !== NULL);
    nullable ||= kept.length < options.length;
    if (kept.length !== 1) return { ...around, options: kept, shape, nullable };
    [found] = kept;
  }
  return { ...around, shape, nullable };
}

const scalar = (schema) => ["string", "number", "integer", "boolean"].includes(schema.type);

function ofOptions(options, root) {
  const parts = options.map((option) => resolve(option, root));
  const list = parts.find((part) => part.type === "array");
  const rest = parts.filter((part) => part !== list);
  const named = parts.map((part) => part["x-documented-as"]);
  if (named.includes("Filter")) return { control: "filter", expression: named.includes("CelExpression") };
  if (named.some(Boolean)) return { control: "json" };
  if (parts.every((part) => part.const !== undefined || part.enum)) {
    return { control: "select", values: parts.flatMap((part) => part.enum ?? [part.const]) };
  }
  if (list && rest.every((part) => scalar(part) && !part.const)) return { control: "list", items: list.items, single: true };
  if (list && rest.length === 1 && rest[0].const !== undefined) {
    return { control: "pickers", items: list.items, alone: rest[0].const };
  }
  const key = parts.every((part) => part.type === "object") && tagOf(parts);
  if (key) return { control: "variants", key, variants: parts };
  const types = new Set(parts.map((part) => part.type));
  return { control: "any", types };
}

/** The property whose constant tells the variants of an object apart. */
const tagOf = (parts) =>
  Object.keys(parts[0].properties ?? {}).find((key) => parts.every((part) => part.properties?.[key]?.const !== undefined));

/** The control of a property, with what it needs: `{control, …}` beside the resolved schema. */
export function controlOf(schema, root, name = "", owner = "") {
  const found = resolve(schema, root);
  return { ...found, ...kindOf(found, root, name, owner) };
}

function kindOf(found, root, name, owner) {
  const picked = PICKED[`${owner}.${name}`] ?? PICKED[name];
  if (found.shape === "CelExpression") return { control: "cel" };
  if (found["x-documented-as"] === "Filter") return { control: "filter", expression: false };
  if (found["x-documented-as"]) return { control: "json" };
  if (picked && found.options) return { ...ofOptions(found.options, root), names: picked };
  if (picked) return { control: found.type === "array" ? "pickers" : "picker", names: picked };
  if (owner === "create_record" || owner === "update_record") {
    if (name === "data") return { control: "record" };
    if (name === "relations") return { control: "relations" };
  }
  if (owner === "call_automation" && name === "input") return { control: "called" };
  if (name === "collect") return { control: "collect" };
  if (name === "inputSchema") return { control: "inputs" };
  if (found.options) return ofOptions(found.options, root);
  if (found.const !== undefined) return { control: "select", values: [found.const] };
  if (found.enum) return { control: "select", values: found.enum };
  return ofType(found, name);
}

function ofType(found, name) {
  if (found.type === "boolean") return { control: "checkbox" };
  if (found.type === "integer" || found.type === "number") {
    if (/Seconds$|^seconds$/.test(name)) return { control: "duration", unit: 1 };
    return name === "offsetMinutes" ? { control: "offset" } : { control: "number" };
  }
  if (found.type === "string") {
    if (name === "timezone") return { control: "timezone" };
    return { control: (found.maxLength ?? 0) >= LONG && name !== "url" && !found.pattern ? "textarea" : "text" };
  }
  if (found.type === "array") {
    const items = found.items ?? {};
    if (Object.keys(items).length === 0) return { control: "any", types: new Set(["array"]) };
    if (items.enum) return { control: "checks", values: items.enum };
    return { control: "list", items };
  }
  if (found.type === "object" && found.properties) return { control: "group" };
  if (found.type === "object") return { control: "map", items: mapItems(found) };
  return { control: "any", types: new Set() };
}

const mapItems = (found) => {
  const pattern = Object.values(found.patternProperties ?? {})[0];
  return pattern ?? (isObject(found.additionalProperties) ? found.additionalProperties : {});
};

const FITS = {
  text: (value) => typeof value === "string",
  number: (value) => typeof value === "number",
  checkbox: (value) => typeof value === "boolean",
  select: (value, { values }) => value === "" || values.includes(value),
  checks: (value, { values }) => Array.isArray(value) && value.every((one) => values.includes(one)),
  pickers: (value, { alone }) => (alone !== undefined && value === alone)
    || (Array.isArray(value) && value.every((one) => typeof one === "string")),
  list: (value, { single }) => Array.isArray(value) || (Boolean(single) && typeof value !== "object"),
  group: isObject,
  filter: (value, { expression }) => isObject(value) || (expression && typeof value === "string"),
  collect: (value) => typeof value === "boolean" || typeof value === "string",
};
Object.assign(FITS, {
  textarea: FITS.text, timezone: FITS.text, picker: FITS.text, cel: FITS.text, duration: FITS.number,
  offset: FITS.number, map: FITS.group, record: FITS.group, relations: FITS.group, inputs: FITS.group, called: FITS.group,
  variants: FITS.group, any: () => true, json: () => true,
});

/** True when a control can show a value without losing any of it; nothing at all always fits. */
export const fits = (value, control) =>
  value === undefined || (value === null && control.nullable) || Boolean(FITS[control.control](value, control));

/** A first value of a part: what an added row or group begins with. */
export function firstOf(schema, root) {
  const { control, values, properties, required = [], types } = controlOf(schema, root);
  if (control === "group") {
    return Object.fromEntries(required.map((key) => [key, firstOf(properties[key], root)]));
  }
  if (control === "map" || control === "record") return {};
  if (control === "list" || control === "checks" || control === "pickers") return [];
  if (control === "checkbox") return false;
  if (control === "number" || control === "duration") return 0;
  if (control === "select") return values[0];
  return types?.has("array") && types.size === 1 ? [] : "";
}

const DAY = 86_400;
const seconds = (title, more = {}) => ({ type: "number", minimum: 0, maximum: DAY, title, ...more });
/** The settings of every node beside its config. */
export const SETTINGS = {
  properties: {
    disabled: { type: "boolean", default: false, title: "Disabled", description: "Runs skip this node and continue." },
    timeoutSeconds: { type: "integer", minimum: 1, maximum: DAY, default: 300, title: "Timeout" },
    retry: { $ref: "#/$defs/Retry", title: "Retry", description: "Without it, a node is tried once." },
    mock: { $ref: "#/$defs/Mock", title: "Fixed output in tests", description: "Tests use this output instead of running the node." },
    notes: { type: "string", maxLength: 10_000, title: "Notes", description: "Shown above the node." },
  },
  $defs: {
    Retry: {
      type: "object", properties: {
        maxAttempts: { type: "integer", minimum: 1, maximum: 20, default: 3, title: "Attempts" },
        initialDelaySeconds: seconds("First delay", { default: 2 }),
        backoffMultiplier: { type: "number", minimum: 1, maximum: 100, default: 2, title: "Multiply each delay by" },
        maxDelaySeconds: seconds("Longest delay", { default: 300 }),
      },
    },
    Mock: {
      type: "object", properties: {
        enabled: { type: "boolean", default: false, title: "Use it" },
        output: { type: "object", title: "Output" },
      },
    },
  },
};

/** What a problem of a node may be of, beside its config. */
const NODE = { ...SETTINGS, properties: { ...SETTINGS.properties, actionId: { title: "Action" }, label: { title: "Label" } } };

/** The place of a problem by the labels of a form: `config.title` is `Title`, `retry.maxAttempts` is `Retry › Attempts`. */
export function titleOf(path, schema) {
  const [, prefix = ""] = /^(config|input|triggerConfig)(?:\.|$)/.exec(path) ?? [];
  const root = (prefix ? schema : NODE) ?? {};
  let part = root;
  return path.slice(prefix.length).split(".").filter(Boolean).map((step) => {
    const { properties, items, options = [] } = resolve(part, root);
    const elements = items ?? options.find(({ type }) => type === "array")?.items;
    part = properties?.[step] ?? elements ?? {};
    return elements && /^\d+$/.test(step) ? String(Number(step) + 1) : part.title ?? step;
  }).join(" › ");
}

/** A problem with the label of its place; "" where it has none, or where its message names it already. Keys that it needs have their labels. */
export function toldOf({ path, message }, schema) {
  const title = titleOf(path ?? "", schema);
  const labelled = message.replace(/\bneeds .+/, (part) => part.replace(/\w+/g, (key) => schema?.properties?.[key]?.title ?? key));
  return { title: message.toLowerCase().startsWith(`${title.toLowerCase()} `) ? "" : title, message: labelled };
}

/** The same as parts of a page. */
export const atPlace = ({ title, message }) => (title ? [globalThis.Vue.h("b", title), /^[A-Z]/.test(message) ? ": " : " ", message] : [capital(message)]);
const capital = (text) => text.charAt(0).toUpperCase() + text.slice(1);

/** True for a problem that the form of a schema shows at its field. */
export const isAtField = ({ path }, schema) => {
  const [, key] = /^(?:config|input|triggerConfig)\.(\w+)(?:\.[A-Za-z_]\w*)?$/.exec(path ?? "") ?? [];
  return path === "actionId" || Boolean(key && schema?.properties?.[key]);
};

/** An object with a property set, or without it; the order of the others stays. */
export function withKey(owner, key, value) {
  if (value !== undefined) return { ...owner, [key]: value };
  const { [key]: _gone, ...rest } = owner;
  return rest;
}

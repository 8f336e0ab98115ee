// The panel of the trigger: its kind, the form of each kind, and what it would do.

import { scopeOf } from "/pages/canvas/expression.js";
import { CONTROLS, formOf, needed, placed, Properties } from "/pages/canvas/form.js";
import { heading, problemList } from "/pages/canvas/node-panel.js";
import { isAtField } from "/pages/canvas/schema.js";

const { h, onBeforeUnmount, provide, ref, shallowRef, watch } = globalThis.Vue;

const PAUSE = 300;
const DAYS = ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"];
const REPEATS = [
  ["interval", "At an interval"], ["hourly", "Every hour"], ["daily", "Every day"], ["weekdays", "Monday to Friday"],
  ["weekly", "Every week"], ["monthly", "Every month"], ["cron", "Cron expression"],
];
const two = (number) => String(number).padStart(2, "0");
const whole = (text, most, least = 0) => (/^\d{1,2}$/.test(text) && Number(text) <= most && Number(text) >= least ? Number(text) : null);

/** A schedule in words: `{repeat, minute, hour, days, day}`; `cron` for what the words can't say. */
export function wordsOf({ cron, intervalSeconds }) {
  if (cron === undefined || cron === null) return { repeat: "interval", seconds: intervalSeconds };
  const custom = { repeat: "cron", cron };
  const parts = cron.trim().split(/\s+/);
  const minute = whole(parts[0], 59);
  if (parts.length !== 5 || minute === null || parts[3] !== "*") return custom;
  const [, hours, monthDay, , weekDays] = parts;
  if (hours === "*") return monthDay === "*" && weekDays === "*" ? { repeat: "hourly", minute } : custom;
  const hour = whole(hours, 23);
  if (hour === null) return custom;
  if (monthDay !== "*") {
    const day = whole(monthDay, 31, 1);
    return day !== null && weekDays === "*" ? { repeat: "monthly", minute, hour, day } : custom;
  }
  if (weekDays === "*") return { repeat: "daily", minute, hour };
  if (weekDays === "1-5") return { repeat: "weekdays", minute, hour };
  const days = weekDays.split(",").map((day) => whole(day, 6));
  return days.includes(null) ? custom : { repeat: "weekly", minute, hour, days };
}

/** The keys of the trigger that stand for the words. */
export function scheduleOf({ repeat, minute = 0, hour = 9, days = [1], day = 1, seconds = 3600, cron = "0 9 * * *" }) {
  const at = `${minute} ${hour}`;
  switch (repeat) {
    case "interval": return { intervalSeconds: seconds };
    case "hourly": return { cron: `${minute} * * * *` };
    case "daily": return { cron: `${at} * * *` };
    case "weekdays": return { cron: `${at} * * 1-5` };
    case "weekly": return { cron: `${at} * * ${[...days].sort().join(",")}` };
    case "monthly": return { cron: `${at} ${day} * *` };
    default: return { cron };
  }
}

const dateOf = (at, timeZone) => new Intl.DateTimeFormat(document.documentElement.dataset.language || undefined, {
  weekday: "short", year: "numeric", month: "short", day: "numeric", hour: "numeric", minute: "2-digit", timeZone }).format(new Date(at));

/** The next times of a schedule, asked for while it is typed. */
const NextTimes = {
  props: ["trigger", "names"],
  setup(props) {
    const found = shallowRef(null);
    let timer;
    let asked = 0;
    watch(() => JSON.stringify(props.trigger), () => {
      clearTimeout(timer);
      if (!props.trigger.cron?.trim() && !props.trigger.intervalSeconds) return;
      timer = setTimeout(async () => {
        const turn = (asked += 1);
        const answer = await props.names.preview(props.trigger).catch((error) => ({ problem: error.message }));
        if (turn === asked) found.value = answer;
      }, PAUSE);
    }, { immediate: true });
    onBeforeUnmount(() => clearTimeout(timer));
    return () => {
      const { problem, times = [], notes = [], timezone } = found.value ?? {};
      return h("section", { class: "next-times", "aria-label": "Next runs" }, [
        h("h3", "Next runs"),
        problem && h("p", { class: "fault", id: "next-problem", role: "alert" }, problem),
        h("ol", times.map(({ at }) => h("li", { key: at }, `${dateOf(at, timezone)} ${timezone}`))),
        found.value && !problem && times.length === 0 && h("p", { class: "quiet" }, "No upcoming runs"),
        ...notes.map((note) => h("p", { class: "quiet" }, note)),
      ]);
    };
  },
};

const labelled = (label, id, control, isWrong = false) => h("div", { class: ["panel-field", { wrong: isWrong }] }, [h("div", { class: "field-head" }, h("label", { class: "field-label", for: id }, [label, needed()])), control]);

/** The frequency, by words; a cron expression is always there to read and to type. */
const Schedule = {
  props: ["trigger", "form"],
  emits: ["change"],
  setup(props, { emit }) {
    const asCron = ref(wordsOf(props.trigger).repeat === "cron");
    return () => {
      const found = wordsOf(props.trigger);
      const said = asCron.value && props.trigger.cron !== undefined ? { ...found, repeat: "cron" } : found;
      const disabled = props.form.readonly();
      const isWrong = (key) => props.form.issuesAt(`triggerConfig.${key}`).length > 0;
      const say = (changes) => {
        const next = { ...found, ...changes };
        asCron.value = next.repeat === "cron";
        const { cron: _cron, intervalSeconds: _interval, ...rest } = props.trigger;
        emit("change", { ...rest, ...scheduleOf(next.repeat === "cron" ? { ...next, cron: next.cron ?? props.trigger.cron } : next) });
      };
      const hasTime = ["daily", "weekdays", "weekly", "monthly"].includes(said.repeat);
      return h("div", { class: "schedule" }, [
        labelled("Repeats", "schedule-repeat", h("select", { id: "schedule-repeat", disabled, value: said.repeat, onChange: (event) => say({ repeat: event.target.value }) },
          REPEATS.map(([name, title]) => h("option", { value: name }, title)))),
        said.repeat === "interval" && labelled("Every", "schedule-interval", CONTROLS.duration({
          id: "schedule-interval", label: "Every", value: said.seconds, control: {}, form: props.form, emit: (seconds) => say({ seconds: seconds ?? 3600 }) }), isWrong("intervalSeconds")),
        said.repeat === "hourly" && labelled("At minute", "schedule-minute", h("input", {
          type: "number", id: "schedule-minute", min: 0, max: 59, disabled, value: said.minute, onChange: (event) => say({ minute: Math.min(59, Math.max(0, Math.trunc(Number(event.target.value)))) }) })),
        hasTime && labelled("At", "schedule-time", h("input", {
          type: "time", id: "schedule-time", disabled, value: `${two(said.hour)}:${two(said.minute)}`,
          onChange: (event) => {
            const [hour, minute] = event.target.value.split(":").map(Number);
            if (!Number.isNaN(minute)) say({ hour, minute });
          } })),
        said.repeat === "weekly" && h("div", { class: "panel-checks", role: "group", "aria-label": "Days" }, DAYS.map((name, day) => h("label", { class: "panel-check", key: name }, [
          h("input", {
            type: "checkbox", disabled, checked: said.days.includes(day),
            onChange: (event) => {
              const days = DAYS.map((_, one) => one).filter((one) => (one === day ? event.target.checked : said.days.includes(one)));
              if (days.length > 0) say({ days });
              else event.target.checked = true;
            } }), name]))),
        said.repeat === "monthly" && labelled("On day", "schedule-day", h("input", {
          type: "number", id: "schedule-day", min: 1, max: 31, disabled, value: said.day, onChange: (event) => say({ day: Math.min(31, Math.max(1, Math.trunc(Number(event.target.value)))) }) })),
        props.trigger.cron !== undefined && labelled("Cron expression", "schedule-cron", h("input", {
          type: "text", id: "schedule-cron", class: "mono", disabled, maxlength: 256, value: props.trigger.cron, placeholder: "0 9 * * 1-5",
          "aria-invalid": isWrong("cron") || undefined, "aria-describedby": "next-problem",
          onInput: (event) => { asCron.value = true; emit("change", { ...props.trigger, cron: event.target.value }); } }), isWrong("cron")),
      ]);
    };
  },
};

/** The command that calls a webhook as its trigger demands. */
export function callOf(trigger, address) {
  const method = trigger.methods?.[0] ?? "POST";
  const lines = [`curl -X ${method} ${address}`];
  const body = '{"order": 1}';
  const hasBody = method !== "GET";
  if (hasBody) lines.push("-H 'Content-Type: application/json'", `-d '${body}'`);
  const auth = trigger.auth ?? "signature";
  if (auth === "basic") lines.push('-u "any:$WEBHOOK_SECRET"');
  if (auth === "header") lines.push(`-H "${trigger.header ?? "X-Webhook-Secret"}: $WEBHOOK_SECRET"`);
  if (auth !== "signature") return lines.join(" \\\n  ");
  const { scheme = "standard_webhooks", header = "X-Signature", encoding = "hex", timestampHeader, signedContent } = trigger.signature ?? {};
  const sent = hasBody ? body : "";
  if (scheme === "standard_webhooks") {
    return [
      "ID=msg_$(date +%s); TIME=$(date +%s)", `BODY='${sent}'`,
      'KEY=$(printf %s "${WEBHOOK_SECRET#whsec_}" | base64 -d | od -An -v -tx1 | tr -d " \\n")',
      'SIGNATURE=$(printf %s "$ID.$TIME.$BODY" | openssl dgst -sha256 -mac HMAC -macopt hexkey:$KEY -binary | base64)',
      [`curl -X ${method} ${address}`, ...(hasBody ? ["-H 'Content-Type: application/json'", '-d "$BODY"'] : []),
        '-H "webhook-id: $ID"', '-H "webhook-timestamp: $TIME"', '-H "webhook-signature: v1,$SIGNATURE"'].join(" \\\n  "),
    ].join("\n");
  }
  const content = (signedContent ?? (timestampHeader ? "{timestamp}.{body}" : "{body}")).replace("{timestamp}", "$TIME").replace("{body}", "$BODY");
  const coded = encoding === "base64" ? "-binary | base64" : "-r | cut -d ' ' -f 1";
  const together = timestampHeader === header;
  return [
    `TIME=$(date +%s); BODY='${sent}'`,
    `SIGNATURE=$(printf %s "${content}" | openssl dgst -sha256 -hmac "$WEBHOOK_SECRET" ${coded})`,
    [`curl -X ${method} ${address}`, ...(hasBody ? ["-H 'Content-Type: application/json'", '-d "$BODY"'] : []),
      ...(timestampHeader && !together ? [`-H "${timestampHeader}: $TIME"`] : []),
      `-H "${header}: ${together ? "t=$TIME,v1=" : ""}$SIGNATURE"`].join(" \\\n  "),
  ].join("\n");
}

const copied = (text) => async (event) => {
  const button = event.currentTarget;
  await navigator.clipboard.writeText(text);
  button.textContent = "Copied";
};
/** `whole` is what is copied, where less of it is shown. */
const copyable = (label, text, whole = text) => h("div", { class: "copyable" }, [
  h("pre", { tabindex: 0, "aria-label": label }, text),
  h("button", { type: "button", class: "button small", "aria-label": `Copy: ${label}`, onClick: copied(whole) }, "Copy")]);

function webhook(trigger, automation) {
  if (!automation?.webhookPath) return h("p", { class: "quiet" }, "The URL is shown to people who can edit the automation.");
  const address = window.location.origin + automation.webhookPath;
  const auth = trigger.auth ?? "signature";
  const call = callOf(trigger, address);
  const own = auth !== "none" && !trigger.secretName ? automation.webhookSecret : null;
  const told = own ? "The copied call contains the webhook secret, which you can rotate in the settings."
    : trigger.secretName ? `WEBHOOK_SECRET is the value of the secret ${trigger.secretName}.`
      : "WEBHOOK_SECRET is the webhook secret of this automation. You can rotate it in the settings.";
  return h("section", { class: "webhook", "aria-label": "Call" }, [
    h("h3", "URL"), copyable("Webhook URL", address),
    h("h3", "Example call"),
    own ? copyable("Example call", `WEBHOOK_SECRET='${own.slice(0, 8)}…'\n${call}`, `WEBHOOK_SECRET='${own}'\n${call}`) : copyable("Example call", call),
    auth !== "none" && h("p", { class: "quiet" }, told),
    !automation.publishedVersionId && h("p", { class: "quiet" }, "Calls are accepted once the automation is published."),
  ]);
}

/** The keys of a trigger that another kind has, too. */
function asKind(trigger, kind, catalog) {
  const { schema } = catalog.triggers.find((one) => one.kind === kind);
  const shared = Object.entries(trigger).filter(([key]) => key !== "kind" && key in schema.properties
    && ["concurrency", "attributes", "databaseId", "inputSchema", "timezone"].includes(key));
  const begun = kind === "schedule" ? { cron: "0 9 * * 1-5", timezone: Intl.DateTimeFormat().resolvedOptions().timeZone } : {};
  return { kind, ...begun, ...Object.fromEntries(shared) };
}

export const TriggerPanel = {
  name: "TriggerPanel",
  props: {
    trigger: { type: Object, required: true }, automation: { type: Object, default: null }, catalog: { type: Object, required: true },
    names: { type: Object, required: true }, issues: { type: Array, default: () => [] }, outputs: { type: Array, default: () => [] }, readonly: Boolean,
  },
  emits: ["change", "close"],
  setup(props, { emit }) {
    const kept = {};
    provide("target", shallowRef(null));
    provide("scope", scopeOf({ catalog: { ...props.catalog, variables: props.catalog.variables.filter(({ name }) => name === "trigger") }, names: props.names, outputs: () => props.outputs }));
    const form = formOf({
      names: props.names, issues: () => props.issues.map(placed), readonly: () => props.readonly, config: () => props.trigger,
      paths: () => ["record", "before", "changedKeys", "actor", "trigger"], filters: props.catalog.filters,
    });
    provide("form", form);
    const turn = (kind) => {
      kept[props.trigger.kind] = props.trigger;
      emit("change", kept[kind] ?? asKind(props.trigger, kind, props.catalog));
    };
    return () => {
      const { trigger, catalog, automation, names } = props;
      const described = catalog.triggers.find(({ kind }) => kind === trigger.kind);
      const isSchedule = trigger.kind === "schedule";
      return h("div", { class: "node-panel of-trigger", onKeydown: (event) => { if (event.key === "Escape" && !event.defaultPrevented) emit("close"); } }, [
        heading("Trigger", described.description, () => emit("close")),
        problemList(props.issues.map(placed).filter((issue) => !isAtField(issue, described.schema)), described.schema),
        h("div", { class: "panel-form" }, [
          labelled("Starts", "trigger-kind", h("select", { id: "trigger-kind", disabled: props.readonly, value: trigger.kind, onChange: (event) => turn(event.target.value) },
            catalog.triggers.map(({ kind, title }) => h("option", { value: kind, key: kind }, title)))),
          isSchedule && h(Schedule, { trigger, form, onChange: (next) => emit("change", next) }),
          h(Properties, {
            key: trigger.kind, schema: described.schema, root: described.schema, shape: trigger.kind, value: trigger, path: "triggerConfig", fixed: withoutBindings(described.schema),
            hides: ["kind", ...(isSchedule ? ["cron", "intervalSeconds"] : [])], onChange: (next) => emit("change", next),
          }),
          isSchedule && h(NextTimes, { trigger, names }),
          trigger.kind === "webhook" && webhook(trigger, automation),
        ]),
      ]);
    };
  },
};

/** Of a trigger only attributes take bindings: nothing else is known before a run begins. */
const withoutBindings = (schema) => Object.keys(schema.properties).filter((key) => key !== "attributes");

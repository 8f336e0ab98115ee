// The panel of a node: what comes in, its form, and what comes out.

import { celOf, isObject } from "/pages/canvas/bindings.js";
import { CodeField, scopeOf, ValueTree } from "/pages/canvas/expression.js";
import { Field, formOf, placed, Properties, segments } from "/pages/canvas/form.js";
import { TRIGGER } from "/pages/canvas/graph.js";
import { atPlace, isAtField, SETTINGS, toldOf, withKey } from "/pages/canvas/schema.js";
import "/pages/canvas/pickers.js";

const { h, provide, ref, shallowRef } = globalThis.Vue;

/** The parameters of a node: its config, overlaid with its input. */
const parametersOf = (node) => ({ ...node.config, ...node.input });

/** A node with a parameter changed where it is: in its input if that has it, else in its config. */
export function withParameter(node, key, value) {
  const input = node.input ?? {};
  if (!(key in input)) return { ...node, config: withKey(node.config ?? {}, key, value) };
  const isBound = isObject(value) && Object.keys(value).length === 2 && "type" in value && "value" in value;
  if (isBound) return { ...node, input: { ...input, [key]: value } };
  const rest = withKey(input, key, undefined);
  return { ...withKey(node, "input", Object.keys(rest).length > 0 ? rest : undefined), config: withKey(node.config ?? {}, key, value) };
}

/** The paths of values, to type into a filter. */
function pathsOf(outputs, most = 300) {
  const found = [];
  const walk = (value, root, steps) => {
    if (found.length >= most || steps.length > 5) return;
    if (steps.length > 0) found.push(celOf(root, steps));
    if (isObject(value)) Object.entries(value).forEach(([key, one]) => walk(one, root, [...steps, key]));
  };
  for (const { id, source = id === TRIGGER ? "trigger" : "node", output } of outputs) {
    walk(output, source === "node" ? "nodes" : source, source === "node" ? [id] : []);
  }
  return found;
}

/** The sources of an output that no call returned. */
const SOURCES = {
  "Fixed output": "Fixed output of the settings. The node did not run.",
  "Recorded output": "Output of an earlier run. Nothing was called.",
  Simulated: "Simulated. Nothing was sent or written.",
};

const shown = (value) => (value === undefined || value === null ? "" : JSON.stringify(value, null, 2));

const json = (label, value) => h(CodeField, { text: shown(value), label, mode: "ace/mode/json", lines: 3, readonly: true });

export const heading = (title, sentence, close) => h("header", { class: "panel-head" }, [
  h("div", [h("h2", title), sentence && h("p", { class: "quiet" }, sentence)]),
  h("button", { type: "button", class: "button small", "aria-label": "Close", onClick: close }, "Close"),
]);

/** The problems that no field of the form shows. */
export const problemList = (issues, schema) => issues.length > 0 && h("ul", { class: "panel-problems", role: "status" }, issues.map((issue) =>
  h("li", { class: issue.severity ?? "error" }, atPlace(toldOf(issue, schema)))));

export const NodePanel = {
  name: "NodePanel",
  props: {
    node: { type: Object, required: true }, kind: { type: Object, required: true }, catalog: { type: Object, required: true },
    names: { type: Object, required: true }, issues: { type: Array, default: () => [] }, data: { type: Object, default: null },
    outputs: { type: Array, default: () => [] }, ids: { type: Array, default: () => [] }, readonly: Boolean,
  },
  emits: ["change", "close"],
  setup(props, { emit }) {
    const tab = ref("parameters");
    const fault = ref("");
    const typed = ref(null);
    /** Why a node cannot have this id; nothing if it can. */
    const faultOf = (id) => {
      if (id === "") return "Enter an ID.";
      if (id !== props.node.id && props.ids.includes(id)) return `Another node has the ID ${id}.`;
      return /[/:\x00-\x1f\x7f]/.test(id) ? "An ID can't have slashes or colons." : "";
    };
    provide("target", shallowRef(null));
    const keys = (path) => {
      const named = /^nodes(?:\.(\w+)|\["([^"]*)"\])$/.exec(path);
      const entry = named && props.outputs.find(({ id }) => id === (named[1] ?? named[2]));
      const kind = entry && props.catalog.kinds.find((one) => one.kind === entry.kind);
      if (path === "run") return props.catalog.variables.find(({ name }) => name === "run").keys;
      if (path === "nodes") return props.outputs.filter(({ id }) => id !== TRIGGER).map(({ id }) => id);
      return kind ? kind.output.keys.map(({ name }) => name) : [];
    };
    provide("scope", scopeOf({ catalog: props.catalog, names: props.names, outputs: () => props.outputs, keys }));
    provide("form", formOf({
      names: props.names, issues: () => props.issues.map(placed), readonly: () => props.readonly,
      config: () => parametersOf(props.node), secrets: props.kind.secrets,
      paths: () => pathsOf(props.outputs), bodyNodes: () => props.kind.bodyNodes ?? [], filters: props.catalog.filters,
    }));
    const put = (key, value) => emit("change", withKey(props.node, key, value));
    const change = (_config, key, value) => {
      // A choice removes the others at once.
      if (key === null) {
        const keep = (owner) => Object.fromEntries(Object.entries(owner ?? {}).filter(([name]) => name in _config));
        const input = keep(props.node.input);
        emit("change", { ...withKey(props.node, "input", Object.keys(input).length > 0 ? input : undefined), config: keep(props.node.config) });
      } else emit("change", withParameter(props.node, key, value));
    };
    const pin = () => put("mock", props.node.mock?.enabled ? undefined : { enabled: true, output: props.data.output });
    const place = (key) => `${key in (props.node.input ?? {}) ? "input" : "config"}.${key}`;
    const parameters = () => h("div", { class: "panel-form" }, [
      h(Field, { schema: { type: "string", maxLength: 200, title: "Label" }, root: {}, name: "label", owner: "", value: props.node.label, path: "label", isFixed: true, onChange: (value) => put("label", value) }),
      props.kind.kind === "action" && h(Field, { schema: { type: "string", title: "Action" }, root: {}, name: "actionId", owner: "", value: props.node.actionId, path: "actionId", isFixed: true, required: true, onChange: (value) => put("actionId", value) }),
      props.kind.kind === "action"
        ? h(Field, { schema: { type: "object", title: "Input" }, root: {}, name: "input", owner: "", value: parametersOf(props.node), path: "config", unswitched: true, required: true, onChange: (value) => emit("change", withKey({ ...props.node, config: value }, "input", undefined)) })
        : h(Properties, { schema: props.kind.schema, root: props.kind.schema, shape: props.kind.kind, value: parametersOf(props.node), path: "config", pathOf: place, fixed: props.kind.fixed, onChange: change }),
    ]);
    const settings = () => h("div", { class: "panel-form" }, [
      h("div", { class: ["panel-field", { wrong: fault.value }] }, [
        h("div", { class: "field-head" }, h("label", { class: "field-label", for: "node-id" }, "ID")),
        h("input", {
          type: "text", id: "node-id", class: "mono", value: typed.value ?? props.node.id, readonly: props.readonly, maxlength: 64, "aria-describedby": "node-id-hint",
          "aria-invalid": fault.value ? "true" : undefined,
          onInput: (event) => { typed.value = event.target.value; fault.value = ""; },
          onChange: (event) => {
            const id = event.target.value.trim();
            fault.value = faultOf(id);
            if (fault.value === "") emit("change", { ...props.node, id });
          },
        }),
        h("p", { class: "field-hint", id: "node-id-hint" }, fault.value ? h("span", { class: "fault", role: "alert" }, fault.value) : `Other nodes read its output as ${celOf("nodes", [props.node.id])}.`),
      ]),
      h(Properties, { schema: SETTINGS, root: SETTINGS, shape: "node", value: Object.fromEntries(Object.keys(SETTINGS.properties).filter((key) => props.node[key] !== undefined).map((key) => [key, props.node[key]])),
        path: "", isFixed: true, pathOf: (key) => key, onChange: (_value, key, value) => put(key, value) }),
    ]);
    return () => {
      const { data, kind, node, outputs } = props;
      const issues = props.issues.map(placed);
      return h("div", { class: "node-panel", onKeydown: (event) => { if (event.key === "Escape" && !event.defaultPrevented) emit("close"); } }, [
        heading(node.label ?? kind.title, kind.description, () => emit("close")),
        problemList(tab.value === "parameters" ? issues.filter((issue) => !isAtField(issue, kind.schema)) : issues, kind.schema),
        h("div", { class: "panel-columns" }, [
          h("section", { class: "panel-in", "aria-label": "Input" }, [
            h("h3", "Input"), h("p", { class: "quiet" }, "Select a field, then a value."),
            h(ValueTree, { outputs }),
          ]),
          h("section", { class: "panel-middle", "aria-label": "Parameters" }, [
            segments("Part of the node", [["parameters", "Parameters"], ["settings", "Settings"]], tab.value, (name) => { tab.value = name; }),
            tab.value === "parameters" ? parameters() : settings(),
          ]),
          h("section", { class: "panel-out", "aria-label": "Output" }, [
            h("h3", "Output"),
            data?.source && h("p", { class: "quiet" }, SOURCES[data.source]),
            data?.error && h("p", { class: "problem", role: "status" }, typeof data.error === "string" ? data.error : data.error.message ?? shown(data.error)),
            data?.output !== undefined && data?.output !== null ? json("Output of the last run", data.output)
              : !data?.error && h("p", { class: "quiet" }, "No data yet. Run a test."),
            isObject(data?.output) && !props.readonly && h("button", { type: "button", class: "button small", title: "Tests use this output instead of running the node.", onClick: pin },
              node.mock?.enabled ? "Remove fixed output" : "Use as fixed output in tests"),
            data?.input !== undefined && data?.input !== null && h("details", [h("summary", "Resolved input"), json("Input of the last run", data.input)]),
          ]),
        ]),
      ]);
    };
  },
};

// The dialog of a test: what starts it, what it may reach, and how approvals end.

import { moment, plain } from "/pages/words.js";
import { button, Modal } from "./dialogs.js";
import { segments } from "./form.js";
import { nodeOf } from "./graph.js";
import { firstPayload, PayloadForm } from "./payload.js";
import { approvalsOf, CALLS, DECISIONS } from "./testing.js";

const { h, onMounted, ref, shallowRef } = Vue;

const asText = (value) => JSON.stringify(value ?? {}, null, 2);

/** Emits `test` ({payload, mode, decision, stopAt}), `example` (a payload to keep) and `close`. */
export const TestDialog = {
  props: ["document", "names", "keys", "data", "payload", "earlier", "stopAt"],
  emits: ["test", "example", "close"],
  setup(props, { emit }) {
    const examples = props.document.graph.testPayloads ?? [];
    const first = examples[0] ? `example:${examples[0].id}` : props.payload ? "last" : "typed";
    const source = ref(first);
    const runs = ref([]);
    const tab = ref("form");
    const value = shallowRef({});
    const text = ref("{}");
    const mode = ref("simulate");
    const decision = ref("approved");
    const asks = approvalsOf(props.document).length > 0;
    const problem = ref("");
    onMounted(async () => {
      runs.value = await props.earlier().catch(() => []);
    });
    const drawn = ref(0);
    let isTyped = false;
    const show = (payload) => {
      value.value = payload ?? {};
      text.value = asText(value.value);
    };
    const choose = (chosen) => {
      source.value = chosen;
      drawn.value += 1;
      const [kind, id] = chosen.split(/:(.*)/s);
      if (kind === "example") show(examples.find((one) => one.id === id)?.payload);
      else if (kind === "run") show(runs.value.find((one) => one.id === id)?.triggerPayload);
      else if (kind === "last") show(props.payload);
      else if (kind === "typed" && !isTyped) show(firstPayload(props.document.trigger, props.keys));
    };
    /** What is typed is of its own, whatever it began with. */
    const type = (next) => {
      value.value = next;
      source.value = "typed";
      isTyped = true;
    };
    const turn = (next) => {
      if (next === "form" && read() === null) return;
      if (next === "json") text.value = asText(value.value);
      tab.value = next;
    };
    choose(first);
    function read() {
      if (tab.value === "form") return value.value;
      try {
        const payload = JSON.parse(text.value.trim() || "{}");
        if (payload && typeof payload === "object" && !Array.isArray(payload)) {
          value.value = payload;
          return payload;
        }
      } catch { /* said below */ }
      problem.value = "Enter a JSON object.";
      return null;
    }
    const send = (event) => {
      event.preventDefault();
      const payload = read();
      if (payload) emit("test", { payload, mode: mode.value, decision: decision.value, stopAt: props.stopAt });
    };
    const keep = () => {
      const payload = read();
      if (payload) emit("example", payload);
    };
    const stopLabel = props.stopAt && (nodeOf(props.document, props.stopAt)?.label ?? props.stopAt);
    return () => h(Modal, { name: "test", title: stopLabel ? `Test up to ${stopLabel}` : "Test", onClose: () => emit("close") }, () =>
      h("form", { onSubmit: send }, [
        h("label", { class: "field" }, [h("span", null, "Payload"), h("select", { value: source.value, onChange: (event) => choose(event.target.value) }, [
          ...examples.map((one) => h("option", { value: `example:${one.id}` }, `Example: ${one.name}`)),
          props.payload ? h("option", { value: "last" }, "Payload of the last run") : null,
          ...runs.value.map((run) => h("option", { value: `run:${run.id}` }, `Run of ${moment(run.createdAt)}, ${plain(run.status)}`)),
          h("option", { value: "typed" }, "New payload"),
        ])]),
        segments("Payload as", [["form", "Form"], ["json", "JSON"]], tab.value, turn),
        tab.value === "form" ? h("div", { class: "node-panel payload-form" }, h(PayloadForm, { key: drawn.value, trigger: props.document.trigger, names: props.names, value: value.value, onChange: type })) : h("textarea", {
          rows: 9, spellcheck: false, "aria-label": "Payload (JSON)", "aria-invalid": problem.value ? "true" : undefined, value: text.value,
          onInput: (event) => { text.value = event.target.value; source.value = "typed"; isTyped = true; problem.value = ""; },
        }),
        problem.value ? h("p", { class: "fault", role: "alert" }, problem.value) : null,
        h("fieldset", { class: "calls" }, [h("legend", null, "External calls and writes"), ...Object.entries(CALLS)
          .filter(([name]) => name !== "recorded" || props.data.size > 0)
          .map(([name, [label, says]]) => h("label", { class: "choice-of" }, [
            h("input", { type: "radio", name: "calls", value: name, checked: mode.value === name, onChange: () => { mode.value = name; } }),
            h("span", null, [h("b", null, label), h("small", null, says)]),
          ]))]),
        asks ? h("label", { class: "field" }, [h("span", null, "Approvals"), h("select", { value: decision.value, onChange: (event) => { decision.value = event.target.value; } },
          Object.entries(DECISIONS).map(([name, label]) => h("option", { value: name }, label)))]) : null,
        h("div", { class: "buttons" }, [
          button("Save as example", keep, { class: "subtle" }),
          button("Cancel", () => emit("close")),
          h("button", { type: "submit", class: "button primary" }, "Run test"),
        ]),
      ]));
  },
};

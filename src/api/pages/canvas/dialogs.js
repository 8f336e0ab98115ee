// The dialogs of the editor: test, publish, connections of a node, and shortcuts.

import { edgesOf, entriesOf, nodeOf, nodesOf, refusal, TRIGGER, wayOf, waysOf } from "./graph.js";

const { h, onMounted, ref, computed } = Vue;

/** A modal dialog; `close` is emitted when it is left, by whatever way. */
export const Modal = {
  props: ["title", "name"],
  emits: ["close"],
  setup(props, { slots, emit }) {
    const dialog = ref(null);
    onMounted(() => dialog.value.showModal());
    return () => h("dialog", { ref: dialog, class: "modal", id: props.name, "aria-labelledby": `${props.name}-title`, onClose: () => emit("close") }, [
      h("h2", { id: `${props.name}-title` }, props.title), slots.default(),
    ]);
  },
};

export const button = (label, onClick, more = {}) =>
  h("button", { type: "button", onClick, ...more, class: ["button", more.class] }, label);

/** A run from a node, which has no simulation. Emits `run` and `close`. */
export const RunDialog = {
  props: ["name", "isAlone", "hasData"],
  emits: ["run", "close"],
  setup: (props, { emit }) => () => h(Modal, { name: "run", title: props.isAlone ? `Run ${props.name} alone?` : `Run from ${props.name}?`, onClose: () => emit("close") }, () => [
    h("p", null, [props.isAlone ? "Only this node runs. " : "This node and what follows run. ",
      props.hasData ? "Earlier nodes have the outputs of the last run." : "Earlier nodes have no outputs: nothing has run yet."]),
    h("p", null, "Requests, messages and records are real."),
    h("div", { class: "buttons" }, [button("Cancel", () => emit("close")), button("Run", () => emit("run"), { class: "primary", autofocus: true })]),
  ]),
};

/** The differences are a part of a page that the server makes. Emits `publish` (a note) and `close`. */
export const PublishDialog = {
  props: ["errors", "changes", "problem", "isBusy", "version"],
  emits: ["publish", "close", "lead"],
  setup(props, { emit }) {
    const note = ref("");
    const place = ref(null);
    onMounted(() => htmx.ajax("GET", props.changes, { target: place.value, swap: "innerHTML" }));
    return () => h(Modal, { name: "publish", title: "Publish draft", onClose: () => emit("close") }, () =>
      h("form", { onSubmit: (event) => { event.preventDefault(); emit("publish", note.value.trim()); } }, [
        props.errors.length > 0 ? h("div", { class: "notice wrong", role: "alert" }, [
          h("p", null, h("b", null, `Fix ${props.errors.length === 1 ? "this problem" : `these ${props.errors.length} problems`} before publishing.`)),
          h("ul", null, props.errors.slice(0, 8).map((one) => h("li", null, h("button", { type: "button", class: "link", onClick: () => emit("lead", one) }, one.text)))),
        ]) : h("p", { class: "quiet" }, "New runs use this version. Runs in progress keep theirs."),
        h("label", { class: "field" }, [h("span", null, "Release note"), h("input", { type: "text", maxlength: 2000, autofocus: true, autocomplete: "off", placeholder: "What's new (optional)", value: note.value, onInput: (event) => { note.value = event.target.value; } })]),
        h("div", { ref: place, class: "changes-of" }),
        props.problem ? h("p", { class: "fault", role: "alert" }, props.problem) : null,
        h("div", { class: "buttons" }, [
          button("Cancel", () => emit("close")),
          h("button", { type: "submit", class: "button primary", disabled: props.errors.length > 0 || props.isBusy }, "Publish"),
        ]),
      ]));
  },
};

/** The ways out of a node, to be joined and parted without a mouse. Emits `connect`, `remove` and `close`. */
export const ConnectDialog = {
  props: ["document", "kinds", "from"],
  emits: ["connect", "remove", "close"],
  setup(props, { emit }) {
    const isTrigger = props.from === TRIGGER;
    const node = computed(() => nodeOf(props.document, props.from));
    const ways = computed(() => (isTrigger ? [{ key: "always", outcome: "always", label: "Next" }]
      : waysOf(props.document, node.value, props.kinds.get(node.value.kind))));
    const key = ref(ways.value[0]?.key ?? "");
    const way = computed(() => ways.value.find((one) => one.key === key.value));
    const edge = (to) => ({ from: props.from, to, outcome: way.value?.outcome, caseKey: way.value?.caseKey });
    const targets = computed(() => (way.value ? nodesOf(props.document).filter((one) => refusal(props.document, edge(one.id)) === null) : []));
    const to = ref("");
    const target = computed(() => (targets.value.some((one) => one.id === to.value) ? to.value : targets.value[0]?.id ?? ""));
    const name = (id) => (id === TRIGGER ? "Trigger" : nodeOf(props.document, id)?.label ?? id);
    const existing = computed(() => [
      ...entriesOf(props.document).filter((id) => isTrigger || id === props.from)
        .map((id) => ({ id: `${TRIGGER}/${id}`, from: TRIGGER, to: id, isFixed: !(props.document.graph.entryNodeIds ?? []).includes(id) })),
      ...edgesOf(props.document).filter((one) => one.from === props.from || one.to === props.from),
    ]);
    const label = (one) => {
      const own = one.from === props.from ? ways.value.find((each) => each.key === wayOf(one))?.label : null;
      return `${name(one.from)} → ${name(one.to)}${own && own !== "Next" ? ` (${own})` : ""}`;
    };
    return () => h(Modal, { name: "connect", title: `Connections of ${name(props.from)}`, onClose: () => emit("close") }, () =>
      h("form", { onSubmit: (event) => { event.preventDefault(); if (target.value) emit("connect", edge(target.value)); } }, [
        existing.value.length === 0 ? h("p", { class: "quiet" }, "No connections") : h("ul", { class: "connections" }, existing.value.map((one) =>
          h("li", { key: one.id }, [h("span", null, label(one)), one.isFixed ? h("small", { class: "quiet" }, "starts the run")
            : button("Remove", () => emit("remove", one.id), { class: "small", "aria-label": `Remove ${label(one)}` })]))),
        targets.value.length === 0 ? h("p", { class: "quiet" }, "No other node can follow this one.") : h("div", { class: "join" }, [
          ways.value.length > 1 ? h("label", { class: "field" }, [h("span", null, "Outcome"), h("select", { value: key.value, onChange: (event) => { key.value = event.target.value; } },
            ways.value.map((one) => h("option", { value: one.key }, one.label)))]) : null,
          h("label", { class: "field" }, [h("span", null, "Connect to"), h("select", { value: target.value, autofocus: true, onChange: (event) => { to.value = event.target.value; } },
            targets.value.map((one) => h("option", { value: one.id }, one.label ?? one.id)))]),
          h("button", { type: "submit", class: "button primary" }, "Connect"),
        ]),
        h("div", { class: "buttons" }, [button("Done", () => emit("close"))]),
      ]));
  },
};

const SHORTCUTS = [
  ["N or /", "Add a node"], ["S", "Add a note"], ["Enter", "Open the focused node, or edit the note"], ["Arrow keys", "Move between nodes"], ["Shift + arrow keys", "Move the selected nodes and notes"], ["Ctrl + arrow keys", "Resize the focused note"], ["Menu key, Shift + F10", "Open the menu of the focused node or note"],
  ["C", "Connections of the focused node"], ["A or +", "Add a node after the focused node"], ["D", "Disable or enable"], ["Delete", "Delete"], ["Ctrl + Z, Ctrl + Shift + Z", "Undo, redo"],
  ["Ctrl + C, Ctrl + X, Ctrl + V", "Copy, cut, paste"], ["Ctrl + D", "Duplicate"], ["Ctrl + A", "Select all"], ["Shift + drag", "Select several"],
  ["Ctrl + scroll", "Zoom"], ["F", "Fit to screen"], ["L", "Tidy up"], ["Ctrl + F", "Find in the JSON"], ["Ctrl + Enter", "Add a node after the open one"], ["Escape", "Close a panel, or clear the selection"],
];

export const HelpDialog = {
  emits: ["close"],
  setup: (_, { emit }) => () => h(Modal, { name: "canvas-shortcuts", title: "Keyboard shortcuts", onClose: () => emit("close") }, () => [
    h("dl", { class: "shortcuts" }, SHORTCUTS.map(([keys, says]) => h("div", { key: keys }, [h("dt", null, h("kbd", null, keys)), h("dd", null, says)]))),
    h("div", { class: "buttons" }, [button("Close", () => emit("close"))]),
  ]),
};

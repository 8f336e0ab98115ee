// A field for an expression: completion, the value on the data of a run, and errors at their place.

import { celOf, variablesOf } from "/pages/canvas/bindings.js";
import { TRIGGER } from "/pages/canvas/graph.js";

const { h, inject, onBeforeUnmount, onMounted, ref, shallowRef, watch } = globalThis.Vue;

const PAUSE = 300;
const AGAIN = [1000, 2000, 4000];
const LONGEST = 400;
const AFTER_PATH = /((?:[A-Za-z_]\w*)(?:\.[A-Za-z_]\w*|\[\d+\]|\["[^"]*"\])*)\.(\w*)$/;
const WORD = /(?:^|[^\w.\]"])(\w*)$/;

let counted = 0;
export const freshId = (prefix) => `${prefix}-${(counted += 1)}`;

/** The completions of the text before the cursor, each with its `value` and `meta`. */
export function completions(before, scope) {
  const path = AFTER_PATH.exec(before);
  if (path) {
    const value = readPath(path[1], scope);
    const keys = value !== null && typeof value === "object" && !Array.isArray(value) ? Object.keys(value) : [];
    const stated = scope.keys?.(path[1]) ?? [];
    return [...new Set([...keys, ...stated])].map((key) => ({ value: key, meta: "data" }));
  }
  if (!WORD.test(before)) return [];
  return [
    ...scope.catalog.variables.map(({ name, description }) => ({ value: name, meta: "variable", docText: description })),
    ...scope.catalog.functions.map(
      ({ name, signature, description }) => ({ value: name, snippet: `${name}(\${1})`, meta: signature, docText: description })),
  ];
}

function readPath(text, scope) {
  let value = scope.variables();
  for (const [, name, index, quoted] of text.matchAll(/([A-Za-z_]\w*)|\[(\d+)\]|\["([^"]*)"\]/g)) {
    const key = name ?? index ?? quoted;
    if (value === null || typeof value !== "object" || !Object.hasOwn(value, key)) return undefined;
    value = value[key];
  }
  return value;
}

/** The end of the line before the cursor that belongs to an expression; null outside of one. */
export function expressionBefore(line, language) {
  if (language !== "text") return line;
  const open = line.lastIndexOf("{{");
  return open >= 0 && !line.slice(open).includes("}}") ? line.slice(open + 2) : null;
}

const placeAt = (text, offset) => {
  const before = text.slice(0, offset).split("\n");
  return { row: before.length - 1, column: before.at(-1).length };
};

/** The place in a text that a refusal names, as row and column from 0; null where that is not certain. */
export function faultPlace(message, text, language = "value") {
  const numbered = /character (\d+)/.exec(message);
  if (numbered) return placeAt(text, Number(numbered[1]) - 1);
  const lined = /line (\d+), column (\d+)/.exec(message);
  if (!lined) return null;
  const [row, column] = [Number(lined[1]) - 1, Math.max(0, Number(lined[2]) - 1)];
  if (language !== "text") return { row, column };
  // The refusal counts from the start of its place, and does not say which of them it is.
  const places = [...text.matchAll(/\{\{\s*/g)];
  return places.length === 1 && row === 0 ? placeAt(text, places[0].index + places[0][0].length + column) : null;
}

/** A value in a few words. */
export function brief(value) {
  const text = typeof value === "string" ? value : JSON.stringify(value);
  return text.length <= LONGEST ? text : `${text.slice(0, LONGEST)}…`;
}

export function makeEditor(element, { text, mode, label, describedBy, readonly, lines, ...options }) {
  const { ace } = globalThis;
  ace.config.set("useStrictCSP", true);
  const editor = ace.edit(element, {
    value: text, showGutter: mode !== "ace/mode/text", showPrintMargin: false, wrap: true,
    highlightActiveLine: false, highlightSelectedWord: false, minLines: lines, maxLines: 18, readOnly: readonly, fontSize: 13,
    enableBasicAutocompletion: true, enableLiveAutocompletion: true, scrollPastEnd: 0, ...options,
  });
  // A worker would be made from a text, which the policy of pages forbids.
  editor.session.setUseWorker(false);
  editor.session.setMode(mode);
  // The text stands apart from the border; padding would take the room of its last line.
  editor.renderer.setScrollMargin(5, 5);
  // Tab leads on, as in any form.
  editor.commands.bindKey("Tab", null);
  editor.commands.bindKey("Shift-Tab", null);
  const input = editor.textInput.getElement();
  input.setAttribute("aria-label", label);
  if (describedBy) input.setAttribute("aria-describedby", describedBy);
  return editor;
}

/** An editor of a text. Emits what is typed; `insert` of its target writes at the cursor. */
export const CodeField = {
  props: ["text", "label", "mode", "lines", "readonly", "describedBy", "fault", "complete", "around"],
  emits: ["input"],
  setup(props, { emit }) {
    const place = ref(null);
    let editor;
    let marker;
    const target = inject("target", shallowRef(null));
    const own = {
      insert(text) {
        const { row, column } = editor.getCursorPosition();
        editor.insert(props.around?.(editor.session.getLine(row).slice(0, column), text) ?? text);
      },
    };
    onMounted(() => {
      editor = makeEditor(place.value, { ...props, mode: props.mode ?? "ace/mode/text", lines: props.lines ?? 1 });
      editor.completers = [{
        identifierRegexps: [/\w/],
        getCompletions: (_, session, at, prefix, give) =>
          give(null, props.complete?.(session.getLine(at.row).slice(0, at.column)) ?? []),
      }];
      editor.on("change", () => emit("input", editor.getValue()));
      editor.on("focus", () => { target.value = own; });
    });
    onBeforeUnmount(() => {
      if (target.value === own) target.value = null;
      editor?.destroy();
    });
    watch(() => props.text, (text) => {
      if (editor && editor.getValue() !== text) editor.session.setValue(text);
    });
    watch(() => props.readonly, (readonly) => editor?.setReadOnly(Boolean(readonly)));
    watch(() => props.fault, (fault) => {
      if (!editor) return;
      if (marker !== undefined) editor.session.removeMarker(marker);
      const Range = globalThis.ace.require("ace/range").Range;
      marker = fault ? editor.session.addMarker(
        new Range(fault.row, fault.column, fault.row, fault.column + 1), "fault-place", "text") : undefined;
    });
    return () => h("div", { class: "code-field", ref: place, "data-label": props.label });
  },
};

/** A text as an expression or a template, with its value for the data that is known. */
export const ExpressionField = {
  props: ["binding", "text", "language", "label", "readonly", "describedBy", "lines", "known"],
  emits: ["input"],
  setup(props, { emit }) {
    const scope = inject("scope");
    const found = shallowRef(null);
    let asked = 0;
    let timer;
    async function evaluate(attempt = 0) {
      const turn = (asked += 1);
      const answer = await scope.evaluate(props.binding).catch(() => null);
      if (turn !== asked) return;
      found.value = answer;
      // A busy platform refuses evaluations for a moment.
      if (answer === null && attempt < AGAIN.length) timer = setTimeout(() => evaluate(attempt + 1), AGAIN[attempt]);
    }
    const later = () => {
      clearTimeout(timer);
      timer = setTimeout(() => evaluate(), PAUSE);
    };
    watch(() => [JSON.stringify(props.binding), scope.outputs()], later, { immediate: true });
    onBeforeUnmount(() => clearTimeout(timer));
    const complete = (line) => {
      const before = expressionBefore(line, props.language);
      return before === null ? [] : completions(before, scope);
    };
    // In a text a reference is a place of its own, unless the cursor is in one.
    const around = (line, reference) =>
      expressionBefore(line, props.language) === null ? `{{ ${reference} }}` : reference;
    return () => {
      const answer = found.value;
      const isShown = answer && (scope.hasData() || answer.invalid) && props.text.trim() !== "";
      // Data may be missing in a test that is there in a run: only what can't be read is wrong.
      const error = isShown && answer.invalid ? answer.error : undefined;
      const absent = isShown && !answer.invalid && answer.error !== undefined;
      return h("div", { class: ["expression-field", { wrong: error }] }, [
        h(CodeField, {
          text: props.text, label: props.label, readonly: props.readonly, lines: props.lines, complete, around,
          describedBy: props.describedBy, fault: error ? faultPlace(error, props.text, props.language) : null,
          onInput: (text) => emit("input", text),
        }),
        // What the draft is told of the same expression stands below the field.
        isShown && !props.known?.includes(error) && h("output", { class: ["value", { wrong: error, absent }] }, error ? error
          : absent ? `No value for the last run: ${answer.error}` : brief(answer.value ?? null)),
      ]);
    };
  },
};

/** The variables of expressions in a panel, and their evaluation. */
export function scopeOf({ catalog, names, outputs, keys }) {
  const variables = () => variablesOf(outputs());
  return {
    catalog, outputs, variables, keys,
    hasData: () => outputs().some(({ output }) => output !== undefined && output !== null),
    evaluate: async (value) => names.evaluate({ value, ...variables() }),
  };
}

/** The tree of values that a node can read. A click puts a reference into the focused field. */
export const ValueTree = {
  props: ["outputs"],
  setup(props) {
    const target = inject("target");
    const open = ref(new Set());
    const toggle = (key) => {
      const next = new Set(open.value);
      if (!next.delete(key)) next.add(key);
      open.value = next;
    };
    const insert = (source, id, steps) => {
      const root = source === "node" ? "nodes" : source;
      target.value?.insert(celOf(root, source === "node" ? [id, ...steps] : steps), true);
    };
    const row = (entry, value, steps, name) => {
      const { source = entry.id === TRIGGER ? "trigger" : "node", id } = entry;
      const key = JSON.stringify([source, id, ...steps]);
      // Before anything has run, the keys are known and their values are not.
      const isUnknown = (value === undefined || value === null) && steps.length === 0;
      const absent = isUnknown ? (entry.keys ?? []).map((one) => [one, undefined]) : [];
      const inside = value !== null && typeof value === "object" ? Object.entries(value).slice(0, 200) : absent;
      const isOpen = open.value.has(key) !== (steps.length === 0);
      return h("li", { key }, [
        h("div", { class: "value-row" }, [
          inside.length > 0
            ? h("button", { type: "button", class: "fold", "aria-expanded": isOpen, "aria-label": `${isOpen ? "Collapse" : "Expand"} ${name}`, onClick: () => toggle(key) }, isOpen ? "▾" : "▸")
            : h("span", { class: "fold" }),
          h("button", {
            type: "button", class: "reference", title: "Insert into the selected field",
            // The field keeps the focus, so that the reference goes to where the cursor is.
            onMousedown: (event) => event.preventDefault(), onClick: () => insert(source, id, steps),
          }, [h("b", name), inside.length === 0 && (isUnknown ? h("span", { class: "sample" }, "No data yet") : value !== undefined && h("span", { class: "sample" }, brief(value).slice(0, 80)))]),
        ]),
        isOpen && inside.length > 0 && h("ul", inside.map(([inner, one]) =>
          row(entry, one, [...steps, Array.isArray(value) ? Number(inner) : inner], inner))),
      ]);
    };
    return () => h("ul", { class: "value-tree" }, props.outputs.map((entry) =>
      row(entry, entry.output, [], entry.label ?? entry.id)));
  },
};

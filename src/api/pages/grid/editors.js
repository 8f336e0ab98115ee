// Editors of cells, by the kind of the field. Each emits `commit` (a text or a value, and where to go) and `cancel`.

import { isSeveral, LONG, OPTIONS, readDay, sortedOptions, textOf } from "./values.js";

const { h, nextTick, onMounted, ref, shallowRef } = Vue;

/** Where the selection goes after a key that ends an edit; null for other keys. */
function wayOf(event) {
  if (event.key === "Enter" && !event.altKey && !event.ctrlKey && !event.metaKey) return event.shiftKey ? [-1, 0] : [1, 0];
  if (event.key === "Tab") return event.shiftKey ? [0, -1] : [0, 1];
  return null;
}

const MODES = { number: "decimal", currency: "decimal", percent: "decimal", rating: "numeric", email: "email", url: "url", phone: "tel" };

const LineEditor = {
  props: ["field", "value", "seed", "names", "refused"],
  emits: ["commit", "cancel"],
  setup(props, { emit }) {
    const input = ref(null);
    const native = ref(null);
    const first = () => props.seed ?? props.refused?.text
      ?? textOf(props.field, props.value, props.names, { plain: !["date", "datetime"].includes(props.field.kind) });
    let isOver = false;
    const end = (name, ...more) => {
      if (isOver) return;
      isOver = true;
      emit(name, ...more);
    };
    onMounted(() => {
      input.value.value = first();
      input.value.focus({ preventScroll: true });
      input.value.setSelectionRange(input.value.value.length, input.value.value.length);
    });
    const keydown = (event) => {
      event.stopPropagation();
      if (event.isComposing) return;
      const way = wayOf(event);
      if (event.key === "Escape") {
        event.preventDefault();
        end("cancel");
      } else if (way) {
        event.preventDefault();
        end("commit", { text: input.value.value }, way);
      }
    };
    const pick = () => {
      native.value.value = readDay(input.value.value) ?? "";
      native.value.showPicker?.();
    };
    const picked = () => {
      input.value.value = native.value.value ? textOf({ kind: "date" }, native.value.value, props.names) : "";
      input.value.focus();
    };
    return () => h("div", { class: "editor-line" }, [
      h("input", {
        ref: input, type: "text", class: "editor-text", "aria-label": props.field.label, inputmode: MODES[props.field.kind], autocomplete: "off", spellcheck: props.field.kind === "text",
        onKeydown: keydown, onBlur: (event) => { if (event.relatedTarget !== native.value && !event.relatedTarget?.closest?.(".editor-line")) end("commit", { text: input.value.value }, null); },
      }),
      props.field.kind === "date" ? [
        h("button", { type: "button", class: "pick-day", tabindex: -1, "aria-label": "Choose a day", onClick: pick }, "▾"),
        h("input", { ref: native, type: "date", class: "native-day", tabindex: -1, "aria-hidden": "true", onChange: picked }),
      ] : null,
    ]);
  },
};

/** Long texts have a window of their own. */
const LongEditor = {
  props: ["field", "value", "seed", "names", "refused"],
  emits: ["commit", "cancel"],
  setup(props, { emit }) {
    const dialog = ref(null);
    const area = ref(null);
    const shown = () => (props.field.kind === "json" && props.value !== null ? JSON.stringify(props.value, null, 2) : props.value ?? "");
    let isSaved = false;
    onMounted(() => {
      area.value.value = props.seed ?? props.refused?.text ?? shown();
      dialog.value.showModal();
      area.value.focus();
    });
    const save = () => {
      isSaved = true;
      const text = area.value.value;
      dialog.value.close();
      emit("commit", { text }, [0, 0]);
    };
    return () => h("dialog", {
      ref: dialog, class: "long-text", "aria-label": props.field.label,
      onKeydown: (event) => { event.stopPropagation(); if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) save(); },
      onClose: () => { if (!isSaved) emit("cancel"); },
    }, [
      h("h2", null, props.field.label),
      props.refused ? h("p", { class: "problem", role: "alert" }, props.refused.message) : null,
      h("textarea", { ref: area, rows: 14, "aria-label": props.field.label, class: props.field.kind === "json" ? "mono" : "" }),
      h("div", { class: "buttons" }, [
        h("span", { class: "quiet grow" }, ["Save with ", h("kbd", null, "Ctrl Enter")]),
        h("button", { type: "button", class: "button", onClick: () => dialog.value.close() }, "Cancel"),
        h("button", { type: "button", class: "button primary", onClick: save }, "Save"),
      ]),
    ]);
  },
};

const MOST_SHOWN = 60;

/** Options, people and related records: a list that is searched by typing. */
const Picker = {
  props: ["field", "value", "seed", "names", "search"],
  emits: ["commit", "cancel"],
  setup(props, { emit }) {
    const several = isSeveral(props.field);
    const chosen = shallowRef(props.value === null ? [] : [props.value].flat());
    const text = ref(props.seed ?? "");
    const entries = shallowRef([]);
    const at = ref(0);
    const state = ref("");
    const input = ref(null);
    const isUp = ref(false);
    const root = ref(null);
    const id = `picker-${props.field.key}`;
    let turn = 0;
    let isOver = false;
    const end = (name, ...more) => {
      if (isOver) return;
      isOver = true;
      emit(name, ...more);
    };
    const valueOf = (ids) => (several || props.field.kind === "relation" ? ids : ids[0] ?? null);
    const commit = (way) => end("commit", { value: valueOf(chosen.value) }, way);

    async function find() {
      const mine = (turn += 1);
      const wanted = text.value.trim().toLowerCase();
      if (props.search) {
        state.value = "Searching…";
        const listed = await props.search(text.value.trim()).catch((error) => { state.value = error.message; return null; });
        if (mine !== turn || listed === null) return;
        entries.value = listed;
      } else {
        const all = OPTIONS.has(props.field.kind)
          ? sortedOptions(props.field).map((one) => ({ id: one.key, label: one.name, color: one.color }))
          : [...props.names.people.values()];
        entries.value = all.filter((one) => one.label.toLowerCase().includes(wanted) || one.hint?.toLowerCase().includes(wanted)).slice(0, MOST_SHOWN);
      }
      state.value = entries.value.length > 0 ? "" : "No results";
      at.value = 0;
    }
    function toggle(entry) {
      if (!entry) return;
      if (props.field.kind === "relation") props.names.titles.set(entry.id, entry.label);
      if (!several) {
        chosen.value = chosen.value.includes(entry.id) && chosen.value.length === 1 ? [] : [entry.id];
        commit([0, 0]);
        return;
      }
      chosen.value = chosen.value.includes(entry.id) ? chosen.value.filter((one) => one !== entry.id) : [...chosen.value, entry.id];
      text.value = "";
      find();
    }
    onMounted(() => {
      const box = root.value.getBoundingClientRect();
      isUp.value = box.bottom + 280 > window.innerHeight && box.top > 300;
      input.value.focus({ preventScroll: true });
      find();
    });
    const keydown = (event) => {
      event.stopPropagation();
      const move = { ArrowDown: 1, ArrowUp: -1 }[event.key];
      if (move) {
        at.value = Math.min(Math.max(at.value + move, 0), entries.value.length - 1);
        nextTick(() => root.value?.querySelector("[aria-selected=true]")?.scrollIntoView({ block: "nearest" }));
      } else if (event.key === "Enter") toggle(entries.value[at.value]);
      else if (event.key === "Tab") {
        if (text.value.trim() && entries.value.length > 0 && !several) toggle(entries.value[at.value]);
        commit(wayOf(event));
      } else if (event.key === "Escape") {
        if (several) commit([0, 0]);
        else end("cancel");
      } else if (event.key === "Backspace" && text.value === "" && chosen.value.length > 0) {
        chosen.value = chosen.value.slice(0, -1);
        return;
      } else return;
      event.preventDefault();
    };
    const label = (one) => (OPTIONS.has(props.field.kind) ? props.field.options.find((option) => option.key === one)?.name ?? one
      : props.field.kind === "relation" ? props.names.title(one) || "Untitled" : props.names.person(one));
    return () => h("div", {
      ref: root, class: ["picker", { up: isUp.value }],
      onFocusout: (event) => { if (!root.value.contains(event.relatedTarget)) commit(null); },
      onMousedown: (event) => { event.stopPropagation(); if (event.target !== input.value) event.preventDefault(); },
    }, [
      h("div", { class: "picker-box" }, [
        chosen.value.length > 0 ? h("span", { class: "parts" }, chosen.value.map((one) => h("button", {
          type: "button", class: "option", tabindex: -1, key: one, "aria-label": `Remove ${label(one)}`, "data-color": props.field.options?.find((option) => option.key === one)?.color,
          onClick: () => { chosen.value = chosen.value.filter((other) => other !== one); if (!several) commit([0, 0]); },
        }, [label(one), " ×"]))) : null,
        h("input", {
          ref: input, type: "text", role: "combobox", value: text.value, "aria-label": props.field.label, "aria-expanded": "true", "aria-controls": id, "aria-autocomplete": "list", autocomplete: "off", placeholder: "Search",
          "aria-activedescendant": entries.value.length > 0 ? `${id}-${at.value}` : undefined,
          onInput: (event) => { text.value = event.target.value; find(); }, onKeydown: keydown,
        }),
      ]),
      h("div", { class: "picker-list" }, [
        h("ul", { id, role: "listbox", "aria-label": props.field.label, "aria-multiselectable": several ? "true" : undefined }, entries.value.map((one, place) => h("li", {
          id: `${id}-${place}`, key: one.id, role: "option", "aria-selected": place === at.value ? "true" : "false", class: { chosen: chosen.value.includes(one.id) },
          onMousemove: () => { at.value = place; }, onClick: () => toggle(one),
        }, [h("span", { class: one.color ? "option" : "", "data-color": one.color }, one.label || "Untitled"), one.hint ? h("small", { class: "quiet" }, one.hint) : null, chosen.value.includes(one.id) ? h("span", { class: "picked", "aria-label": "chosen" }, "✓") : null]))),
        state.value ? h("p", { class: "quiet", role: "status" }, state.value) : null,
      ]),
    ]);
  },
};

/** The editor of a field; null where values are not typed. */
export function editorOf(field) {
  if (LONG.has(field.kind)) return LongEditor;
  if (OPTIONS.has(field.kind) || field.kind === "person" || field.kind === "relation") return Picker;
  if (["checkbox", "file"].includes(field.kind)) return null;
  return LineEditor;
}


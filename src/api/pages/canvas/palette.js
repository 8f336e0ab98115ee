// The palette: every kind of node, to be searched, pressed, or dragged onto the canvas.

import { sign } from "/pages/words.js";
import { icon } from "./canvas.js";

const { computed, h, nextTick, ref, watch } = Vue;
const FAR = 6;

const matches = (kind, text) => {
  const words = text.toLowerCase().split(/\s+/).filter(Boolean);
  const all = `${kind.title} ${kind.kind} ${kind.group} ${kind.description}`.toLowerCase();
  return words.every((word) => all.includes(word));
};

/** Kinds that fit a text: those whose title does come first. */
export function found(kinds, text) {
  const fit = kinds.filter((kind) => matches(kind, text));
  const start = text.trim().toLowerCase();
  if (!start) return fit;
  const rank = (kind) => (kind.title.toLowerCase().startsWith(start) ? 0 : kind.title.toLowerCase().includes(start) ? 1 : 2);
  return [...fit].sort((a, b) => rank(a) - rank(b));
}

/** `place` says in words where the node is added. Emits `pick` (a kind), `drop` (a kind, x, y) and `close`. */
export const Palette = {
  props: ["kinds", "place", "isOpen"],
  emits: ["pick", "drop", "close"],
  setup(props, { emit, expose }) {
    const text = ref("");
    const chosen = ref(0);
    const field = ref(null);
    const list = ref(null);
    const dragged = ref(null);
    const shown = computed(() => found(props.kinds, text.value));
    const groups = computed(() => {
      const byName = new Map();
      for (const kind of shown.value) {
        const name = text.value.trim() ? "Results" : kind.group;
        byName.set(name, [...(byName.get(name) ?? []), kind]);
      }
      return [...byName];
    });
    watch(text, () => { chosen.value = 0; });
    const start = () => {
      text.value = "";
      chosen.value = 0;
      nextTick(() => field.value?.focus());
    };
    expose({ start });

    function pick(kind) {
      text.value = "";
      emit("pick", kind.kind);
    }

    function key(event) {
      const by = { ArrowDown: 1, ArrowUp: -1 }[event.key];
      if (by) {
        event.preventDefault();
        const count = shown.value.length;
        chosen.value = count === 0 ? 0 : (chosen.value + by + count) % count;
        nextTick(() => list.value?.querySelector("[aria-selected=true]")?.scrollIntoView({ block: "nearest" }));
      } else if (event.key === "Enter") {
        event.preventDefault();
        const kind = shown.value[chosen.value];
        if (kind) pick(kind);
      } else if (event.key === "Escape") {
        event.stopPropagation();
        emit("close");
      }
    }

    /** A press that moves is a drag; one that does not is a click. */
    function grab(event, kind) {
      if (event.button !== 0) return;
      const from = { x: event.clientX, y: event.clientY };
      const move = ({ clientX: x, clientY: y }) => {
        if (dragged.value || Math.hypot(x - from.x, y - from.y) > FAR) dragged.value = { kind, x, y };
      };
      const end = ({ type, clientX: x, clientY: y }) => {
        window.removeEventListener("pointermove", move);
        window.removeEventListener("pointerup", end);
        window.removeEventListener("pointercancel", end);
        if (dragged.value && type === "pointerup") emit("drop", kind.kind, x, y);
        // The click that follows is of the drag.
        setTimeout(() => { dragged.value = null; });
      };
      window.addEventListener("pointermove", move);
      window.addEventListener("pointerup", end);
      window.addEventListener("pointercancel", end);
    }

    const option = (kind) => {
      const index = shown.value.indexOf(kind);
      return h("li", {
        key: kind.kind, id: `kind-${kind.kind}`, role: "option", "aria-selected": String(index === chosen.value), "data-kind": kind.kind,
        onPointerdown: (event) => grab(event, kind),
        onClick: () => { if (!dragged.value) pick(kind); },
      }, [
        h("span", { class: "sign" }, icon(`kind-${sign(kind.kind)}`)),
        h("span", { class: "name" }, kind.title),
        h("small", null, kind.description),
      ]);
    };

    return () => h("aside", { class: ["palette-of-nodes", { open: props.isOpen }], "aria-label": "Add a node" }, [
      h("div", { class: "palette-head" }, [
        h("h2", null, "Add node"),
        h("button", { type: "button", class: "button subtle small", "aria-label": "Close palette", onClick: () => emit("close") }, "✕"),
      ]),
      h("input", {
        ref: field, type: "search", class: "find-node", placeholder: "Search nodes", "aria-label": "Search nodes", autocomplete: "off",
        role: "combobox", "aria-expanded": "true", "aria-controls": "kinds", "aria-autocomplete": "list",
        "aria-activedescendant": shown.value[chosen.value] ? `kind-${shown.value[chosen.value].kind}` : undefined,
        value: text.value, onInput: (event) => { text.value = event.target.value; }, onKeydown: key,
      }),
      props.place ? h("p", { class: "quiet place-of" }, props.place) : null,
      h("div", { ref: list, id: "kinds", class: "kinds", role: "listbox", "aria-label": "Nodes", tabindex: -1 }, groups.value.map(([name, kinds]) =>
        h("ul", { key: name, role: "group", "aria-label": name }, [
          h("li", { class: "group-name", role: "presentation" }, name),
          ...kinds.map(option),
        ]))),
      shown.value.length === 0 ? h("p", { class: "quiet none-found" }, "No nodes match your search.") : null,
      dragged.value ? h("div", { class: "ghost", style: { transform: `translate(${dragged.value.x + 8}px, ${dragged.value.y + 8}px)` } }, dragged.value.kind.title) : null,
    ]);
  },
};

// Colours of records: the first rule whose filter a record passes gives it its colour.

import { button, removeButton, select } from "./controls.js";
import { FilterBuilder, newCondition } from "./filters.js";
import { facts } from "./store.js";

const { h } = globalThis.Vue;

const COLORS = ["red", "orange", "yellow", "green", "teal", "blue", "purple", "pink", "brown", "gray"];

/** The rules of a view; emits `change` with all of them. */
export const Colors = {
  props: ["rules"],
  emits: ["change"],
  setup: (props, { emit }) => () => {
    const { rules } = props;
    return h("div", { class: "color-rules" }, [
      rules.length === 0 ? h("p", { class: "quiet" }, "Records are not colored.") : null,
      ...rules.map((rule, index) => h("div", { class: "color-rule", key: index }, [
        h("div", { class: "panel-row" }, [
          h("span", { class: "option", "data-color": rule.color }, `Rule ${index + 1}`),
          select(`Color of rule ${index + 1}`, rule.color, COLORS.map((key) => ({ key, label: key.charAt(0).toUpperCase() + key.slice(1) })), (color) => emit("change", rules.with(index, { ...rule, color }))),
          removeButton(`rule ${index + 1}`, () => emit("change", rules.filter((_, at) => at !== index))),
        ]),
        h(FilterBuilder, { filter: rule.filter, onChange: (filter) => emit("change", rules.with(index, { ...rule, filter: filter ?? { and: [] } })) }),
      ])),
      button("Add rule", () => emit("change", [...rules, { color: COLORS[rules.length % COLORS.length], filter: { and: [newCondition(facts.fields)] } }]), { class: "small" }),
    ]);
  },
};

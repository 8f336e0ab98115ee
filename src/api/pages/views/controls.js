// Controls of the bar: menus, dialogs, choices of several, and pickers of people and records.

import { call, facts } from "./store.js";
import { loadPeople, people } from "./values.js";

const { computed, h, nextTick, onBeforeUnmount, onMounted, onUpdated, ref, shallowRef } = globalThis.Vue;

const MARGIN = 12;


export const icon = (name) =>
  h("svg", { class: "icon", "aria-hidden": "true" }, h("use", { href: `#icon-${name}` }));

export const button = (label, onClick, more = {}) =>
  h("button", { type: "button", onClick, ...more, class: ["button", more.class] }, label);

export const removeButton = (name, onClick) =>
  h("button", { type: "button", class: "button subtle small", "aria-label": `Remove ${name}`, onClick }, "×");

/** A list to choose from; a value that it has not stays, and is shown as it is. */
export function select(label, value, options, onChange, more = {}) {
  const isKnown = options.some((one) => one.key === value);
  return h("select", { "aria-label": label, value, onChange: (event) => { if (event.target.value !== value) onChange(event.target.value); }, ...more }, [
    isKnown ? null : h("option", { value, key: "unknown" }, value || "Choose…"),
    ...options.map((one) => h("option", { value: one.key, key: one.key, selected: one.key === value }, one.label)),
  ]);
}

export const fieldChoices = (fields) => fields.map(({ key, label }) => ({ key, label }));

/** A modal dialog; emits `close` by whatever way it is left. */
export const Modal = {
  props: ["title", "name"],
  emits: ["close"],
  setup(props, { slots, emit }) {
    const dialog = ref(null);
    onMounted(() => dialog.value.showModal());
    return () => h("dialog", { ref: dialog, class: "modal view-dialog", id: props.name, "aria-labelledby": `${props.name}-title`, onClose: () => emit("close") }, [
      h("h2", { id: `${props.name}-title` }, props.title), slots.default(),
    ]);
  },
};

/** A panel below a button, which closes by Escape, its button, or a click elsewhere. */
export const Panel = {
  props: ["label", "name", "title", "isActive", "align", "small"],
  setup(props, { slots, expose }) {
    const isOpen = ref(false);
    const root = ref(null);
    const close = (toButton = false) => {
      isOpen.value = false;
      if (toButton) root.value?.querySelector("button")?.focus();
    };
    const elsewhere = (event) => {
      if (isOpen.value && !root.value.contains(event.target) && !event.target.closest?.("dialog")) close();
    };
    /** The panel is within the window, however wide it becomes. */
    const fit = () => {
      const body = root.value?.querySelector(":scope > .view-panel-body");
      if (!body) return;
      body.style.translate = "";
      const { left, right } = body.getBoundingClientRect();
      const over = right - (document.documentElement.clientWidth - MARGIN);
      if (over > 0) body.style.translate = `${-Math.min(over, Math.max(0, left - MARGIN))}px`;
    };
    const sizes = new ResizeObserver(fit);
    onUpdated(() => {
      sizes.disconnect();
      const body = root.value?.querySelector(":scope > .view-panel-body");
      if (body) sizes.observe(body);
    });
    onBeforeUnmount(() => sizes.disconnect());
    onMounted(() => document.addEventListener("pointerdown", elsewhere, true));
    onBeforeUnmount(() => document.removeEventListener("pointerdown", elsewhere, true));
    expose({ close });
    return () => h("div", {
      ref: root, class: ["view-panel", props.align],
      onKeydown: (event) => {
        if (event.key !== "Escape" || !isOpen.value) return;
        event.stopPropagation();
        close(true);
      },
    }, [
      h("button", {
        type: "button", class: ["button", props.small ? "small subtle" : "", { active: props.isActive }], "aria-expanded": isOpen.value, "aria-controls": props.name, "aria-label": props.title, "data-panel": props.name,
        onClick: async () => {
          isOpen.value = !isOpen.value;
          await nextTick();
          if (isOpen.value) root.value.querySelector(".view-panel-body :is(button, select, input)")?.focus();
        },
      }, props.label),
      isOpen.value ? h("div", { class: "view-panel-body", id: props.name, role: "group", "aria-label": props.title ?? props.label }, slots.default({ close })) : null,
    ]);
  },
};

/** The chosen values, each with a button to remove it, and a list to add from. */
function chosenList({ label, value, names, rest, onChange }) {
  return h("div", { class: "chosen-values", role: "group", "aria-label": label }, [
    ...value.map((one) => h("span", { class: "chosen-value", key: one }, [names(one), removeButton(names(one), () => onChange(value.filter((other) => other !== one)))])),
    rest,
  ]);
}

/** Several of these options. */
export const choices = (label, value, options, onChange) => chosenList({
  label, value, onChange, names: (key) => options.find((one) => one.key === key)?.label ?? key,
  rest: h("select", {
    "aria-label": `Add to ${label}`, value: "",
    onChange: (event) => {
      if (event.target.value) onChange([...value, event.target.value]);
      event.target.value = "";
    },
  }, [h("option", { value: "" }, "Add…"), ...options.filter((one) => !value.includes(one.key)).map((one) => h("option", { value: one.key, key: one.key }, one.label))]),
});

/** People of the workspace, one or several. */
export const PeoplePicker = {
  props: ["label", "value", "isMany"],
  emits: ["change"],
  setup(props, { emit }) {
    onMounted(loadPeople);
    const options = computed(() => (people.list ?? []).map((one) => ({ key: one.id, label: one.label })));
    return () => (props.isMany ? choices(props.label, props.value ?? [], options.value, (value) => emit("change", value))
      : select(props.label, props.value ?? "", options.value, (value) => emit("change", value)));
  },
};

const titles = new Map();

/** Records of another database, found by their titles. */
export const RecordPicker = {
  props: ["label", "value", "databaseId", "isMany"],
  emits: ["change"],
  setup(props, { emit }) {
    const hits = shallowRef([]);
    const version = ref(0);
    let pause = 0;
    const path = () => `/v1/databases/${props.databaseId}/records/query`;
    const value = () => (props.isMany ? props.value ?? [] : props.value ? [props.value] : []);
    const set = (next) => emit("change", props.isMany ? next : next.at(-1) ?? "");
    onMounted(async () => {
      for (const id of value().filter((one) => !titles.has(one)).slice(0, 20)) {
        await call("GET", `/v1/records/${id}`).then((one) => titles.set(id, one.title || "Untitled"), () => null);
      }
      version.value += 1;
    });
    const search = (text) => {
      clearTimeout(pause);
      pause = setTimeout(async () => {
        const page = await call("POST", path(), { ...(text ? { search: text } : {}), fields: ["title"], limit: 8 }).catch(() => ({ records: [] }));
        page.records.forEach((one) => titles.set(one.id, one.title || "Untitled"));
        hits.value = page.records.filter((one) => !value().includes(one.id));
      }, 150);
    };
    return () => h("div", { class: "record-picker", "data-version": version.value }, chosenList({
      label: props.label, value: value(), names: (id) => titles.get(id) ?? id, onChange: set,
      rest: h("span", { class: "record-search" }, [
        h("input", { type: "search", "aria-label": `Search for ${props.label}`, placeholder: "Search by title", autocomplete: "off", onInput: (event) => search(event.target.value), onFocus: (event) => search(event.target.value) }),
        hits.value.length > 0 ? h("ul", { class: "record-hits" }, hits.value.map((one) => h("li", { key: one.id }, h("button", {
          type: "button",
          onClick: () => {
            hits.value = [];
            set(props.isMany ? [...value(), one.id] : [one.id]);
          },
        }, titles.get(one.id))))) : null,
      ]),
    }));
  },
};

/** The address of the page of this database with a view. */
export const addressOf = (viewId) =>
  `/workspaces/${facts.database.workspaceId}/databases/${facts.database.id}${viewId ? `?view=${viewId}` : ""}`;

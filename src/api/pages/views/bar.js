// The bar above the records: views as tabs, and what the chosen one filters, sorts, groups and shows.

import { divides } from "/pages/grid/groups.js";
import { Colors } from "./colors.js";
import { addressOf, button, fieldChoices, icon, Modal, Panel, removeButton, select } from "./controls.js";
import { countOf, faultsAt, FilterBuilder, isComplete } from "./filters.js";
import { aggregateControls, aggregateName, isDate, ViewDialog } from "./settings.js";
import { arrange, call, facts, fieldsByKey, history, unanswered, withParts } from "./store.js";

const { computed, h, reactive, ref, watch } = globalThis.Vue;

const GRANULARITIES = ["day", "week", "month", "quarter", "year"];
const asList = (value) => (Array.isArray(value) ? value : value ? [value] : []);
const isSame = (one, other) => JSON.stringify(one ?? null) === JSON.stringify(other ?? null);

/** The part of a manifest that panels change, and its difference from the stored one. */
class Draft {
  constructor(store) {
    this.store = store;
    this.state = reactive({ parts: {}, problem: "", faults: new Map(), isBusy: false, count: null, isSaved: false });
    watch(() => store.view?.updatedAt, () => this.fit());
  }

  get stored() {
    return this.store.view?.manifest ?? {};
  }

  of(key) {
    return key in this.state.parts ? this.state.parts[key] : this.stored[key];
  }

  set(key, value) {
    const parts = { ...this.state.parts, [key]: value ?? null };
    if (isSame(value, this.stored[key])) delete parts[key];
    Object.assign(this.state, { parts, problem: "", faults: new Map(), isSaved: false });
    if (key === "filter") this.preview();
  }

  /** Drop what the view has by now. */
  fit() {
    const { parts } = this.state;
    this.state.parts = Object.fromEntries(Object.entries(parts).filter(([key, value]) => !isSame(value, this.stored[key])));
  }

  reset() {
    Object.assign(this.state, { parts: {}, problem: "", faults: new Map(), count: null });
  }

  /** Drop what was sent. What was changed meanwhile is not saved yet, and stays. */
  keepSince(sent) {
    const { parts } = this.state;
    const later = Object.entries(parts).filter(([key, value]) => !(key in sent && isSame(value, sent[key])));
    if (later.length === 0) this.reset();
    else this.state.parts = Object.fromEntries(later);
  }

  get isChanged() {
    return Object.keys(this.state.parts).length > 0;
  }

  get isComplete() {
    const filters = [this.of("filter"), ...(this.of("colors") ?? []).map((rule) => rule.filter)];
    return filters.every((filter) => !filter || isComplete(filter));
  }

  /** The parts to write: a filter without conditions is none. */
  get written() {
    const { filter, ...parts } = this.state.parts;
    return filter === undefined ? parts : { ...parts, filter: filter && countOf(filter) > 0 ? filter : null };
  }

  /** Counts the records that a filter lets through, before it is saved. */
  preview() {
    clearTimeout(this.pause);
    this.state.count = null;
    const filter = this.of("filter");
    if (!filter || countOf(filter) === 0 || !isComplete(filter)) return;
    this.pause = setTimeout(async () => {
      try {
        const page = await call("POST", `/v1/databases/${this.store.database.id}/records/query`, { filter, limit: 1, fields: ["title"], aggregates: [{ op: "count", as: "count" }] });
        if (isSame(filter, this.of("filter"))) this.state.count = page.aggregates.count;
      } catch (error) {
        if (isSame(filter, this.of("filter"))) Object.assign(this.state, { faults: faultsAt(error, "filter"), problem: error.message });
      }
    }, 300);
  }

  async save() {
    const { state } = this;
    const sent = state.parts;
    state.isBusy = true;
    try {
      await arrange(this.store, "View change", { manifest: this.written });
      this.keepSince(sent);
      state.isSaved = true;
    } catch (error) {
      Object.assign(state, { problem: error.message, faults: faultsAt(error, "manifest.filter") });
    } finally {
      state.isBusy = false;
    }
  }
}

function sortsPanel(draft) {
  const sorts = draft.of("sorts") ?? [];
  const set = (next) => draft.set("sorts", next.length > 0 ? next : null);
  const fields = facts.fields.filter((field) => field.isSorted);
  const move = (index, by) => {
    const next = [...sorts];
    const [one] = next.splice(index, 1);
    next.splice(index + by, 0, one);
    set(next);
  };
  return [
    h("ol", { class: "sort-list" }, sorts.map((sort, index) => h("li", { key: index }, [
      select(`Field of sort ${index + 1}`, sort.field, fieldChoices(fields), (field) => set(sorts.with(index, { ...sort, field }))),
      select(`Direction of sort ${index + 1}`, sort.direction ?? "asc", [{ key: "asc", label: "Ascending" }, { key: "desc", label: "Descending" }], (direction) => set(sorts.with(index, { ...sort, direction }))),
      h("button", { type: "button", class: "button subtle small", disabled: index === 0, "aria-label": `Move sort ${index + 1} up`, onClick: () => move(index, -1) }, "↑"),
      removeButton(`sort ${index + 1}`, () => set(sorts.filter((_, at) => at !== index))),
    ]))),
    sorts.length === 0 ? h("p", { class: "quiet" }, "Not sorted") : null,
    button("Add sort", () => {
      const field = fields.find((one) => !sorts.some((sort) => sort.field === one.key)) ?? fields[0];
      set([...sorts, { field: field.key, direction: "asc" }]);
    }, { class: "small", disabled: sorts.length >= facts.limits.sorts }),
  ];
}

function groupsPanel(draft) {
  const levels = asList(draft.of("groupBy"));
  const aggregates = draft.of("aggregates") ?? [];
  const set = (next) => draft.set("groupBy", next.length > 0 ? next : null);
  const sum = (next) => draft.set("aggregates", next.length > 0 ? next : null);
  const fields = facts.fields.filter((field) => field.isGrouped);
  const level = (index) => {
    const group = levels[index];
    const others = fields.filter((field) => !levels.some((one, at) => at !== index && one.field === field.key));
    const choose = (key) => set(key ? levels.toSpliced(index, 1, { field: key }) : levels.slice(0, index));
    return h("div", { class: "panel-row", key: index }, [
      select(index === 0 ? "Group by" : "Then by", group?.field ?? "", [{ key: "", label: index === 0 ? "No groups" : "No second level" }, ...fieldChoices(others)], choose),
      isDate(fieldsByKey.get(group?.field)) ? select("Period", group.granularity ?? "day", GRANULARITIES.map((key) => ({ key, label: key })), (granularity) => set(levels.with(index, { ...group, granularity }))) : null,
      group ? select("Direction", group.direction ?? "asc", [{ key: "asc", label: "Ascending" }, { key: "desc", label: "Descending" }], (direction) => set(levels.with(index, { ...group, direction }))) : null,
    ]);
  };
  return [
    level(0),
    levels.length > 0 ? level(1) : null,
    levels.some((one) => fieldsByKey.has(one.field) && !divides(fieldsByKey.get(one.field))) ? h("p", { class: "quiet" }, "Fields with several values are counted. They don’t divide rows.") : null,
    h("h3", null, "Summaries"),
    ...aggregates.map((one, index) => h("div", { class: "panel-row", key: `sum ${index}` }, [
      ...aggregateControls(`Summary ${index + 1}`, one, (next) => sum(aggregates.with(index, next))),
      removeButton(`summary ${index + 1}, ${aggregateName(one.op)}`, () => sum(aggregates.filter((_, at) => at !== index))),
    ])),
    button("Add summary", () => {
      const field = facts.fields.find((one) => one.form === "number" && !aggregates.some((other) => other.field === one.key));
      sum([...aggregates, field ? { op: "sum", field: field.key } : { op: "count" }]);
    }, { class: "small" }),
  ];
}

function fieldsPanel(draft) {
  const stored = draft.of("fields") ?? [];
  const byKey = new Map(stored.map((one) => [one.key, one]));
  const keys = [...stored.map((one) => one.key).filter((key) => fieldsByKey.has(key)), ...facts.fields.map((one) => one.key).filter((key) => !byKey.has(key))];
  const isShown = (key) => (byKey.has(key) ? byKey.get(key).visible !== false : stored.length === 0);
  const write = (order, visible) => draft.set("fields", order.map((key) => ({ ...byKey.get(key), key, visible: visible(key) })));
  const move = (index, by) => {
    const next = [...keys];
    const [key] = next.splice(index, 1);
    next.splice(index + by, 0, key);
    write(next, isShown);
  };
  return h("ul", { class: "shown-fields" }, keys.map((key, index) => {
    const { label } = fieldsByKey.get(key);
    return h("li", { key }, [
      h("label", null, [
        h("input", { type: "checkbox", checked: isShown(key), disabled: key === "title", onChange: (event) => write(keys, (one) => (one === key ? event.target.checked : isShown(one))) }),
        ` ${label}`,
      ]),
      h("button", { type: "button", class: "button subtle small", disabled: index === 0, "aria-label": `Move ${label} up`, onClick: () => move(index, -1) }, "↑"),
      h("button", { type: "button", class: "button subtle small", disabled: index === keys.length - 1, "aria-label": `Move ${label} down`, onClick: () => move(index, 1) }, "↓"),
    ]);
  }));
}

/** The end of a panel: saving into the view, or into a new one. */
function panelFoot(draft, { mayEdit, onNew }) {
  const { state } = draft;
  return h("div", { class: "panel-foot" }, [
    state.problem ? h("p", { class: "fault", role: "alert" }, state.problem) : null,
    h("div", { class: "buttons" }, [
      mayEdit ? button("Save", () => draft.save(), { class: "primary small", disabled: !draft.isChanged || !draft.isComplete || state.isBusy, "data-save": "" }) : null,
      button("Save as new view", onNew, { class: mayEdit ? "small subtle" : "small primary", disabled: !draft.isComplete }),
      draft.isChanged ? button("Reset", () => draft.reset(), { class: "small subtle" }) : null,
    ]),
  ]);
}

const number = new Intl.NumberFormat(document.documentElement.dataset.language || undefined);

function filterPanel(draft) {
  const { count, faults } = draft.state;
  return [
    h(FilterBuilder, { filter: draft.of("filter") ?? undefined, faults, onChange: (filter) => draft.set("filter", filter) }),
    h("p", { class: "quiet match-count", role: "status" }, count === null ? "" : `${number.format(count)} ${count === 1 ? "record matches" : "records match"}`),
  ];
}

/** The panels that a kind of view has. */
function panels(draft, store, given) {
  const kind = store.view?.kind ?? "table";
  const filter = draft.of("filter");
  const conditions = filter ? countOf(filter) : 0;
  const sorts = draft.of("sorts")?.length ?? 0;
  const groups = asList(draft.of("groupBy")).length;
  const counted = (label, count) => (count > 0 ? `${label} (${count})` : label);
  const foot = () => panelFoot(draft, given);
  const panel = (name, label, isActive, body) => h(Panel, { name, label, isActive, key: name }, { default: () => h("div", { class: "panel-of-view" }, [body(), foot()]) });
  return [
    panel("filter-panel", counted("Filter", conditions), conditions > 0, () => filterPanel(draft)),
    kind === "chart" ? null : panel("sort-panel", counted("Sort", sorts), sorts > 0, () => sortsPanel(draft)),
    ["table", "list"].includes(kind) ? panel("group-panel", counted("Group", groups), groups > 0, () => groupsPanel(draft)) : null,
    kind === "chart" ? null : panel("fields-panel", "Fields", false, () => fieldsPanel(draft)),
    ["chart", "form"].includes(kind) ? null : panel("color-panel", counted("Colors", draft.of("colors")?.length ?? 0), draft.of("colors")?.length > 0, () => h(Colors, { rules: draft.of("colors") ?? [], onChange: (rules) => draft.set("colors", rules.length > 0 ? rules : null) })),
  ];
}

/** Acts on the chosen view; `mayEdit` says whether it can be changed at all. */
function viewMenu(store, { mayEdit, dialog, run, close }) {
  const { view } = store;
  const path = `/v1/databases/${view.databaseId}/views/${view.id}`;
  const index = facts.views.findIndex((one) => one.id === view.id);
  const item = (label, onClick, more = {}) => h("button", { type: "button", class: "menu-item", onClick: () => { close(); onClick(); }, ...more }, label);
  const moveTo = (by) => run(async () => {
    const order = [...facts.views];
    const [one] = order.splice(index, 1);
    order.splice(index + by, 0, one);
    const before = order[index + by - 1]?.order;
    const after = order[index + by + 1]?.order;
    const place = before === undefined ? after - 1 : after === undefined ? before + 1 : (before + after) / 2;
    await call("PATCH", path, { order: place });
    globalThis.location.reload();
  });
  const change = (label, body) => run(() => arrange(store, label, body));
  return [
    mayEdit ? item("Settings…", () => { dialog.value = "settings"; }) : null,
    mayEdit ? item("Rename…", () => { dialog.value = "settings"; }) : null,
    item("Duplicate", () => run(async () => {
      const copy = await call("POST", `${path}/duplicate`, {});
      globalThis.location.assign(addressOf(copy.id));
    })),
    mayEdit ? item(view.scope === "shared" ? "Make private" : "Share with everyone", () => change(view.scope === "shared" ? "Make private" : "Share", { scope: view.scope === "shared" ? "personal" : "shared" })) : null,
    facts.canLock ? item(view.locked ? "Unlock" : "Lock", () => change(view.locked ? "Unlock" : "Lock", { locked: !view.locked })) : null,
    mayEdit && index > 0 ? item("Move left", () => moveTo(-1)) : null,
    mayEdit && index < facts.views.length - 1 ? item("Move right", () => moveTo(1)) : null,
    mayEdit ? item("Delete…", () => { dialog.value = "delete"; }, { class: "menu-item danger" }) : null,
  ];
}

function deleteDialog(store, { dialog, run }) {
  const { view } = store;
  return h(Modal, { title: `Delete “${view.label}”?`, name: "delete-view", onClose: () => { dialog.value = null; } }, () => [
    h("p", null, view.scope === "shared" ? "The view is deleted for everyone. Its records stay." : "The view is deleted. Its records stay."),
    h("div", { class: "buttons" }, [
      button("Cancel", () => { dialog.value = null; }, { autofocus: true }),
      button("Delete", () => run(async () => {
        await call("DELETE", `/v1/databases/${view.databaseId}/views/${view.id}`);
        globalThis.location.assign(addressOf());
      }), { class: "danger primary" }),
    ]),
  ]);
}

const isChangedByOthers = ({ view }) => Boolean(view && unanswered.size === 0 && facts.view?.id === view.id && facts.view.updatedAt > view.updatedAt);

/** Show the view as others have left it; another kind needs another page. */
function showTheirs(store) {
  if (facts.view.kind !== store.view.kind) globalThis.location.reload();
  store.view = facts.view;
  store.reload();
}

function tab(one, store) {
  const isHere = one.id === store.view?.id;
  const label = isHere ? store.view.label : one.label;
  const isPrivate = (isHere ? store.view : one).scope === "personal";
  return h("a", { href: addressOf(one.id), key: one.id, "aria-current": isHere ? "true" : undefined, "data-kind": one.kind }, [
    label, isPrivate ? h("span", { class: "view-mark", title: "Only you see this view" }, " ◦ private") : null,
    (isHere ? store.view : one).locked ? h("span", { class: "view-mark", title: "Locked: only managers can change it" }, " ◦ locked") : null,
  ]);
}

/** Undo and redo, and what became of the last one. */
const Acts = {
  setup() {
    const told = ref({ text: "", isFault: false });
    history.say = (text, isFault = false) => { told.value = { text, isFault }; };
    const tool = (label, key, isOn, act) => button(label, act, { class: "small", disabled: !isOn, "aria-keyshortcuts": key });
    return () => h("div", { class: "acts" }, [
      tool("Undo", "Control+Z", history.state.canUndo, () => history.undo()),
      tool("Redo", "Control+Y", history.state.canRedo, () => history.redo()),
      h("span", { class: told.value.isFault ? "fault" : "quiet", role: "status" }, told.value.text),
    ]);
  },
};

/** The tab of the shown view is in sight, however many there are before it. */
const showTab = ({ el }) => el.querySelector("[aria-current]")?.scrollIntoView({ block: "nearest", inline: "nearest" });

/**
 * The bar of a database page. `store` has the database, the view and `patchView`; who may not
 * change views sees the tabs alone.
 */
export const ViewBar = {
  props: ["store"],
  setup(props) {
    const draft = new Draft(props.store);
    const dialog = ref(null);
    const problem = ref("");
    /** On a narrow screen the tools are behind a button. */
    const isOpen = ref(false);
    /** The table has its own tools, and among them those of the acts. */
    const hasTable = document.getElementById("table-tools") !== null;
    const hasTools = facts.canEditViews || hasTable;
    watch(isOpen, (value) => document.getElementById("toolbar").classList.toggle("open", value));
    const mayEdit = computed(() => Boolean(facts.canEditViews && props.store.view && (facts.canLock || !props.store.view.locked)));
    async function run(act) {
      problem.value = "";
      try {
        await act();
      } catch (error) {
        dialog.value = null;
        problem.value = error.message;
      }
    }
    const change = async (body, done, fail) => {
      try {
        await arrange(props.store, "View settings", body);
        if (body.kind !== facts.view.kind) globalThis.location.reload();
        done();
      } catch (error) {
        fail(error);
      }
    };
    return () => {
      const { store } = props;
      const given = { mayEdit: mayEdit.value, onNew: () => { dialog.value = "new"; } };
      return h("div", { class: "view-bar" }, [
        h("div", { class: "view-tabs" }, [
          h("nav", { class: "tabs views", "aria-label": "Views", onVnodeMounted: showTab }, [
            h("a", { href: addressOf(), "aria-current": store.view ? undefined : "true" }, "Whole table"),
            ...facts.views.map((one) => tab(one, store)),
          ]),
          facts.canEditViews && store.view ? h(Panel, { name: "view-menu", label: "⋯", title: `View ${store.view.label}`, small: true }, { default: ({ close }) => viewMenu(store, { mayEdit: mayEdit.value, dialog, run, close }) }) : null,
          facts.canEditViews ? button([icon("plus"), "New view"], () => { dialog.value = "new"; }, { class: "small subtle", "data-new-view": "" }) : null,
          hasTools ? button("Tools", () => { isOpen.value = !isOpen.value; }, { class: "small toolbar-menu", "aria-expanded": isOpen.value, "aria-controls": "toolbar" }) : null,
        ]),
        facts.canEditViews || facts.canWrite ? h("div", { class: "view-panels" }, [
          ...(facts.canEditViews ? panels(draft, store, given) : []),
          draft.isChanged ? h("span", { class: "quiet unsaved", role: "status" }, "Unsaved changes") : null,
          draft.state.isSaved && !draft.isChanged ? h("span", { class: "quiet", role: "status" }, "Saved") : null,
          hasTable ? null : h(Acts),
        ]) : null,
        isChangedByOthers(store) ? h("p", { class: "notice", role: "status" }, ["Someone else changed this view. ", button("Show changes", () => showTheirs(store), { class: "small" })]) : null,
        problem.value ? h("p", { class: "alert", role: "alert" }, problem.value) : null,
        dialog.value === "new" ? h(ViewDialog, { from: withParts(draft.stored, draft.written), kind: draft.isChanged ? store.view?.kind : "table", onClose: () => { dialog.value = null; } }) : null,
        dialog.value === "settings" ? h(ViewDialog, { view: store.view, onChange: change, onClose: () => { dialog.value = null; } }) : null,
        dialog.value === "delete" ? deleteDialog(store, { dialog, run }) : null,
      ]);
    };
  },
};

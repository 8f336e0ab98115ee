// The table of a database: it loads fields, view and records, and wires the parts together.

import { namesOf } from "/pages/canvas/names.js";
import { act, overview, Refused, uploaded } from "/pages/client.js";
import { FindBar } from "/pages/find-bar.js";
import { answered, facts, fieldsByKey, history, readFacts } from "/pages/views/store.js";
import { loadPeople } from "/pages/views/values.js";
import { countOf, Table } from "./commands.js";
import { FieldPanel } from "./fields.js";
import { divides, Level } from "./groups.js";
import { foldAll } from "./heads.js";
import { isElsewhere } from "./history.js";
import { followRecords } from "./live.js";
import { BesidePanel, BulkDialog } from "./panels.js";
import { PasteDialog } from "./paste.js";
import { Records } from "./records.js";
import { Sheet } from "./sheet.js";
import { isNumeric, LANGUAGE, Names, valueOf, ZONE } from "./values.js";

const { createApp, h, onBeforeUnmount, onMounted, shallowReactive, watch } = Vue;

const root = document.getElementById("table");
const { workspace, databaseId, viewId, me } = root.dataset;
const query = JSON.parse(root.dataset.query);
const isAllowed = (name) => root.dataset[name] === "true";
const at = `/v1/workspaces/${workspace}`;

const call = (method, path, body, headers) => (method === "GET" ? overview(path) : act(path, body, method, headers));

const upload = (file) => uploaded(workspace, file);

/** The shared state of the parts of the page: also the bar and the kinds of views. */
function storeOf(database, source) {
  const view = database.views.find((one) => one.id === viewId) ?? null;
  const store = shallowReactive({
    database,
    fields: database.fields,
    view,
    canWrite: isAllowed("canWrite"),
    canComment: isAllowed("canComment"),
    canDesign: isAllowed("canDesign"),
    canArrange: isAllowed("canArrange"),
    isUnsaved: false,
    call,
    upload,
    get records() { return source.rows.value; },
    reload: (changed) => source.reload(changed),
    takeField(field) {
      const isKnown = store.fields.some((one) => one.id === field.id);
      store.fields = isKnown ? store.fields.map((one) => (one.id === field.id ? field : one)) : [...store.fields, field];
      return field;
    },
    async readFields() {
      store.fields = (await overview(`${at}/databases/${databaseId}`)).fields;
    },
    /** Change keys of the manifest of the view; without one, or in a locked one, the page alone has them. */
    patchView(change) {
      const patching = store.patching.then(() => store.writeView(change));
      store.patching = patching.catch(() => {});
      return patching;
    },
    patching: Promise.resolve(),
    async writeView(change) {
      const shown = store.view;
      if (!shown || !store.canArrange || shown.locked) {
        store.local = { ...store.local, ...change };
        store.isUnsaved = store.canArrange;
        return;
      }
      for (let round = 0; ; round += 1) {
        const { manifest, updatedAt } = store.view;
        try {
          const body = { manifest: { ...manifest, ...change } };
          store.view = await answered(call("PATCH", `/v1/databases/${databaseId}/views/${shown.id}`, body, { "If-Match": updatedAt }));
          document.dispatchEvent(new CustomEvent("viewkept", { detail: store.view }));
          return;
        } catch (error) {
          if (error.status !== 409 || round > 4) throw error;
          const fresh = await overview(`${at}/databases/${databaseId}`);
          store.view = fresh.views.find((one) => one.id === shown.id) ?? store.view;
        }
      }
    },
    local: {},
    async saveAsView(label) {
      const manifest = { ...store.view?.manifest, ...store.local };
      const made = await call("POST", `/v1/databases/${databaseId}/views`, { label, kind: "table", manifest });
      location.assign(`?view=${made.id}`);
    },
  });
  return store;
}

/** Names of files that records hold, asked for when the records are read. */
function followFiles(source, store, names) {
  const asked = new Set();
  watch(source.rows, async (rows) => {
    const fields = store.fields.filter((one) => one.kind === "file");
    if (fields.length === 0) return;
    const ids = [];
    for (const record of rows) for (const field of fields) for (const id of valueOf(record, field) ?? []) if (!asked.has(id) && !names.files.has(id)) ids.push(id);
    for (const id of ids) asked.add(id);
    for (let start = 0; start < ids.length; start += 100) {
      const files = await overview(`/workspaces/${workspace}/databases/${databaseId}/files?ids=${ids.slice(start, start + 100).join(",")}`).catch(() => []);
      for (const file of files) names.files.set(file.fileId, file);
    }
  }, { immediate: true });
}

const FOLDED = `groups-folded:${viewId}`;

/** The groups that this reader has folded in the view, as the browser keeps them. */
function foldedGroups() {
  try {
    return new Set(JSON.parse(localStorage.getItem(FOLDED) ?? "[]"));
  } catch {
    return new Set();
  }
}

function keepFolded(folded) {
  try {
    localStorage.setItem(FOLDED, JSON.stringify([...folded]));
  } catch {
    // A browser without storage folds for this page alone.
  }
}

/** The summaries of a view, and its groups where these divide the rows. */
function groupingOf(view) {
  const manifest = view?.manifest ?? {};
  const aggregates = (manifest.aggregates ?? []).filter((one) => !one.field || fieldsByKey.has(one.field));
  const groupBy = [manifest.groupBy ?? []].flat();
  const fields = groupBy.map((one) => fieldsByKey.get(one.field));
  if (groupBy.length === 0 || !fields.every((field) => field && divides(field))) return { aggregates };
  if (fields.some((field) => field.form === "user")) loadPeople();
  return { aggregates, groupBy, levels: groupBy.map((one, depth) => new Level(fields[depth], one, { valueOf, zone: ZONE })), folded: foldedGroups() };
}

const button = (label, onClick, more = {}) => h("button", { type: "button", class: "button small", onClick, ...more }, label);

/** The tools of the table, in the one row above it. */
const Bar = {
  props: ["table"],
  setup: ({ table }) => {
    const saveView = (event) => {
      event.preventDefault();
      table.store.saveAsView(event.target.elements.label.value.trim()).catch((error) => table.fail(error));
    };
    return () => {
      const { store, history } = table;
      return h(Vue.Teleport, { to: "#table-tools" }, h("div", { class: "table-bar" }, [
        store.isUnsaved ? h("form", { class: "save-view", onSubmit: saveView }, [h("input", { type: "text", name: "label", required: true, maxlength: 200, placeholder: "Name of the view", "aria-label": "Name of the view" }), h("button", { type: "submit", class: "button small" }, "Save as view")]) : null,
        h(HiddenFields, { table }),
        table.records.rows.value && table.records.division.isDivided ? h(FoldAll, { table }) : null,
        button("Find", () => { table.page.find = true; }, { "aria-keyshortcuts": "Control+F" }),
        store.canWrite || store.canArrange ? [
          button("Undo", () => history.undo(), { disabled: !history.state.canUndo, "aria-keyshortcuts": "Control+Z" }),
          button("Redo", () => history.redo(), { disabled: !history.state.canRedo, "aria-keyshortcuts": "Control+Y" }),
        ] : null,
        store.canWrite ? button("Add record", () => table.addLast()) : null,
      ]));
    };
  },
};

/** Acts on the selected records; it floats above the rows, which stay where they are. */
const PickedBar = {
  props: ["table"],
  setup: ({ table }) => () => (table.checked.size === 0 ? null : h("div", { class: "picked-bar", role: "group", "aria-label": "Selected records" }, [
    h("b", null, `${table.checked.size.toLocaleString()}${table.records.isWhole || table.records.state.total === null ? "" : ` of ${table.records.state.total.toLocaleString()}`} selected`),
    button("Edit…", () => table.bulkEdit()), button("Duplicate", () => table.duplicate()), button("Archive", () => table.drop("archive")),
    button("Delete", () => table.drop("delete"), { class: "button small danger" }), button("Clear", () => { table.checked.clear(); table.focus(); }, { class: "button small subtle" }),
  ])),
};

const FoldAll = {
  props: ["table"],
  setup: ({ table }) => () => {
    const { rows, division } = table.records;
    const isFolded = rows.value && division.root.groups.every((one) => division.folded.has(one.path));
    return button(isFolded ? "Expand groups" : "Collapse groups", () => foldAll(table, !isFolded), { class: "button small fold-all" });
  },
};

const HiddenFields = {
  props: ["table"],
  setup: ({ table }) => () => {
    const hidden = table.store.fields.filter((one) => one.kind !== "button" && !table.layout.order.includes(one.key));
    return hidden.length === 0 ? null : h("details", { class: "hidden-fields" }, [
      h("summary", { class: "button small" }, `${hidden.length} hidden`),
      h("div", { class: "menu" }, hidden.map((field) => button(`Show ${field.label}`, () => table.show(field), { key: field.key, class: "" }))),
    ]);
  },
};

const figure = new Intl.NumberFormat(LANGUAGE, { maximumFractionDigits: 2 });

/** The sums of the selected range. */
function summary(table) {
  const range = table.range.value;
  if (!range || (range.top === range.bottom && range.left === range.right)) return "";
  const fields = table.fieldsIn(range).filter(isNumeric);
  const values = table.rowsIn(range).flatMap((record) => fields.map((field) => valueOf(record, field))).filter((one) => typeof one === "number");
  const cells = (range.bottom - range.top + 1) * (range.right - range.left + 1);
  if (values.length === 0) return `${cells.toLocaleString(LANGUAGE)} cells`;
  const sum = values.reduce((total, one) => total + one, 0);
  return `${cells.toLocaleString(LANGUAGE)} cells · Sum ${figure.format(sum)} · Average ${figure.format(sum / values.length)}`;
}

const Foot = {
  props: ["table"],
  setup: ({ table }) => () => {
    const { state, rows } = table.records;
    const total = state.total ?? rows.value.length;
    const outside = table.isFiltered && state.isDone ? rows.value.length - total : 0;
    return h("div", { class: "table-foot" }, [
      h("span", { class: "count-of" }, [countOf(total), outside > 0 ? `, ${outside.toLocaleString(LANGUAGE)} no longer ${outside === 1 ? "matches" : "match"} the filter` : ""]),
      state.isLoading ? h("span", { class: "quiet" }, "Loading…") : null,
      state.isDone && state.total !== null && table.records.missing > 0 ? button(`Show ${table.records.missing.toLocaleString(LANGUAGE)} new`, () => table.records.reload().then(() => table.focus())) : null,
      state.problem ? h("span", { class: "fault", role: "alert" }, [state.problem, " ", button("Try again", () => table.records.more())]) : null,
      h("span", { class: "quiet range-of" }, summary(table)),
      h("span", { class: "grow" }),
      h("span", { class: ["said", { fault: table.page.isFault }], role: "status" }, table.page.said),
      table.edits.refused.size > 0 ? h("button", { type: "button", class: "link fault", title: "Go to the next one", onClick: () => table.nextRefused() }, `${table.edits.refused.size} not saved`) : null,
      h("span", { class: "save-state quiet", "data-saving": table.edits.state.saving > 0 ? "true" : "false" }, table.edits.state.saving > 0 ? "Saving…" : ""),
    ]);
  },
};

const finder = (table) => h(FindBar, {
  label: "Find in table", search: (text) => table.find(text), show: (place) => table.select(...place),
  note: table.records.isWhole ? "" : "in loaded records",
  onClose: () => { table.page.find = null; table.hits.value = new Set(); Vue.nextTick(() => table.focus()); },
});

const App = {
  props: ["table"],
  setup({ table }) {
    const narrow = window.matchMedia("(max-width: 700px)");
    const measure = () => { table.page.isNarrow = narrow.matches; };
    const keydown = (event) => {
      if (isElsewhere(event.target) || !(event.ctrlKey || event.metaKey) || event.altKey) return;
      if (event.key.toLowerCase() !== "f") return;
      event.preventDefault();
      table.page.find = null;
      Vue.nextTick(() => { table.page.find = true; });
    };
    const clip = (name) => (event) => {
      if (isElsewhere(event.target) || !root.contains(document.activeElement)) return;
      if (name === "paste") table.paste(event);
      else table.copy(event, name === "cut" && table.store.canWrite);
    };
    const listeners = { keydown, copy: clip("copy"), cut: clip("cut"), paste: clip("paste") };
    onMounted(() => {
      measure();
      narrow.addEventListener("change", measure);
      for (const [name, listener] of Object.entries(listeners)) document.addEventListener(name, listener);
    });
    onBeforeUnmount(() => { for (const [name, listener] of Object.entries(listeners)) document.removeEventListener(name, listener); });
    const unsaved = (event) => { if (table.edits.state.saving > 0 || table.edits.refused.size > 0) event.preventDefault(); };
    window.addEventListener("beforeunload", unsaved);
    return () => [
      h(Bar, { table }),
      table.page.find ? finder(table) : null,
      h("div", { class: "table-work" }, [h(Sheet, { table }), h(PickedBar, { table }), table.page.beside !== null ? h(BesidePanel, { table }) : null, table.page.field !== null ? h(FieldPanel, { table }) : null]),
      h(Foot, { table }),
      table.page.paste ? h(PasteDialog, { plan: table.page.paste.plan, onPaste: () => table.applyPaste(table.page.paste.plan), onClose: () => { table.page.paste = null; table.focus(); } }) : null,
      table.page.bulk ? h(BulkDialog, { table }) : null,
    ];
  },
};

async function start() {
  const names = new Names();
  const source = new Records({ call, databaseId, query: { ...query, timezone: ZONE }, names, grouping: groupingOf(facts.view), fields: () => facts.fields.map((one) => one.key) });
  const [database, members] = await Promise.all([overview(`${at}/databases/${databaseId}`), namesOf({ workspaceId: workspace, automationId: "" }).members(), source.more()]);
  for (const one of members) names.people.set(one.id, one);
  const store = storeOf(database, source);
  followFiles(source, store, names);
  const table = new Table({ store, source, names, history, me, groupingOf, keepFolded });
  watch(() => source.state.isCut, (isCut) => {
    root.dataset.isCut = isCut;
    document.dispatchEvent(new Event("groupscut"));
  }, { immediate: source.state.isCut });
  history.say = (text, isFault) => table.say(text, isFault);
  createApp(App, { table }).mount(root);
  const beside = (name) => (ids) => overview(`/workspaces/${workspace}/databases/${databaseId}/${name}?ids=${ids.join(",")}`);
  /** Groups by a field that is deleted or converted are those of the view as it is now. */
  const fieldsChanged = async () => {
    await store.readFields();
    const isSame = ({ field }) => store.fields.some((one) => one.key === field.key && one.kind === field.kind);
    if (source.division.levels.every(isSame)) return;
    await readFacts();
    await table.takeView(facts.view);
  };
  followRecords(table, { workspaceId: workspace, databaseId }, { read: beside("current"), revisions: beside("revisions"), fieldsChanged });
  document.addEventListener("viewchange", ({ detail }) => table.takeView(detail));
  root.dataset.ready = "true";
}

start().catch((error) => {
  root.dataset.ready = "failed";
  root.replaceChildren(Object.assign(document.createElement("p"), { className: "alert", textContent: error.message }));
  if (!(error instanceof Refused)) throw error;
});

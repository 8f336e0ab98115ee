// The widgets of a dashboard: charts, numbers, lists of records, runs and automations, texts and links.

import * as chart from "/pages/views/chart.js";
import { call, zone } from "/pages/views/store.js";
import { PARTS } from "/pages/notes/parts.js";
import { RichText } from "/pages/notes/writing.js";

const { h, onMounted, ref, shallowReactive, watch } = globalThis.Vue;

const facts = new Map();
/** The fields and views of a database, asked for once. */
export function factsOf(page, databaseId) {
  if (!facts.has(databaseId)) facts.set(databaseId, call("GET", `/workspaces/${page.workspaceId}/databases/${databaseId}/facts`).catch((error) => { facts.delete(databaseId); throw error; }));
  return facts.get(databaseId);
}

export const chartStore = (database, fields, settings, view = null) => shallowReactive({
  database, fieldsByKey: new Map(fields.map((field) => [field.key, field])), view: { ...(view ?? {}), id: view?.id, manifest: { ...(view?.manifest ?? {}), chart: settings } }, search: "", drawn: null, problem: "",
});

const said = (error) => (error.status === 403 || error.status === 404 ? "Not available" : error.message);

/** A chart or a number, drawn by the module that draws the charts of views. */
const Drawn = {
  props: ["page", "block"],
  setup(props) {
    const store = ref(null);
    const problem = ref("");
    async function load() {
      try {
        const { kind, content } = props.block;
        const databaseId = content.databaseId ?? props.page.databases[content.viewId];
        const { database, fields, views } = await factsOf(props.page, databaseId);
        const view = kind === "view" ? views.find((one) => one.id === content.viewId) : null;
        const settings = view ? view.manifest.chart : { type: kind === "number" ? "number" : content.type, xFieldKey: content.xFieldKey, granularity: content.granularity, aggregate: content.aggregate, filter: content.filter };
        const next = chartStore(database, fields, settings, view);
        Object.assign(next, await chart.load(next));
        store.value = next;
        problem.value = "";
      } catch (error) {
        problem.value = said(error);
      }
    }
    onMounted(load);
    watch(() => JSON.stringify(props.block.content), load);
    return () => (problem.value ? h("p", { class: "quiet" }, problem.value) : store.value ? h(chart.View, { store: store.value }) : h("p", { class: "quiet" }, "Loading…"));
  },
};

const List = {
  props: ["page", "block"],
  setup(props) {
    const kind = ref(null);
    const problem = ref("");
    const load = async () => {
      const { viewId } = props.block.content;
      await factsOf(props.page, props.page.databases[viewId]).then(({ views }) => { kind.value = views.find((one) => one.id === viewId)?.kind ?? "table"; }, (error) => { problem.value = said(error); });
    };
    onMounted(load);
    watch(() => props.block.content.viewId, load);
    return () => {
      const { page, block } = props;
      if (problem.value) return h("p", { class: "quiet" }, problem.value);
      if (kind.value === null) return h("p", { class: "quiet" }, "Loading…");
      if (kind.value === "chart") return h(Drawn, { page, block });
      return h(PARTS.database_view, { page, block: { ...block, content: { databaseId: page.databases[block.content.viewId], viewId: block.content.viewId } } });
    };
  },
};

const time = new Intl.DateTimeFormat(document.documentElement.dataset.language, { dateStyle: "short", timeStyle: "short", timeZone: zone });

/** Rows that the platform fills, each a link with a state; `names` finds the labels of their subjects. */
const listing = (path, key, row, names = async () => ({})) => ({
  props: ["page", "block"],
  setup(props) {
    const rows = ref(null);
    const problem = ref("");
    const load = () => call("GET", `${path(props.page)}${path(props.page).includes("?") ? "&" : "?"}limit=${props.block.content.limit ?? 10}`).then(async (page) => { const known = await names(props.page, page[key]); rows.value = page[key].map((one) => row(one, props.page, known)); }, (error) => { problem.value = said(error); });
    onMounted(load);
    watch(() => props.block.content.limit, load);
    return () => {
      if (problem.value) return h("p", { class: "quiet" }, problem.value);
      if (!rows.value) return h("p", { class: "quiet" }, "Loading…");
      if (rows.value.length === 0) return h("p", { class: "quiet" }, "None yet");
      return h("ul", { class: "widget-rows" }, rows.value.map((one) => h("li", { key: one.href }, [
        h("a", { href: one.href }, one.label), one.status ? h("span", { class: "badge plain", "data-status": one.status }, one.status.replaceAll("_", " ")) : null, one.at ? h("span", { class: "quiet" }, time.format(new Date(one.at))) : null,
      ])));
    };
  },
});

/** The labels of the automations of these runs, however many others there are. */
const labels = async (page, runs) => Object.fromEntries(await Promise.all([...new Set(runs.map((one) => one.automationId))]
  .map(async (id) => [id, await call("GET", `/v1/workspaces/${page.workspaceId}/automations/${id}`).then((one) => one.label, () => undefined)])));
const Runs = listing((page) => `/v1/workspaces/${page.workspaceId}/automation-runs`, "runs", (one, _, known) => ({ label: known[one.automationId] ?? `Run ${one.id.slice(-6)}`, href: `/runs/${one.id}`, status: one.status, at: one.createdAt }), labels);
const Automations = listing((page) => `/v1/workspaces/${page.workspaceId}/automations`, "automations", (one, page) => ({ label: one.label, href: `/workspaces/${page.workspaceId}/automations/${one.id}`, status: one.enabled ? "on" : "off", at: one.updatedAt }));
const Recent = listing((page) => `/v1/items?workspaceId=${page.workspaceId}`, "items", (one) => ({ label: one.title || "Untitled", href: `/items/${one.id}`, at: one.updatedAt }));

const Text = { props: ["page", "block"], setup: (props) => () => h(RichText, { spans: props.block.content.text ?? [], isEditable: false, label: "Text" }) };

const Shortcut = {
  props: ["page", "block"],
  setup: (props) => () => {
    const { content } = props.block;
    return content.itemId ? h(PARTS.item_link, { page: props.page, block: props.block }) : h(PARTS.bookmark, { page: { ...props.page, canWrite: false }, block: props.block });
  },
};

const Unknown = { props: ["block"], setup: () => () => h("p", { class: "quiet" }, "Shown on Home") };

export const WIDGETS = {
  chart: { label: "Chart", part: Drawn, size: [6, 7] }, number: { label: "Number", part: Drawn, size: [3, 3] }, view: { label: "View of a database", part: List, size: [6, 7] },
  runs: { label: "Latest runs", part: Runs, size: [6, 6] }, automations: { label: "Automations", part: Automations, size: [6, 6] }, recent: { label: "Items", part: Recent, size: [4, 6] },
  text: { label: "Text", part: Text, size: [4, 3] }, shortcut: { label: "Link", part: Shortcut, size: [3, 2] }, image: { label: "Image", part: PARTS.image, size: [4, 6] },
  embed: { label: "Web page", part: PARTS.bookmark, size: [3, 3] }, timers: { label: "Timers", part: Unknown, size: [4, 3] },
};

// The gallery: records as cards with a picture, and more of them as one asks for them.

import { button } from "./controls.js";
import { ask, call, facts, fieldsByKey } from "./store.js";
import { cardFields, cardValues, fieldsAsked, loadPeople, needsPeople } from "./values.js";

const { h, shallowRef } = globalThis.Vue;

const PAGE = 60;
const pictures = new Map();

const coverOf = (store) => fieldsByKey.get(store.view.manifest.coverFieldKey) ?? null;
const shownOf = (store) => cardFields(store.view, facts.fields, [store.view.manifest.coverFieldKey]);

const pageOf = (store, cursor) => ask(store, { limit: PAGE, fields: fieldsAsked([coverOf(store), ...shownOf(store)]), ...(cursor ? { cursor } : {}) });

/** The first cards, and as many pages as were shown before. */
export async function load(store) {
  if (needsPeople(shownOf(store))) await loadPeople();
  const parts = { records: [], colors: {}, cursor: null };
  const wanted = store.records.length;
  do {
    const page = await pageOf(store, parts.cursor);
    parts.records.push(...page.records);
    Object.assign(parts.colors, page.colors);
    parts.cursor = page.cursor ?? null;
  } while (parts.cursor && parts.records.length < wanted);
  return parts;
}

async function more(store) {
  const { version } = store;
  try {
    const page = await pageOf(store, store.cursor);
    if (store.version !== version) return;
    const known = new Set(store.records.map((one) => one.id));
    store.records = [...store.records, ...page.records.filter((one) => !known.has(one.id))];
    Object.assign(store, { colors: { ...store.colors, ...page.colors }, cursor: page.cursor ?? null });
  } catch (error) {
    store.problem = error.message;
  }
}

/** The address of the first file that is a picture; "" for none. Addresses are of this host. */
async function pictureOf(ids) {
  for (const id of ids.slice(0, 3)) {
    if (!pictures.has(id)) pictures.set(id, call("GET", `/v1/workspaces/${facts.database.workspaceId}/files/${id}`).catch(() => null));
    const file = await pictures.get(id);
    if (file?.mimeType.startsWith("image/") && file.mimeType !== "image/svg+xml") return new URL(file.downloadUrl, location.origin).pathname;
  }
  return "";
}

/** A picture of a file; of a record without one a plain area, so that cards are alike. */
const Cover = {
  props: ["ids"],
  setup(props) {
    const source = shallowRef("");
    pictureOf(props.ids).then((path) => { source.value = path; });
    return () => h("span", { class: "cover", "aria-hidden": "true" }, source.value ? h("img", { src: source.value, alt: "", loading: "lazy" }) : null);
  },
};

function card(store, record, cover, shown) {
  const files = cover?.form === "files" ? record.data[cover.key] ?? [] : [];
  return h("li", { class: "card tile", key: record.id, "data-card": record.id, "data-color": store.colors?.[record.id] }, [
    cover?.form === "files" ? h(Cover, { ids: files }) : null,
    h("a", { href: `/records/${record.id}`, class: "card-title" }, record.title || "Untitled"),
    ...cardValues(shown, record),
  ]);
}

export const View = {
  props: ["store"],
  setup: (props) => () => {
    const { store } = props;
    const [cover, shown] = [coverOf(store), shownOf(store)];
    return h("div", { class: "gallery-view" }, [
      store.problem ? h("p", { class: "alert", role: "alert" }, store.problem) : null,
      store.records.length === 0 && !store.problem ? h("div", { class: "empty" }, h("h2", null, "No records in this view")) : null,
      h("ul", { class: "gallery", "aria-label": store.view.label }, store.records.map((record) => card(store, record, cover, shown))),
      store.cursor ? button("Show more", () => more(store)) : null,
    ]);
  },
};

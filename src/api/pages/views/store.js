// The shared state of a database page: the view, its records, and requests to the API.

import { act, overview, Refused } from "/pages/client.js";
import { followDatabase } from "/pages/feed.js";
import { Edits } from "/pages/grid/edits.js";
import { History } from "/pages/grid/history.js";

const { reactive, shallowReactive } = globalThis.Vue;

const factsIn = (page) => JSON.parse(page.getElementById("page-facts")?.textContent ?? "{}");

/** The facts that the server gave to the page: fields with operators, views, words and rights. */
export const facts = shallowReactive(factsIn(document));
export const fieldsByKey = shallowReactive(new Map((facts.fields ?? []).map((field) => [field.key, field])));

/** Read the facts anew. A field that is deleted keeps its name here, for the views that have it. */
export async function readFacts() {
  const answer = await fetch(location.href, { headers: { Accept: "text/html" }, cache: "no-store" }).catch(() => null);
  if (!answer?.ok) throw new Refused(answer?.status ?? 0, "The page was not read.");
  const fresh = factsIn(new DOMParser().parseFromString(await answer.text(), "text/html"));
  if (!fresh.fields) return;
  Object.assign(facts, fresh, { view: fresh.view ?? facts.view });
  for (const field of fresh.fields) fieldsByKey.set(field.key, field);
}

/** Where the reader is; times are shown and days begin there. */
export const zone = document.documentElement.dataset.zone || Intl.DateTimeFormat().resolvedOptions().timeZone;
export const language = document.documentElement.dataset.language || undefined;

/** A call of the API with the session of the page. Raises Refused. */
export const call = (method, path, body, headers = {}) =>
  method === "GET" ? overview(path) : act(path, body, method, headers);

const isSame = (one, other) => JSON.stringify(one) === JSON.stringify(other);

/** A manifest with some of its keys replaced; null removes one. */
export function withParts(manifest, parts) {
  const changed = { ...manifest, ...parts };
  return Object.fromEntries(Object.entries(changed).filter(([, value]) => value !== null && value !== undefined));
}

/**
 * Changes a view, with `manifest` merged key by key. If someone else changed other keys meanwhile,
 * theirs stay; if they changed the same ones, nothing is written. Raises Refused. Gives the view.
 */
export async function changeView(view, { manifest, ...rest }) {
  const path = `/v1/databases/${view.databaseId}/views/${view.id}`;
  const write = (base) => call("PATCH", path, { ...rest, ...(manifest ? { manifest: withParts(base.manifest, manifest) } : {}) }, { "If-Match": base.updatedAt });
  try {
    return await write(view);
  } catch (error) {
    if (!(error instanceof Refused) || error.status !== 409) throw error;
    const theirs = await call("GET", path);
    const keys = Object.keys(manifest ?? {});
    const isTouched = keys.some((key) => !isSame(view.manifest[key], theirs.manifest[key]))
      || Object.keys(rest).some((key) => !isSame(view[key], theirs[key]));
    if (theirs.updatedAt === view.updatedAt || isTouched) {
      throw theirs.updatedAt === view.updatedAt ? error : new Refused(409, "Someone else changed this view. Reload the page to see their changes.");
    }
    return write(theirs);
  }
}

/** The changes of the view that are not answered: until then a newer one may be that of this page. */
export const unanswered = shallowReactive(new Set());

/** Waits for the answer to a change of the view. */
export async function answered(change) {
  unanswered.add(change);
  try {
    return await change;
  } finally {
    unanswered.delete(change);
  }
}

/** The acts of the page, of whatever part of it; `say` tells what became of one. */
export const history = new History(() => {});

/** Changes the view as an act: undone, it leaves what others have changed since. */
export async function arrange(store, label, change) {
  const names = Object.keys(change.manifest ?? {});
  const own = Object.keys(change).filter((key) => key !== "manifest");
  const valueOf = (view, key) => (names.includes(key) ? view.manifest[key] : view[key]) ?? null;
  const valuesNow = () => Object.fromEntries([...names, ...own].map((key) => [key, valueOf(store.view, key)]));
  const put = async (values, left) => {
    const kept = [...names, ...own].filter((key) => !isSame(valueOf(store.view, key), left[key]));
    const pick = (keys) => Object.fromEntries(keys.filter((key) => !kept.includes(key)).map((key) => [key, values[key]]));
    await store.patchView({ ...pick(own), ...(names.length > 0 ? { manifest: pick(names) } : {}) });
    return { kept: kept.length };
  };
  const before = valuesNow();
  await store.patchView(change);
  const after = valuesNow();
  history.push({ label, undo: () => put(before, after), redo: () => put(after, before) });
}

/** The body of a query for the records of a view, as a search in the page narrows them. */
export function queryOf(store, more = {}) {
  return {
    ...(store.view ? { viewId: store.view.id } : {}),
    ...(store.search ? { search: store.search } : {}),
    timezone: zone,
    ...more,
  };
}

export const ask = (store, more) => call("POST", `/v1/databases/${store.database.id}/records/query`, queryOf(store, more));

/** The pages of a query, up to a number of records. */
export async function askAll(store, more, most = 1000) {
  const records = [];
  const colors = {};
  let cursor;
  do {
    const page = await ask(store, { ...more, limit: 200, ...(cursor ? { cursor } : {}) });
    records.push(...page.records);
    Object.assign(colors, page.colors);
    cursor = page.cursor ?? undefined;
  } while (cursor && records.length < most);
  return { records, colors, isCut: Boolean(cursor) };
}

/**
 * The store of a page. `load` gives the parts of the store that its kind shows, and `renewal` those that
 * follow others. While something is `held`, nothing moves; what was read meanwhile `isLate`, and is
 * read once more.
 */
export function makeStore(load, { renewal = load } = {}) {
  let reads = 0;
  const store = reactive({
    database: facts.database, fields: facts.fields, view: facts.view, records: [], search: "",
    canWrite: facts.canWrite, said: "", problem: "", version: 0, held: 0, isLate: false,
    call,
    async patchView(change) {
      store.view = await answered(changeView(store.view, change));
      await store.reload();
    },
    async reload(read = load) {
      const version = (store.version += 1);
      reads += 1;
      try {
        const parts = await read(store);
        if (store.version === version) Object.assign(store, parts, { problem: "" });
      } catch (error) {
        if (store.version === version) store.problem = error.message;
        if (error.status === undefined) throw error;
      } finally {
        reads -= 1;
      }
    },
    async during(work) {
      store.hold();
      try {
        return await work();
      } finally {
        store.release();
      }
    },
    hold() {
      store.held += 1;
      store.version += 1;
      // A read that is under way is dropped, also if it ends after the release.
      store.isLate ||= reads > 0;
    },
    release() {
      store.held -= 1;
      if (store.held > 0 || !store.isLate) return;
      store.isLate = false;
      store.reload(renewal);
    },
    /** Show what others have changed, now or after what is held. */
    async renew() {
      if (store.held > 0) store.isLate = true;
      else await store.reload(renewal);
    },
    /** Says what happened to those who do not see it. */
    say(text) {
      store.said = text;
    },
  });
  return store;
}

/** Show what others change: records at once, and the view itself when one asks for it. */
export function followOthers(store) {
  followDatabase({ workspaceId: store.database.workspaceId, databaseId: store.database.id }, async (change) => {
    if (change.hasFields || change.views.size > 0) await readFacts();
    if (change.isUnknown || change.isCounted || change.hasFields || change.ids.size > 0) await store.renew();
  });
}

/** The records of the page, which are read anew after each act. */
const unlisted = {
  call, path: `/v1/databases/${facts.database?.id}/records`, list: [],
  find: () => undefined, fresh: (id) => call("GET", `/v1/records/${id}`), show() {}, put() {}, insert() {}, remove: () => new Map(),
};
const edits = new Edits({ records: unlisted, fieldOf: (key) => fieldsByKey.get(key), names: null, me: facts.me });

/** Takes what was written as an act: undone, it leaves what others have changed since. */
export function written(store, label, parts) {
  const act = edits.act(label, parts);
  const shown = (name) => async () => {
    edits.known.clear();
    const told = await act[name]();
    await store.renew();
    return told;
  };
  history.push({ label, undo: shown("undo"), redo: shown("redo") });
}

/** Writes values of a record; fields of relations go to their own part. Raises Refused. */
export async function writeRecord(record, values) {
  const body = {};
  for (const [key, value] of Object.entries(values)) {
    const part = fieldsByKey.get(key)?.part === "relations" ? "relations" : "data";
    body[part] = { ...body[part], [key]: value };
  }
  return call("PATCH", `/v1/records/${record.id}`, body);
}

// Names of what a workspace has, for pickers, and what the API computes for the editor.

import { act, overview } from "/pages/client.js";

const PAGE = 100;
const MOST = 1000;

async function all(path, key, query = {}) {
  const found = [];
  let cursor;
  do {
    const asked = new URLSearchParams({ ...query, limit: PAGE, ...(cursor ? { cursor } : {}) });
    const page = await overview(`${path}?${asked}`);
    found.push(...page[key]);
    cursor = page.cursor;
  } while (cursor && found.length < MOST);
  return found;
}

/**
 * Each function gives `[{id, label, hint}]` and asks once. What the person may not list is empty:
 * their pickers are text fields.
 */
export function namesOf({ workspaceId, automationId }) {
  const workspace = `/v1/workspaces/${workspaceId}`;
  const automation = `${workspace}/automations/${automationId}`;
  const editor = `/workspaces/${workspaceId}/automations/${automationId}/edit`;
  const known = new Map();
  const once = (name, ask) => {
    if (!known.has(name)) {
      known.set(name, ask().catch(() => {
        known.delete(name);
        return [];
      }));
    }
    return known.get(name);
  };
  const listed = (path, key, show, query) => () =>
    once(`${path} ${JSON.stringify(query ?? {})}`, async () => (await all(path, key, query)).map(show));
  const labelled = (one) => ({ id: one.id, label: one.label });
  const details = listed(`${workspace}/databases`, "databases", (one) => one);
  const database = async (id) => (await details()).find((one) => one.id === id);
  return {
    databases: async () => (await details()).map(labelled),
    fields: async (id) => ((await database(id))?.fields ?? []).map((field) => ({ ...field, id: field.key, hint: field.kind })),
    views: async (id) => ((await database(id))?.views ?? []).map(labelled),
    members: listed(`${workspace}/members`, "members", (one) =>
      ({ id: one.userId, label: one.name ?? one.email ?? one.userId, hint: one.name ? one.email : undefined })),
    connections: listed(`${workspace}/integrations/connections`, "connections", (one) =>
      ({ id: one.id, label: one.label, hint: one.provider })),
    secrets: listed(`${workspace}/secrets`, "secrets", (one) => ({ id: one.name, label: one.name })),
    automations: listed(`${workspace}/automations`, "automations", (one) =>
      ({ id: one.id, label: one.label, hint: one.enabled ? undefined : "disabled" })),
    /** The input schema of an automation that others call; null for one without. */
    inputSchema: (id) => once(`input of ${id}`, async () => [(await overview(`${workspace}/automations/${encodeURIComponent(id)}`)).triggerConfig?.inputSchema ?? null])
      .then(([schema]) => schema ?? null),
    forms: listed("/v1/items", "items", (one) => ({ id: one.id, label: one.title }), { workspaceId, kind: "form" }),
    actions: listed(`${workspace}/actions`, "actions", (one) => ({ id: one.id, label: one.label, hint: one.kind })),
    endpoints: listed(`${workspace}/webhook-endpoints`, "endpoints", (one) =>
      ({ id: one.id, label: one.description ?? one.url, hint: one.description ? one.url : undefined })),
    dataSources: listed(`${workspace}/data-sources`, "dataSources", labelled),
    /** Records of a table as their events have them, the newest first or those that fit a text. */
    records: async (databaseId, text = "") => (await act(`/v1/databases/${encodeURIComponent(databaseId)}/records/query`, { ...(text ? { search: text } : {}), limit: 50 })).records,
    /** A form by its item, with its questions as the table has them. */
    questions: async (itemId) => {
      const found = (await all("/v1/items", "items", { workspaceId, kind: "form" })).find(({ id }) => id === itemId);
      const form = await overview(`${workspace}/forms/${encodeURIComponent(found.targetId)}`);
      const fields = (await database(form.databaseId))?.fields ?? [];
      const asked = form.fields.map((one) => ({ ...fields.find(({ key }) => key === one.key), key: one.key, label: one.label ?? fields.find(({ key }) => key === one.key)?.label ?? one.key, required: one.required }));
      return { ...form, fields: asked };
    },
    /** The value of a binding for this data, as `{value}` or `{error}`. */
    evaluate: (body) => act(`${editor}/evaluate`, body),
    /** The next due times of a schedule, as `{times, notes}`; a refusal has the reason. */
    preview: (triggerConfig) => act(`${automation}/schedule-preview?count=5`, { triggerConfig }),
  };
}

const [, , workspaceId, , automationId] = globalThis.location.pathname.split("/");
/** The names for the page of the editor itself. */
export const names = namesOf({ workspaceId, automationId });

// Requests of a page to the API, in the session of the console, whose cookie no script sees.

/** A refusal of the API; `status` 0 stands for no answer at all. `details` say what is wrong where. */
export class Refused extends Error {
  constructor(status, message, details = []) {
    super(message);
    this.status = status;
    this.details = details;
  }
}

async function request(path, signal, more = {}) {
  let answer;
  try {
    answer = await fetch(path, { ...more, signal, cache: "no-store" });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Refused(0, "The API is not responding.");
  }
  if (answer.ok) return answer;
  const told = await answer.json().catch(() => ({}));
  const message = told.message ?? `The API returned status ${answer.status}.`;
  throw new Refused(answer.status, message, told.details ?? []);
}

async function data(path, signal, more) {
  const answer = await request(path, signal, more);
  let body;
  try {
    body = await answer.json();
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Refused(0, "The API response was cut off.");
  }
  signal?.throwIfAborted();
  return body.data;
}

/** The run at this path of the API, as pages show it. */
export const overview = (path, signal) => data(path, signal);

/** Asks for something to be done, with the token of the session's own pages. */
export const act = (path, body, method = "POST", headers = {}) => data(path, undefined, {
  method,
  body: JSON.stringify(body),
  headers: {
    ...headers,
    "Content-Type": "application/json",
    "X-CSRF-Token": document.querySelector("meta[name=csrf-token]").content,
  },
});

/** Stores a file of a workspace, sent as it is; the answer says its id and where it is read. */
export const uploaded = (workspaceId, file) => data(`/v1/workspaces/${workspaceId}/files?name=${encodeURIComponent(file.name)}`, undefined, {
  method: "POST",
  body: file,
  headers: { "Content-Type": file.type || "application/octet-stream", "X-CSRF-Token": document.querySelector("meta[name=csrf-token]").content },
});

/** One page of the node runs of a node. */
export function nodeRuns(run, { nodeId, status, cursor }) {
  const query = new URLSearchParams({ nodeId, limit: "50" });
  if (status) query.set("status", status);
  if (cursor) query.set("cursor", cursor);
  const path = `/v1/workspaces/${run.workspaceId}/automations/${run.automationId}/runs/${run.id}`;
  return data(`${path}/node-runs?${query}`);
}

/** Calls `told(name, data)` for each event of a run; returns once the stream has stopped. */
export async function watch(path, told, signal) {
  const answer = await request(`${path}/events`, signal);
  const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    const parts = (rest + value).split("\n\n");
    rest = parts.pop();
    for (const part of parts) {
      const fields = Object.fromEntries(
        part.split("\n").map((line) => [line.slice(0, line.indexOf(":")), line.slice(line.indexOf(":") + 2)]),
      );
      signal.throwIfAborted();
      if (fields.event) told(fields.event, JSON.parse(fields.data));
    }
  }
}

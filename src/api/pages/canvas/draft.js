// The draft of an automation: it is saved as one edits, unless someone else changed it meanwhile.

import { act, overview, Refused } from "/pages/client.js";
import { TRIGGER } from "./graph.js";

const PAUSE = 700;
const AGAIN = 3000;

/** JSON with its keys in order, so that equal values are equal texts. */
const ordered = (value) => JSON.stringify(value, (_, one) => (one && typeof one === "object" && !Array.isArray(one)
  ? Object.fromEntries(Object.entries(one).sort(([a], [b]) => (a < b ? -1 : 1))) : one));

/** What an automation does, as the editor changes it. */
export const documentOf = ({ graph, triggerConfig }) => ({
  graph: graph ?? { nodes: [], edges: [] }, trigger: triggerConfig ?? { kind: "manual" },
});

/** A message of an issue may begin with its place: `config.url: …`. */
const PLACED = /^([A-Za-z_$][\w$-]*(?:\.[\w$-]+)*): ([^]+)$/;

function placed(message) {
  const match = message.match(PLACED);
  return match ? { path: match[1], message: match[2] } : { path: "", message };
}

/** The issues of a stored graph; those of the trigger have its id. */
const issuesOf = (automation) => (automation.referenceIssues ?? []).map(({ nodeId, message, severity }) => {
  const found = placed(message);
  const isTrigger = !nodeId && /^triggerConfig\b/.test(found.path);
  return { nodeId: isTrigger ? TRIGGER : nodeId, ...found, path: found.path.replace(/^triggerConfig\.?/, ""), severity };
});

/** What the API refuses of a document, each at its node. */
function refusedOf({ details, message }, { graph }) {
  if (details.length === 0) return [{ nodeId: "", path: "", message, severity: "error" }];
  return details.map(({ path, message: said }) => {
    const node = path.match(/^graph\.nodes\.(\d+)\.?(.*)$/);
    if (node) return { nodeId: graph.nodes[node[1]]?.id ?? "", path: node[2], message: said, severity: "error" };
    const trigger = path.match(/^triggerConfig\.?(.*)$/);
    if (trigger) return { nodeId: TRIGGER, path: trigger[1], message: said, severity: "error" };
    return { nodeId: "", path, message: said, severity: "error" };
  });
}

/**
 * `shown` is a reactive object that gets `state` (saved, saving, unsaved, refused, conflict, offline),
 * `message`, `issues` and the ids of the versions.
 */
export class Draft {
  constructor(path, shown) {
    this.path = path;
    this.shown = shown;
    this.timer = null;
    this.work = null;
  }

  async load() {
    const automation = await overview(this.path);
    this.take(automation);
    this.wanted = this.saved = documentOf(automation);
    return this.saved;
  }

  take(automation) {
    this.updatedAt = automation.updatedAt;
    this.known = ordered(documentOf(automation));
    Object.assign(this.shown, {
      state: "saved", message: "", issues: issuesOf(automation),
      draftVersionId: automation.draftVersionId ?? null,
      publishedVersionId: automation.publishedVersionId ?? null,
      version: automation.version ?? null,
      automation: { ...automation, graph: undefined, triggerConfig: undefined },
    });
  }

  get isSaved() {
    return this.wanted === this.saved;
  }

  /** Save this document soon. */
  change(document) {
    this.wanted = document;
    clearTimeout(this.timer);
    if (this.shown.state === "conflict") return;
    if (this.isSaved && !this.work) {
      this.shown.state = "saved";
      return;
    }
    this.shown.state = "unsaved";
    this.timer = setTimeout(() => this.flush(), PAUSE);
  }

  /** Save what is not saved; true once it is. */
  async flush() {
    clearTimeout(this.timer);
    while (this.work) await this.work;
    while (!this.isSaved) {
      this.work = this.save(this.wanted);
      const isDone = await this.work;
      this.work = null;
      if (!isDone) return false;
    }
    return this.shown.state === "saved";
  }

  async save(document) {
    this.shown.state = "saving";
    const { graph, trigger } = document;
    const body = { graph, triggerConfig: trigger };
    if (this.shown.draftVersionId) body.expectedDraftVersionId = this.shown.draftVersionId;
    try {
      this.take(await act(this.path, body, "PATCH", { "If-Match": this.updatedAt }));
      this.saved = document;
      if (!this.isSaved) this.shown.state = "unsaved";
      return true;
    } catch (error) {
      if (!(error instanceof Refused)) throw error;
      return this.refused(error, document);
    }
  }

  async refused(error, document) {
    if (error.status === 409) return this.conflict();
    if (error.status === 401) {
      Object.assign(this.shown, { state: "refused", message: "Your session has expired. Copy your nodes (Ctrl+A, Ctrl+C), sign in again, then paste them." });
    } else if (error.status === 0 || error.status === 429 || error.status >= 500) {
      Object.assign(this.shown, { state: "offline", message: error.message });
      this.timer = setTimeout(() => this.flush(), AGAIN);
    } else if (error.details.length > 0) {
      Object.assign(this.shown, { state: "refused", message: error.message, issues: refusedOf(error, document) });
    } else {
      Object.assign(this.shown, { state: "refused", message: error.message });
    }
    return false;
  }

  /** Another change of the draft is a conflict; of the label, say, it is none. */
  async conflict() {
    const theirs = await overview(this.path).catch(() => null);
    if (theirs && ordered(documentOf(theirs)) === this.known) {
      const { issues } = this.shown;
      this.take(theirs);
      Object.assign(this.shown, { issues, state: "unsaved" });
      return true;
    }
    this.theirs = theirs;
    Object.assign(this.shown, { state: "conflict", message: "Someone else changed this draft." });
    return false;
  }

  /** After a conflict: save this document over the other one. */
  async overwrite() {
    if (!this.theirs) this.theirs = await overview(this.path);
    const { issues } = this.shown;
    this.take(this.theirs);
    Object.assign(this.shown, { issues, state: "unsaved" });
    this.theirs = null;
    return this.flush();
  }

  /** Publish the draft as it is saved. Raises Refused. */
  async publish(note) {
    const body = { ...(note ? { note } : {}), expectedDraftVersionId: this.shown.draftVersionId };
    this.take(await act(`${this.path}/publish`, body));
  }
}

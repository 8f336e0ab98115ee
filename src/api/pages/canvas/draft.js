// The draft of an automation: it is saved as one edits, unless someone else changed it meanwhile.

import { act, overview, Refused } from "/pages/client.js";
import { TRIGGER } from "./graph.js";
import { merged, ordered } from "./together.js";

const PAUSE = 700;
const AGAIN = 3000;
/** The key of a draft in this browser begins with it. */
const KEPT = "draft ";

/** The content of an automation, as the editor changes it. */
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
  return { nodeId: isTrigger ? TRIGGER : nodeId, ...found, severity };
});

/** The faults that the API sees in a document, each at its node. */
function refusedOf({ details, message }, { graph }) {
  if (details.length === 0) return [{ nodeId: "", path: "", message, severity: "error" }];
  return details.map(({ path, message: said }) => {
    const node = path.match(/^graph\.nodes\.(\d+)\.?(.*)$/);
    if (node) return { nodeId: graph.nodes[node[1]]?.id ?? "", path: node[2], message: said, severity: "error" };
    return { nodeId: /^triggerConfig\b/.test(path) ? TRIGGER : "", path, message: said, severity: "error" };
  });
}

/**
 * `shown` is a reactive object that gets `state` (saved, saving, unsaved, refused, conflict, offline),
 * `message`, `issues` and the ids of the versions.
 */
export class Draft {
  constructor(path, shown, user) {
    this.path = path;
    this.shown = shown;
    this.user = user;
    this.moved = () => {};
    this.timer = null;
    this.work = null;
  }

  async load() {
    const automation = await overview(this.path);
    this.loaded = automation;
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

  /** Keep what is not saved in this browser, for this person; true once it is kept. */
  keep() {
    try {
      localStorage.setItem(KEPT + this.path, JSON.stringify({ user: this.user, known: this.known, base: this.saved, document: this.wanted }));
      return true;
    } catch {
      return false;
    }
  }

  /** The changes of this draft that only this browser has, once; null for none. */
  restored() {
    const text = localStorage.getItem(KEPT + this.path);
    if (text === null) return null;
    localStorage.removeItem(KEPT + this.path);
    const { user, known, base, document } = JSON.parse(text);
    if (user !== this.user || ordered(document) === this.known) return null;
    if (known !== this.known) {
      this.theirs = this.loaded;
      this.saved = base;
      Object.assign(this.shown, { state: "conflict", message: "Someone else changed this draft." });
    }
    return document;
  }

  /** Learn that the automation may have changed. Parts without a change here are shown as they are. */
  async hear({ updatedAt }) {
    if (updatedAt === this.updatedAt || this.work || this.shown.state === "conflict") return;
    const theirs = await overview(this.path).catch(() => null);
    if (theirs === null || this.work || theirs.updatedAt === this.updatedAt) return;
    const isSame = ordered(documentOf(theirs)) === this.known;
    if (isSame && this.isSaved) this.take(theirs);
    else if (!isSame && this.isSaved) {
      this.take(theirs);
      this.wanted = this.saved = documentOf(theirs);
      this.moved(this.saved);
    } else if (!isSame) await this.conflict(theirs);
  }

  /** Save this document soon. */
  change(document) {
    this.wanted = document;
    clearTimeout(this.timer);
    if (this.shown.state === "conflict" || this.shown.isSignedOut) {
      this.keep();
      return;
    }
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
      localStorage.removeItem(KEPT + this.path);
      if (!this.isSaved) this.shown.state = "unsaved";
      return true;
    } catch (error) {
      if (!(error instanceof Refused)) throw error;
      return this.refused(error, document);
    }
  }

  async refused(error, document) {
    if (error.status === 409) return this.conflict();
    this.keep();
    if (error.status === 401) {
      Object.assign(this.shown, { state: "refused", isSignedOut: true, message: "Your session has expired." });
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
  async conflict(read = null) {
    const theirs = read ?? await overview(this.path).catch(() => null);
    if (theirs && ordered(documentOf(theirs)) === this.known) {
      const { issues } = this.shown;
      this.take(theirs);
      Object.assign(this.shown, { issues, state: "unsaved" });
      return true;
    }
    this.theirs = theirs;
    this.keep();
    Object.assign(this.shown, { state: "conflict", message: "Someone else changed this draft." });
    return false;
  }

  /**
   * After a conflict: `{mine, theirs, document, clashes}`, where `document` is what `choice` says: mine,
   * theirs or both. It is saved by the next change.
   */
  async settled(choice) {
    const automation = this.theirs ?? await overview(this.path);
    const [mine, base, theirs] = [this.wanted, this.saved, documentOf(automation)];
    const { document, clashes } = choice === "both" ? merged(base, mine, theirs) : { document: { mine, theirs }[choice], clashes: [] };
    this.take(automation);
    this.saved = theirs;
    this.theirs = null;
    this.shown.state = "unsaved";
    localStorage.removeItem(KEPT + this.path);
    return { mine, theirs, document, clashes };
  }

  /** Publish the draft as it is saved. Raises Refused. */
  async publish(note) {
    const body = { ...(note ? { note } : {}), expectedDraftVersionId: this.shown.draftVersionId };
    this.take(await act(`${this.path}/publish`, body));
  }
}

// The feed of a workspace, one for the page: its parts are told what others change in a database.

import * as client from "/pages/client.js";

const GATHER = 150;
/** The least pause between two rounds without a feed. */
const POLL = 3000;
const MOST_PAUSE = 30_000;
/** A round follows after this many times what the last one took: a busy platform is asked less. */
const REST = 10;
const TRIES = [1000, 2000, 5000, 15_000, 30_000];
/** A hidden page leaves the feed after this time. */
const UNSEEN = 60_000;
/** Refusals that another try does not change. */
const FINAL = [401, 403, 404];

const pause = (milliseconds) => new Promise((done) => setTimeout(done, milliseconds));

/**
 * The changes since the last round. `isUnknown`: anything may have changed. `ids` are the records that
 * were written, and `isCounted` says that there may be more or fewer. `views` are those that changed.
 */
const nothing = () => ({ isUnknown: false, isCounted: false, hasFields: false, ids: new Set(), views: new Set() });

const COUNTED = new Set(["record.created", "record.deleted", "record.restored", "record.archived"]);

/** Add an event of the database to what has changed. Exported for its test. */
export function gather(change, { type, data }) {
  if (type.startsWith("record.")) {
    const ids = data.recordIds ?? (data.recordId ? [data.recordId] : null);
    if (ids === null) change.isUnknown = true;
    else for (const id of ids) change.ids.add(id);
    if (COUNTED.has(type)) change.isCounted = true;
  } else if (type === "database.fields_changed") change.hasFields = true;
  else if (type === "database.views_changed") for (const id of data.viewIds ?? []) change.views.add(id);
  else return false;
  return true;
}

/** One part of the page, and what it is still to be told. */
class Listener {
  constructor(databaseId, heard) {
    Object.assign(this, { databaseId, heard, due: nothing(), isDue: false, isOwed: false, rest: GATHER });
  }

  take(event) {
    if (event.data?.databaseId === this.databaseId && gather(this.due, event)) this.wake();
  }

  anything() {
    this.due.isUnknown = this.due.isCounted = true;
    this.wake();
  }

  wake() {
    if (this.isDue) return;
    this.isDue = true;
    this.round().finally(() => { this.isDue = false; if (this.isOwed) this.wake(); });
  }

  /** Gather what comes together, and tell it at another moment than other pages do. */
  async round() {
    await pause(this.rest + Math.random() * GATHER);
    await seen();
    const began = performance.now();
    const change = this.due;
    this.due = nothing();
    let least = GATHER;
    try {
      await this.heard(change);
    } catch (error) {
      if (error.status === undefined) throw error;
      least = POLL;
      this.due.isUnknown = !FINAL.includes(error.status);
    }
    this.rest = Math.min(Math.max(least, REST * (performance.now() - began)), MOST_PAUSE);
    const { isUnknown, isCounted, hasFields, ids, views } = this.due;
    this.isOwed = isUnknown || isCounted || hasFields || ids.size + views.size > 0;
  }
}

const isSeen = () => !document.hidden;
const until = (holds) => new Promise((done) => {
  const look = () => {
    if (!holds()) return;
    document.removeEventListener("visibilitychange", look);
    done();
  };
  document.addEventListener("visibilitychange", look);
  look();
});
const seen = () => until(isSeen);

class Feed {
  constructor(workspaceId) {
    Object.assign(this, { workspaceId, listeners: new Set(), isLive: false });
    this.follow();
    setInterval(() => { if (!this.isLive && isSeen()) this.anything(); }, POLL);
  }

  anything() {
    for (const one of this.listeners) one.anything();
  }

  show(isLive) {
    this.isLive = isLive;
    document.documentElement.dataset.feed = isLive ? "live" : "lost";
  }

  /** Feeds end now and then, and connections break; in between the page asks by itself. */
  async follow() {
    for (let failures = 0; ; failures += 1) {
      await seen();
      const wasLive = await this.connect().catch((error) => {
        if (error.status === undefined) throw error;
        if (error.status === 401) return null;
        return false;
      });
      this.show(false);
      if (wasLive === null) return;
      if (wasLive) failures = 0;
      await pause(TRIES[Math.min(failures, TRIES.length - 1)] * (0.5 + Math.random()));
    }
  }

  /** True once it was live and has ended. Raises Refused. */
  async connect() {
    const { ticket } = await client.act(`/v1/workspaces/${this.workspaceId}/realtime/ticket`);
    const url = new URL("/v1/realtime", location.href);
    url.protocol = url.protocol.replace("http", "ws");
    url.searchParams.set("ticket", ticket);
    const socket = new WebSocket(url);
    let timer;
    const leave = () => {
      clearTimeout(timer);
      if (document.hidden) timer = setTimeout(() => socket.close(), UNSEEN);
    };
    document.addEventListener("visibilitychange", leave);
    socket.addEventListener("message", ({ data }) => this.take(JSON.parse(data)));
    await new Promise((done) => { socket.addEventListener("close", done); });
    clearTimeout(timer);
    document.removeEventListener("visibilitychange", leave);
    return this.isLive;
  }

  take(event) {
    if (event.type === "ready") {
      this.show(true);
      // Changes may have come between the reading of the page, or the last feed, and this one.
      this.anything();
    } else for (const one of this.listeners) one.take(event);
  }
}

const feeds = new Map();

/**
 * Call `heard(change)` when records, fields or views of a database change: soon, one call at a time,
 * and not while the page is hidden. A call that the API refuses is made once more.
 */
export function followDatabase({ workspaceId, databaseId }, heard) {
  if (!feeds.has(workspaceId)) feeds.set(workspaceId, new Feed(workspaceId));
  feeds.get(workspaceId).listeners.add(new Listener(databaseId, heard));
}

// The shared part of the pages of runs: they show a run and follow it until it ends.

import * as client from "/pages/client.js";
import { duration, element, icon, moment, plain, span } from "/pages/words.js";

const PAUSES = [500, 1000, 2000, 5000, 10_000];
/** Refusals that another try does not change. */
const FINAL = [401, 403, 404];

export const at = (id) => document.getElementById(id);
export const runId = decodeURIComponent(location.pathname.split("/").pop());

export function problem(text) {
  at("error").hidden = !text;
  at("error").textContent = text ?? "";
}

/** The facts of every run, in the head of the page. */
export function showHead(title, run, temporal, facts) {
  document.title = `${run.word ?? plain(run.status)} · ${title}`;
  at("label").textContent = at("label").title = title;
  const status = at("status");
  const state = `${run.status} ${run.word ?? ""}`;
  if (status.dataset.shown !== state) {
    status.dataset.shown = state;
    status.dataset.status = run.status;
    status.replaceChildren(icon(run.status), run.word ?? plain(run.status));
  }
  const took = span(run.startedAt, run.completedAt);
  const all = {
    ...facts,
    Started: run.startedAt ? moment(run.startedAt) : "not yet",
    Duration: took === null ? "" : duration(took),
  };
  at("facts").replaceChildren(...Object.entries(all).filter(([, value]) => value).map(
    ([name, value]) => element("div", {}, element("dt", {}, name), element("dd", {}, value))));
  problem(run.error);
  at("temporal").hidden = !/^https?:/.test(temporal.uiUrl ?? "");
  if (!at("temporal").hidden) at("temporal").href = temporal.uiUrl;
}

function live(state) {
  const words = { live: "live", lost: "reconnecting", over: "" };
  at("live").dataset.live = state;
  at("live").hidden = state === "over";
  at("live").textContent = words[state];
}

/**
 * Show the run that is at `path` of the API. `page` has `take(found)`, which is given all of it,
 * `heard(data)`, which is given what changed, `isOpen()` and `tick()`, called every second while it
 * is open.
 */
export function followed(path, page) {
  let shown = false;
  /** Aborted, it takes along whatever was asked for. */
  let stay = new AbortController();

  async function load(signal) {
    const found = await client.overview(path, signal);
    page.take(found, !shown);
    shown = true;
  }

  /** Follow the run until it has ended; streams end now and then, and connections break. */
  async function follow(signal) {
    for (let failures = 0; page.isOpen();) {
      try {
        await client.watch(path, (name, data) => {
          failures = 0;
          if (name !== "state") return;
          live("live");
          page.heard(data);
        }, signal);
      } catch (error) {
        if (signal.aborted || FINAL.includes(error.status)) throw error;
        live("lost");
      }
      if (!page.isOpen()) break;
      await new Promise((done) => setTimeout(done, PAUSES[Math.min(failures, PAUSES.length - 1)]));
      signal.throwIfAborted();
      failures += 1;
    }
    await load(signal);
    live("over");
  }

  /** The session is over, or the run is not for this person any more. */
  function leave(error) {
    stay.abort();
    if (error.status === 401) {
      location.assign(`/sign-in?next=${encodeURIComponent(location.pathname)}`);
    } else problem(error.message);
  }

  async function start() {
    stay.abort();
    const { signal } = (stay = new AbortController());
    try {
      await load(signal);
      await follow(signal);
    } catch (error) {
      if (signal.aborted) return;
      if (!(error instanceof client.Refused)) throw error;
      if (FINAL.includes(error.status)) return leave(error);
      if (!shown) problem(error.message);
      else live("lost");
      setTimeout(() => signal.aborted || start(), PAUSES[2]);
    }
  }

  // An open run takes longer every second.
  setInterval(() => shown && page.isOpen() && page.tick(), 1000);
  start();
  return start;
}

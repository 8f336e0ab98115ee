// What the pages of runs share: they show a run and follow it until it ends, in a session of the
// console or with a key that they ask for.

import * as client from "/pages/client.js";
import { duration, element, icon, moment, plain, span } from "/pages/words.js";

const PAUSES = [500, 1000, 2000, 5000, 10_000];
/** Refusals that another try with the same key does not change. */
const FINAL = [401, 403, 404];

export const at = (id) => document.getElementById(id);
export const runId = decodeURIComponent(location.pathname.split("/").pop());

/** The page asks for a key; without a form for one it is read in a session. */
const isKeyed = at("entry") !== null;

export function problem(text) {
  at("error").hidden = !text;
  at("error").textContent = text ?? "";
}

/** What every run has, in the head of the page. */
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
    started: run.startedAt ? moment(run.startedAt) : "not yet",
    took: took === null ? "" : duration(took),
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
  /** From a key to its end: aborted, it takes along whatever was asked for with the key. */
  let stay = new AbortController();

  async function load(signal) {
    const found = await client.overview(path, signal);
    if (isKeyed) {
      at("entry").hidden = true;
      at("header").hidden = at("main").hidden = false;
    }
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

  function ask(error) {
    stay.abort();
    if (!isKeyed) {
      const here = location.pathname;
      if (error.status === 401) location.assign(`/sign-in?next=${encodeURIComponent(here)}`);
      else problem(error.message);
      return;
    }
    client.forget();
    shown = false;
    at("header").hidden = at("main").hidden = at("error").hidden = true;
    at("entry").hidden = false;
    at("refusal").textContent = error ? error.message : "";
    at("token").focus();
  }

  async function start() {
    stay.abort();
    if (isKeyed && client.token() === null) return ask(null);
    const { signal } = (stay = new AbortController());
    try {
      await load(signal);
      await follow(signal);
    } catch (error) {
      if (signal.aborted) return;
      if (!(error instanceof client.Refused)) throw error;
      if (FINAL.includes(error.status)) return ask(error);
      if (!shown) problem(error.message);
      else live("lost");
      setTimeout(() => signal.aborted || start(), PAUSES[2]);
    }
  }

  if (isKeyed) at("entry").addEventListener("submit", (event) => {
    event.preventDefault();
    client.remember(at("token").value.trim());
    at("token").value = "";
    start();
  });
  at("forget")?.addEventListener("click", () => ask(null));
  // What goes on takes longer every second.
  setInterval(() => shown && page.isOpen() && page.tick(), 1000);
  start();
  return start;
}

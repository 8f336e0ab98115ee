// The page of a database: the bar above, and below it the records as the kind of the view has them.

import { ViewBar } from "./bar.js";
import { Groups, loadGroups } from "./groups.js";
import { facts, followOthers, history, makeStore } from "./store.js";

const { createApp, h } = globalThis.Vue;

/** The table of the page reads its records once more, as the view has them now. */
async function loadTable(store) {
  document.dispatchEvent(new CustomEvent("viewchange", { detail: store.view }));
  return loadGroups(store);
}

const KINDS = {
  board: async () => import("./board.js"),
  calendar: async () => import("./calendar.js"),
  timeline: async () => import("./calendar.js").then(({ load, Timeline }) => ({ load, View: Timeline })),
  gallery: async () => import("./gallery.js"),
  chart: async () => import("./chart.js"),
};

async function start() {
  const kind = KINDS[facts.view?.kind];
  const part = kind ? await kind() : null;
  const store = part ? makeStore(part.load) : makeStore(loadTable, { renewal: loadGroups });
  const bar = document.getElementById("view-bar");
  createApp({ render: () => h(ViewBar, { store }) }).mount(bar);
  if (facts.canWrite || facts.canEditViews) history.followKeys();
  // The table arranges its columns in the view, too.
  document.addEventListener("viewkept", ({ detail }) => { store.view = detail; });
  // The table is not divided by more groups than an answer has.
  document.addEventListener("groupscut", () => store.renew());
  await store.renew();
  createApp({ render: () => h(part?.View ?? Groups, { store }) }).mount("#view-body");
  bar.dataset.ready = "true";
  followOthers(store);
}

start();

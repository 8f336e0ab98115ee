// The page of a run that imports rows: a refresh of a data source, or an import.

import { act, Refused } from "/pages/client.js";
import { at, followed, runId, showHead } from "/pages/follow.js";
import {
  bytes, element, icon, moment, mono, pairs, plain, present, section,
} from "/pages/words.js";

const OPEN = ["queued", "running"];
const DAYS = 24 * 60 * 60 * 1000;
/** The time after its end in which a run can be reverted. */
const REVERTIBLE = 7 * DAYS;

const STAGES = {
  fetch: ["Fetch", "requests pages from the source"],
  stage: ["Read", "reads rows and columns"],
  apply: ["Write", "compares and writes all rows in one step"],
};
const COUNTS = {
  rowsFetched: "rows read", rowsInserted: "inserted", rowsUpdated: "updated",
  rowsUnchanged: "unchanged", rowsRemoved: "removed", rowsSkipped: "skipped",
  cellsSkipped: "cells skipped",
};
const path = `/v1/data-source-runs/${encodeURIComponent(runId)}`;
const isImport = () => shown.dataSourceId === undefined;
let shown = null;

/** The state of a stage: those before the one the run is in, or ended in, are over. */
function stateOf(name, { status, progress }) {
  const names = Object.keys(STAGES);
  const here = progress ? names.indexOf(progress.stage) : -1;
  const place = names.indexOf(name);
  if (place < here || status === "succeeded") return "succeeded";
  return place === here ? status : null;
}

function stage(name) {
  const { run } = shown;
  const [label, does] = STAGES[name];
  const state = stateOf(name, run);
  const counted = {
    fetch: run.stats.bytesFetched > 0 && bytes(run.stats.bytesFetched),
    stage: run.stats.rowsFetched > 0 && `${run.stats.rowsFetched.toLocaleString()} rows`,
    apply: state === "succeeded" ? "written in one step" : "",
  };
  const told = state === null || state === "queued" ? does : counted[name] || does;
  return element("li", { "data-status": state },
    state && icon(state), element("b", {}, label), element("span", { class: "quiet" }, told));
}

function button(label, where, body, said) {
  return element("button", { type: "button", onclick: async (event) => {
    event.target.disabled = true;
    try {
      const made = await act(where, body);
      if (said === null) {
        location.assign(made.pageUrl);
        return;
      }
      say(said(made));
      again();
    } catch (error) {
      if (!(error instanceof Refused)) throw error;
      say(error.message);
      event.target.disabled = false;
    }
  } }, label);
}

function say(text) {
  at("said").hidden = !text;
  at("said").textContent = text;
}

const taken = ({ reversal }) =>
  `Reverted: ${reversal.reverted.toLocaleString()} records. `
  + `Kept because they changed since: ${reversal.kept.toLocaleString()}.`;

/** The actions on the run as it is; the API decides. */
function buttons() {
  const { run, workspaceId, dataSourceId } = shown;
  const home = `/v1/workspaces/${workspaceId}`;
  const source = `${home}/data-sources/${dataSourceId}`;
  const own = isImport() ? `${home}/imports/${runId}` : `${source}/runs/${runId}`;
  if (OPEN.includes(run.status)) {
    return [button("Cancel", `${own}/cancel`, {}, () => "Cancelled. No rows were changed.")];
  }
  const recent = Date.now() - Date.parse(run.completedAt) < REVERTIBLE;
  const reversible = run.status === "succeeded" && run.revertedAt === undefined && recent;
  return present(
    reversible && button(isImport() ? "Undo" : "Revert",
      `${own}/${isImport() ? "undo" : "revert"}`, {}, taken),
    !isImport() && button("Refresh", `${source}/refresh`, {}, null),
    run.errorKind === "guard" && button("Force refresh", `${source}/refresh`, { force: true }, null));
}

/** The address of what the run left out, as CSV. */
function rejects() {
  const workspace = `/v1/workspaces/${shown.workspaceId}`;
  const run = isImport() ? `imports/${runId}` : `data-sources/${shown.dataSourceId}/runs/${runId}`;
  return `${workspace}/${run}/rejects?format=csv`;
}

function details() {
  const { run } = shown;
  at("details").replaceChildren(...present(
    element("h2", {}, isImport() ? "Import" : "Refresh"),
    pairs({
      "Run ID": mono(runId),
      Workflow: mono(shown.metadata.temporal.workflowId),
      Created: moment(shown.createdAt),
      Ended: run.completedAt && moment(run.completedAt),
      "Data source": shown.dataSourceId && mono(shown.dataSourceId),
      Database: shown.databaseId && mono(shown.databaseId),
      Reverted: run.revertedAt && moment(run.revertedAt),
    }),
    run.waitingForWorkerSince && section("Waiting", element("p", { class: "problem" },
      `Waiting for a worker since ${moment(run.waitingForWorkerSince)}`)),
    run.error && section("Error", element("p", { class: "problem" }, run.error),
      run.advice && element("p", { class: "quiet" }, run.advice)),
    run.status === "failed" && section("Changes",
      element("p", {}, "None: a failed run writes no rows.")),
    run.skippedCells > 0 && section("Values", element("p", {},
      `${run.skippedCells.toLocaleString()} values don't match the column type and were left blank. `,
      run.status === "succeeded" && element("a", { href: rejects(), download: "" }, "Download")),
      list(run.columns.skippedCells, ({ cells }) => cells.toLocaleString())),
    ...columns(run.columns)));
}

/** The rows that are missing, and the columns that are missing, new or of another kind. */
function columns({ added, missing, changed, rowsMissing }) {
  const kept = missing.filter(({ valuesKept }) => valuesKept);
  const emptied = missing.filter(({ valuesKept }) => !valuesKept);
  return [
    rowsMissing > 0 && section("Missing rows", element("p", {},
      `The source states a total of rows that is ${rowsMissing.toLocaleString()} more than it returned. Check its pagination.`)),
    kept.length > 0 && section("Missing from the source", list(kept, () => "values are kept")),
    emptied.length > 0 && section("Missing from all rows", list(emptied, () => "values are empty")),
    changed.length > 0 && section("Changed columns", list(changed, ({ before, kind }) => `${before} to ${kind}`)),
    added.length > 0 && section("New columns", list(added, ({ fieldKey }) => fieldKey || "not mapped")),
  ];
}

/** Columns by their names, and a word about each. */
function list(found, word) {
  return pairs(Object.fromEntries(found.map((one) => [one.sourcePath, word(one)])));
}

function show() {
  const { run } = shown;
  showHead(shown.title, run, shown.metadata.temporal, { Source: plain(shown.trigger) });
  at("stages").replaceChildren(...Object.keys(STAGES).map(stage));
  at("counts").replaceChildren(...Object.entries(COUNTS).map(([name, label]) => element("div", {},
    element("dd", {}, run.stats[name].toLocaleString()), element("dt", {}, label))));
}

/** Buttons stay as they are while nothing else can be done: the reader may be about to press one. */
function showAll() {
  show();
  const { status, revertedAt } = shown.run;
  const now = [status, revertedAt].join();
  if (at("buttons").dataset.for !== now) {
    at("buttons").dataset.for = now;
    at("buttons").replaceChildren(...buttons());
  }
  details();
  if (shown.run.reversal) say(taken(shown.run));
}

const again = followed(path, {
  take(found) {
    shown = found;
    showAll();
  },
  heard(run) {
    shown.run = run;
    showAll();
  },
  tick: show,
  isOpen: () => OPEN.includes(shown.run.status),
});

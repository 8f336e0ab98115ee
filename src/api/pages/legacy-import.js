// The page of a legacy import run: its stages, the workspaces in it, and what can be decided.

import { act, Refused } from "/pages/client.js";
import { at, followed, runId, showHead } from "/pages/follow.js";
import { element, icon, moment, mono, pairs, plain, present, section, tag } from "/pages/words.js";

const path = `/v1/admin/legacy-imports/${encodeURIComponent(runId)}`;
const AT_REST = [
  "completed", "completed_with_warnings", "failed", "cancelled", "rolled_back", "rollback_failed",
];
const CANCELLABLE = [
  "uploaded", "validating", "dry_running", "awaiting_review", "approved", "importing", "verifying",
];
const RELEASABLE = ["failed", "cancelled", "rolled_back", "rollback_failed"];
const RETRIABLE = ["importing", "verifying", "completed_with_warnings", "failed"];
const MOST_ATTEMPTS = 5;
/** Whole, and yet hidden. */
const isFinished = ({ stage, lifecycleState, rollbackState }) =>
  stage === "done" && lifecycleState === "hidden" && rollbackState === "none";
/** The sign and colour of each status and stage; all others are under way. */
const SIGNS = {
  awaiting_review: "waiting", approved: "waiting", completed: "succeeded",
  completed_with_warnings: "succeeded", rolled_back: "succeeded", rollback_failed: "failed",
  failed: "failed", blocked: "failed", cancelled: "cancelled", skipped: "skipped",
  queued: "queued", uploaded: "queued", ready: "waiting", done: "succeeded",
};
const sign = (name) => SIGNS[name] ?? "running";
const STAGES = {
  Check: ["reads the bundle, and what would come of each row",
    ["uploaded", "validating", "dry_running"]],
  Review: ["waits for an administrator", ["awaiting_review", "approved"]],
  Import: ["writes what is selected, and verifies it", ["importing", "verifying"]],
};
let shown = null;

/** The state of one of the three stages of the page. */
function stateOf(number) {
  const here = Object.values(STAGES).findIndex(([, names]) => names.includes(shown.status));
  if (here === number) return sign(shown.status);
  if (here >= 0) return number < here ? "succeeded" : null;
  const reached = shown.startedAt ? 2 : shown.approvedAt || shown.workspaces.length ? 1 : 0;
  if (number < reached) return "succeeded";
  const verdict = shown.status.startsWith("roll") ? "succeeded" : sign(shown.status);
  return number === reached ? verdict : null;
}

const stage = ([label, [does]], number) => {
  const state = stateOf(number);
  return element("li", { "data-status": state },
    state && icon(state), element("b", {}, label), element("span", { class: "quiet" }, does));
};

const numbers = (counts) => Object.entries(counts)
  .map(([kind, count]) => `${plain(kind)}: ${count.toLocaleString()}`).join(", ");

function workspace(entry) {
  const { progress } = entry;
  const bar = progress && progress.done < progress.total && element("progress",
    { max: progress.total, value: progress.done, "aria-label": plain(progress.stage) });
  return section(element("span", { class: "name" }, entry.sourceName),
    element("p", {}, tagOf(entry.selected ? entry.stage : "skipped"), bar),
    pairs({
      counts: numbers(entry.counts),
      "goes to": entry.targetWorkspaceId ? mono(entry.targetWorkspaceId)
        : shown.status === "awaiting_review" && "a workspace of its own",
      visible: plain(entry.lifecycleState),
      verified: entry.verification.outcome && plain(entry.verification.outcome),
      "rolled back": entry.rollbackState !== "none" && plain(entry.rollbackState),
      attempt: entry.attempt > 1 && String(entry.attempt),
    }),
    entry.lastError && element("p", { class: "problem" }, entry.lastError),
    notes("Errors", entry.errors), notes("Warnings", entry.warnings), controls(entry));
}

/** What can be decided about one workspace. */
function controls(entry) {
  const own = `${path}/workspaces/${entry.id}`;
  const change = (label, ask) => button(label, own, ask, "PATCH");
  const review = shown.status === "awaiting_review";
  const failed = RETRIABLE.includes(shown.status) && entry.stage === "failed"
    && entry.rollbackState === "none" && entry.attempt < MOST_ATTEMPTS;
  const all = present(
    review && entry.selected && change("Leave out", () => ({ selected: false })),
    review && !entry.selected && change("Select", () => ({ selected: true })),
    review && change("Import into …", target),
    review && entry.targetWorkspaceId
      && change("Import into one of its own", () => ({ targetWorkspaceId: null })),
    failed && button("Retry", `${own}/retry`, () => ({})));
  return all.length > 0 && element("p", { class: "actions" }, ...all);
}

function tagOf(name) {
  const made = tag(sign(name));
  made.replaceChildren(icon(sign(name)), plain(name));
  return made;
}

const notes = (title, all) => all.length > 0 && element("details", {},
  element("summary", {}, `${title} (${all.length})`),
  element("ul", {}, ...all.map((one) => element("li", {}, one))));

function say(text) {
  at("said").hidden = !text;
  at("said").textContent = text;
}

/** A decision; `ask` gives the body of the request, or null when somebody thought better of it. */
function button(label, where, ask, method) {
  return element("button", { type: "button", onclick: async (event) => {
    const body = ask();
    if (body === null) return;
    event.target.disabled = true;
    try {
      await act(where, body, method);
      say("");
      again();
    } catch (error) {
      if (!(error instanceof Refused)) throw error;
      say(error.message);
      event.target.disabled = false;
    }
  } }, label);
}

function reason(force) {
  const given = window.prompt("Why is it rolled back?");
  return given ? { reason: given, force } : null;
}

function target() {
  const given = window.prompt("The id of the workspace that it is to be imported into:");
  return given ? { targetWorkspaceId: given.trim() } : null;
}

/** Why what is selected cannot be approved as it is; null when it can. */
function obstacle({ workspaces }) {
  const chosen = workspaces.filter((one) => one.selected);
  const blocked = chosen.filter((one) => one.stage === "blocked").map((one) => one.sourceName);
  if (blocked.length) return `Before it can be approved, leave out what is blocked: ${blocked.join(", ")}.`;
  if (!chosen.length) return "Before it can be approved, select a workspace.";
  return chosen.every((one) => one.stage === "ready") ? null
    : "Before it can be approved, check again: a workspace has not been checked.";
}

function buttons() {
  const { status, workspaces } = shown;
  const review = status === "awaiting_review";
  const hindered = review && obstacle(shown);
  const partial = workspaces.some((one) => one.rollbackState === "partial");
  const holds = workspaces.some((one) => ["hidden", "live"].includes(one.lifecycleState));
  return present(
    review && !hindered && button("Approve", `${path}/approve`, () => ({})),
    review && workspaces.some((one) => one.selected)
      && button("Check again", `${path}/dry-run`, () => ({})),
    status === "approved" && button("Start", `${path}/start`, () => ({})),
    CANCELLABLE.includes(status) && button("Cancel", `${path}/cancel`, () => ({})),
    RELEASABLE.includes(status) && workspaces.some(isFinished)
      && button("Release", `${path}/release`, () => ({})),
    AT_REST.includes(status) && holds && !partial
      && button("Roll back", `${path}/rollback`, () => reason(false)),
    AT_REST.includes(status) && partial
      && button("Roll back by force", `${path}/rollback`, () => reason(true)),
    hindered && element("span", { class: "quiet" }, hindered));
}

function show() {
  const { status } = shown;
  showHead("Legacy import", { ...shown, status: sign(status), word: plain(status),
    error: shown.errors[0] }, { uiUrl: shown.temporalUrl }, { mode: plain(shown.mode) });
  at("stages").replaceChildren(...Object.entries(STAGES).map(stage));
  const counts = Object.entries(shown.startedAt ? shown.targetCounts : shown.sourceCounts);
  at("counts").replaceChildren(...counts.map(([name, count]) => element("div", {},
    element("dd", {}, count.toLocaleString()), element("dt", {}, plain(name)))));
}

/** Each part with what it shows; one that shows the same stays: somebody may be pressing on it. */
function redraw(place, parts) {
  parts.forEach(([said, make], number) => {
    const there = place.children[number];
    if (there?.said === said) return;
    const made = make();
    made.said = said;
    const open = there ? [...there.querySelectorAll("details")].map((one) => one.open) : [];
    if (there) there.replaceWith(made);
    else place.append(made);
    made.querySelectorAll("details").forEach((one, index) => { one.open = open[index] ?? false; });
  });
  while (place.children.length > parts.length) place.lastChild.remove();
}

function showAll() {
  show();
  const { workspaces, ...run } = shown;
  const now = JSON.stringify([run.status, workspaces.map((one) => (
    [one.stage, one.selected, one.lifecycleState, one.rollbackState]))]);
  if (at("buttons").dataset.for !== now) {
    at("buttons").dataset.for = now;
    at("buttons").replaceChildren(...buttons());
  }
  redraw(at("details"), [
    ["Workspaces", () => element("h2", {}, "Workspaces")],
    ...workspaces.map((one) => [JSON.stringify([run.status, one]), () => workspace(one)]),
    [JSON.stringify(run), aboutRun],
  ]);
}

const aboutRun = () => section("The run", pairs({
  "run id": mono(runId),
  workflow: mono(shown.temporalWorkflowId),
  bundle: mono(shown.bundleObjectKey),
  checksum: mono(shown.bundleChecksum.slice(0, 16)),
  "snapshot of": shown.sourceSnapshotTimestamp,
  "made by": shown.converterVersion ?? shown.sourceVersion,
  approved: shown.approvedAt && moment(shown.approvedAt),
  note: shown.approvalNote,
  cancelled: shown.cancellationReason,
  "rolled back": shown.rollbackReason,
  "can be rolled back until": shown.rollbackUntil && moment(shown.rollbackUntil),
}), notes("Errors", shown.errors), notes("Warnings", shown.warnings));

const take = (found) => {
  shown = { ...found, temporalUrl: found.temporalUrl ?? shown?.temporalUrl };
  showAll();
};
const again = followed(path, {
  take, heard: take, tick: show, isOpen: () => !AT_REST.includes(shown.status),
});

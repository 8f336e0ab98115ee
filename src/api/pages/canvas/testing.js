// Tests of a draft: a run of all of it, up to a node, of one node, or from a node on.

import { act, overview, Refused, watch } from "/pages/client.js";
import { nodesOf } from "./graph.js";

const OPEN = ["queued", "running", "waiting"];
const PAUSES = [500, 1000, 2000, 5000];
/** Kinds whose effects leave the workspace: recorded outputs stand for them. */
export const OUTSIDE = new Set(["http_request", "send_email", "send_webhook", "action", "call_automation"]);

export const CALLS = {
  simulate: ["Simulate", "Nothing is sent or written. HTTP requests answer with status 200 and an empty body, unless the node has a fixed output."],
  recorded: ["Use recorded outputs", "Nothing is sent or written. Calls return what they returned in the run that is shown."],
  real: ["Make real calls", "Requests, messages and records are real."],
};

/** The nodes that a test runs, or simulates: others have a fixed output, which stays. */
const unpinned = (document) => nodesOf(document).filter(({ mock }) => !mock?.enabled);

/** Outputs by which a test goes on behind its HTTP requests. */
function simulated(document) {
  const requests = unpinned(document).filter(({ kind }) => kind === "http_request");
  return Object.fromEntries(requests.map(({ id }) => [id, { status: 200, headers: {}, body: {}, simulated: true }]));
}

/** The end of approvals in a test; no one is asked unless the test waits. */
export const DECISIONS = { approved: "Approve", rejected: "Reject", timeout: "Time out", wait: "Wait for a decision" };
export const approvalsOf = (document) => unpinned(document).filter(({ kind }) => kind === "approval");

const decided = (document, decision) =>
  (decision === "wait" ? {} : Object.fromEntries(approvalsOf(document).map(({ id }) => [id, { decision }])));

/** One run beside the document. `shown` is a reactive object that gets its run, nodes and data. */
export class Testing {
  constructor(path, shown) {
    this.path = path;
    this.shown = shown;
    this.stay = new AbortController();
    /** Where outputs of the test that was started last came from, by node, and its id. */
    this.sources = new Map();
    this.testId = null;
  }

  /** The newest run of the automation, whose data the panels show; its states are not shown. */
  async latest() {
    const { runs } = await overview(`${this.path}/runs?limit=1`);
    if (runs.length > 0) await this.read(runs[0].id);
  }

  /** Earlier runs, whose payloads a test may have. */
  earlier = async () => (await overview(`${this.path}/runs?limit=20`)).runs;

  /** Show a run with its states and data, and follow it while it is open. */
  async open(runId) {
    this.stay.abort();
    const { signal } = (this.stay = new AbortController());
    const found = await overview(`/v1/runs/${encodeURIComponent(runId)}`, signal);
    this.take(found);
    await this.read(runId, signal);
    this.follow(runId, signal);
  }

  take({ run, nodes }) {
    Object.assign(this.shown, { run, isOpen: OPEN.includes(run.status), nodes: new Map(nodes.map((node) => [node.nodeId, node])) });
  }

  /** The inputs and outputs of nodes. */
  async read(runId, signal) {
    const run = await overview(`${this.path}/runs/${encodeURIComponent(runId)}`, signal);
    const data = new Map();
    for (const one of run.nodeRuns) {
      const known = data.get(one.nodeId);
      if (known && known.status === "failed") continue;
      const source = (runId === this.testId && this.sources.get(one.nodeId)) || (one.output?.simulated === true ? "Simulated" : null);
      data.set(one.nodeId, { input: one.input ?? null, output: one.output ?? null, error: one.error ?? null, status: one.status, source });
    }
    Object.assign(this.shown, { dataRunId: run.id, payload: run.triggerPayload, data });
  }

  async follow(runId, signal) {
    try {
      for (let failures = 0; this.shown.isOpen; failures += 1) {
        await watch(`/v1/runs/${encodeURIComponent(runId)}`, (name, news) => {
          failures = 0;
          if (name === "state") this.heard(news, signal);
        }, signal).catch((error) => { if (signal.aborted || !(error instanceof Refused)) throw error; });
        if (!this.shown.isOpen) break;
        await new Promise((done) => setTimeout(done, PAUSES[Math.min(failures, PAUSES.length - 1)]));
        signal.throwIfAborted();
      }
      this.take(await overview(`/v1/runs/${encodeURIComponent(runId)}`, signal));
      await this.read(runId, signal);
    } catch (error) {
      if (!signal.aborted) this.shown.problem = error.message;
    }
  }

  heard({ run, nodes }, signal) {
    const known = new Map(this.shown.nodes);
    for (const node of nodes) known.set(node.nodeId, node);
    const { id, ...before } = this.shown.run;
    Object.assign(this.shown, { run: { ...before, ...run, id }, nodes: known, isOpen: OPEN.includes(run.status) });
    clearTimeout(this.reading);
    this.reading = setTimeout(() => this.read(id, signal).catch(() => {}), 300);
  }

  /** Test the draft. `mode` is one of CALLS, `decision` a key of DECISIONS; with `stopAt` it ends after that node. */
  async test(document, { payload, mode, decision, stopAt }) {
    const recorded = mode === "recorded" ? this.recorded(document) : {};
    const mocks = { ...decided(document, decision), ...(mode === "real" ? {} : simulated(document)), ...recorded };
    const body = { payload, simulate: mode !== "real", mocks };
    if (stopAt) body.stopAtNodeId = stopAt;
    const pinned = nodesOf(document).filter(({ mock }) => mock?.enabled).map(({ id }) => [id, "Fixed output"]);
    this.sources = new Map([...pinned, ...Object.keys(recorded).map((id) => [id, "Recorded output"])]);
    await this.start("test-run", body, (id) => { this.testId = id; });
  }

  /** Run one node, or from it on, with the outputs of the run that is shown. Calls are real. */
  async from(nodeId, versionId, isAlone) {
    const body = { nodeId };
    if (versionId) body.automationVersionId = versionId;
    if (this.shown.dataRunId) body.replayOfRunId = this.shown.dataRunId;
    if (isAlone) body.nodes = [nodeId];
    await this.start("run-from-node", body);
  }

  /** Retry the failed run that is shown with the draft or the published version, from where it failed. */
  retry = (version) => this.start(`runs/${this.shown.run.id}/retry`, { from: "failed", version });

  /** Decide the approval that the run which is shown waits for. */
  decide = (nodeId, decision) => act(`${this.path}/runs/${this.shown.run.id}/nodes/${encodeURIComponent(nodeId)}/resume`, { decision });

  cancel = () => act(`${this.path}/runs/${this.shown.run.id}/cancel`, {});

  async start(path, body, begun = () => {}) {
    this.shown.problem = "";
    const run = await act(`${this.path}/${path}`, body);
    begun(run.id);
    await this.open(run.id);
  }

  recorded(document) {
    const mocks = {};
    for (const { id, kind } of unpinned(document)) {
      const output = this.shown.data.get(id)?.output;
      if (OUTSIDE.has(kind) && output) mocks[id] = output;
    }
    return mocks;
  }

  /** Show no run any more; its data stays. */
  close() {
    this.stay.abort();
    Object.assign(this.shown, { run: null, isOpen: false, nodes: new Map(), problem: "" });
  }
}

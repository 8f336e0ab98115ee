"""`workspace replay` and `workspace history` as a developer and a deploy use them."""

import asyncio
import json
import logging
import os
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from temporalio import workflow
from temporalio.api.common.v1 import WorkflowExecution
from temporalio.api.workflowservice.v1 import ResetWorkflowExecutionRequest
from temporalio.client import WorkflowExecutionStatus, WorkflowHistory
from temporalio.worker import UnsandboxedWorkflowRunner, Worker
from typer.testing import CliRunner

from cli.commands import app
from cli.replay.histories import Execution, followers, golden, read_history, recent_executions
from models.core.base import Id
from runtime.ids import new_id
from runtime.temporal.workflow_kinds import WorkflowKind
from tests.support import forked
from tests.support.engine import Engine, graph, node
from tests.support.fingerprints import ROOT
from tests.support.patience import eventually

pytestmark = pytest.mark.takes(seconds=40)

HISTORIES = ROOT / "temporal" / "histories"
DIAMOND = HISTORIES / "diamond-with-delay.json"
RETRIES = HISTORIES / "http-retries.json"

OURS = ("TEMPORAL_", "WORKSPACE_")

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Told:
    """What a command printed, and its exit code."""

    code: int
    out: str
    err: str


async def workspace(*arguments: str, keys: str = "", address: str = "127.0.0.1:1") -> Told:
    """Run the command; `keys` is what is typed."""
    environment = {
        **{k: v for k, v in os.environ.items() if not k.startswith(OURS)},
        "TEMPORAL_ADDRESS": address,
        "COLUMNS": "200",
    }
    with tempfile.TemporaryDirectory() as directory:
        given, out, err = (Path(directory) / name for name in ("given", "out", "err"))
        given.write_text(keys)
        process = forked.workspace(arguments, environment, given=given, out=out, err=err)
        code = await process.ended()
        told = Told(code, out.read_text(), err.read_text())
    assert "Traceback" not in told.err, told.err
    return told


def here(*arguments: str) -> Told:
    """The same within this process, where nothing is typed and no Temporal asked."""
    done = CliRunner(env={"TEMPORAL_ADDRESS": "127.0.0.1:1"}).invoke(app, arguments)
    return Told(done.exit_code, done.stdout, done.stderr)


def address_of(engine: Engine) -> str:
    return str(engine.client.service_client.config.target_host)


def events_of(path: Path) -> Json:
    read: Json = json.loads(path.read_text())
    return read


def changed(path: Path, change: Callable[[Json], None], tmp_path: Path) -> str:
    """A file with another history: as if the code had been different then."""
    history = events_of(path)
    for event in history["events"]:
        change(event)
    made = tmp_path / "changed.json"
    made.write_text(json.dumps(history))
    return str(made)


def first_activity(path: Path) -> str:
    """The number of the event that asks for the first activity."""
    events = events_of(path)["events"]
    found = next(event for event in events if "activityTaskScheduledEventAttributes" in event)
    return str(found["eventId"])


def other_activity(event: Json) -> None:
    for attributes in (event.get("activityTaskScheduledEventAttributes"),):
        if attributes is not None:
            attributes["activityType"]["name"] = "ring_the_bell"


def other_type(name: str) -> Callable[[Json], None]:
    def change(event: Json) -> None:
        if "workflowExecutionStartedEventAttributes" in event:
            event["workflowExecutionStartedEventAttributes"]["workflowType"]["name"] = name

    return change


def no_input(event: Json) -> None:
    event.get("workflowExecutionStartedEventAttributes", {}).pop("input", None)


# ---- one execution


def test_a_history_that_replays_says_so() -> None:
    level = logging.getLogger("temporalio").level
    told = here("replay", str(DIAMOND))
    assert logging.getLogger("temporalio").level == level
    assert told.code == 0
    assert "replays: 16 events, ended as completed." in told.out


def test_a_divergence_is_reported_with_event_step_label_and_line(tmp_path: Path) -> None:
    told = here("replay", changed(RETRIES, other_activity, tmp_path))
    assert told.code == 1
    lines = told.out.splitlines()
    assert lines[1].startswith("diverges: ")
    recorded = ["recorded", "event", f"{first_activity(RETRIES)}:", "activity", "ring_the_bell"]
    assert lines[2].split() == [*recorded, "“call”"]
    assert lines[3].split()[3:] == ["requests:", "activity", "http_request", "“call”"]
    assert "src/workflows/" in lines[4]
    assert " in " in lines[4]
    assert "workflow.patched" in told.out
    assert "TMPRL" not in told.out


def test_code_that_raises_is_distinguished(tmp_path: Path) -> None:
    told = here("replay", changed(DIAMOND, no_input, tmp_path))
    assert told.code == 1
    assert "raises: AutomationRun.run() missing 1 required positional argument" in told.out


def test_a_type_that_is_gone_fails_the_deploy(tmp_path: Path) -> None:
    told = here("replay", changed(DIAMOND, other_type("Bygone"), tmp_path))
    assert told.code == 1
    assert "Unknown workflow type: Bygone" in told.out


@pytest.mark.parametrize("text", ["", "{}", '{"events": []}', "no JSON", '{"events": [{"a": 1}]}'])
def test_a_file_without_a_history_is_no_verdict(tmp_path: Path, text: str) -> None:
    file = tmp_path / "no.json"
    file.write_text(text)
    told = here("replay", str(file))
    assert (told.code, told.out) == (2, "")
    assert "a history" in told.err


@pytest.mark.long
def test_an_absent_file_and_an_absent_temporal_are_no_verdict(tmp_path: Path) -> None:
    told = here("replay", str(tmp_path / "absent.json"))
    assert (told.code, "cannot be read" in told.err) == (2, True)
    for command in ("replay", "history"):
        told = here(command, str(new_id()), "--state-dir", str(tmp_path))
        assert (told.code, "reach Temporal at 127.0.0.1:1" in told.err) == (2, True)


async def test_an_unknown_execution_has_no_verdict(engine: Engine) -> None:
    told = await workspace("replay", str(new_id()), address=address_of(engine))
    assert told.code == 2
    assert "its history has expired" in told.err


async def test_a_run_is_replayed_by_its_id_while_open_and_after(engine: Engine) -> None:
    automation = await engine.publish(graph(node("pause", "delay", label="Rest", seconds=600)))
    run_id = await engine.start(automation.id)
    await engine.until(automation.id, run_id, lambda run: run.status == "waiting")
    told = await workspace("replay", str(run_id), address=address_of(engine))
    assert (told.code, "is still open." in told.out) == (0, True)
    await engine.cancel(automation.id, run_id)
    await closed(engine, run_id)
    name = WorkflowKind.AUTOMATION_RUN.workflow_id(run_id)
    told = await workspace("replay", name, address=address_of(engine))
    assert (told.code, "ended as " in told.out) == (0, True)


async def closed(engine: Engine, run_id: Id) -> None:
    handle = engine.client.get_workflow_handle(WorkflowKind.AUTOMATION_RUN.workflow_id(run_id))

    async def is_closed() -> bool:
        return (await handle.describe()).close_time is not None

    await eventually(is_closed, what="the end of the execution")


async def test_after_a_reset_the_execution_is_reported_and_counted_as_its_own(
    engine: Engine,
) -> None:
    automation = await engine.publish(graph(node("pause", "delay", seconds=600)))
    run_id = await engine.start(automation.id)
    await engine.until(automation.id, run_id, lambda run: run.status == "waiting")
    name = WorkflowKind.AUTOMATION_RUN.workflow_id(run_id)
    [first, *_] = await engine.completed_tasks(run_id)
    reset = await engine.client.workflow_service.reset_workflow_execution(
        ResetWorkflowExecutionRequest(
            namespace=engine.client.namespace,
            workflow_execution=WorkflowExecution(workflow_id=name),
            workflow_task_finish_event_id=first,
            request_id=str(new_id()),
            reason="Mended",
        )
    )
    told = await workspace("replay", str(run_id), address=address_of(engine))
    assert (told.code, f"({reset.run_id})" in told.out) == (0, True), told.out

    async def are_visible() -> bool:
        return (await engine.client.count_workflows(f"WorkflowId = '{name}'")).count == 2

    await eventually(are_visible, what="both executions in visibility")
    told = await workspace(
        "replay", "--since", "1h", "--type", "AutomationRun", "--limit", "40",
        address=address_of(engine),
    )  # fmt: skip
    assert (told.code, told.out.split()[-1]) == (0, "0"), told.out
    await engine.cancel(automation.id, run_id)


async def test_the_running_platform_is_found_by_its_state_directory(
    engine: Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = await engine.run(graph(node("only", "transform", output={})))
    published = {"temporalAddress": address_of(engine)}
    (tmp_path / "connection.json").write_text(json.dumps(published))
    monkeypatch.setenv("COLUMNS", "200")
    # An empty variable is none.
    told = await workspace("replay", str(run.id), "--state-dir", str(tmp_path), address="")
    assert (told.code, "replays: " in told.out) == (0, True)


def test_children_and_what_went_on_are_followed() -> None:
    text = {
        "events": [
            {
                "eventId": "1",
                "eventType": "EVENT_TYPE_CHILD_WORKFLOW_EXECUTION_STARTED",
                "childWorkflowExecutionStartedEventAttributes": {
                    "workflowExecution": {"workflowId": "run/loop", "runId": "child"}
                },
            },
            {
                "eventId": "2",
                "eventType": "EVENT_TYPE_WORKFLOW_EXECUTION_CONTINUED_AS_NEW",
                "workflowExecutionContinuedAsNewEventAttributes": {"newExecutionRunId": "next"},
            },
        ]
    }
    history = WorkflowHistory.from_json("run", text)
    assert followers(history) == [Execution("run/loop", "child"), Execution("run", "next")]


# ---- under the debugger


async def test_the_debugger_opens_where_the_workflow_begins() -> None:
    told = await workspace("replay", str(DIAMOND), "--debug", keys="p run_id\nn\nw\nc\n")
    assert told.code == 0
    prompt = told.out.index("(Pdb) ")
    assert "automation_run.py" in told.out[:prompt]
    assert "run()" in told.out[:prompt]
    run_id = events_of(DIAMOND)["events"][0]["workflowExecutionStartedEventAttributes"]
    assert run_id["workflowId"].rpartition("/")[2] in told.out[prompt:]
    assert "replays: 16 events" in told.out


async def test_the_debugger_opens_where_code_and_history_part(tmp_path: Path) -> None:
    file = changed(RETRIES, other_activity, tmp_path)
    told = await workspace("replay", file, "--debug", keys="c\np node.id\nw\nc\n")
    assert told.code == 1
    second = told.out.split("(Pdb) ")[1]
    assert f"event {first_activity(RETRIES)}: activity ring_the_bell" in second
    assert "execute_activity_method(" in second
    assert "'call'" in told.out.split("(Pdb) ")[2]


async def test_leaving_the_debugger_judges_nothing() -> None:
    told = await workspace("replay", str(DIAMOND), "--debug", keys="q\n")
    assert told.code == 1
    assert "No result" in told.err


# ---- histories to keep


async def test_a_saved_history_is_golden(engine: Engine, tmp_path: Path) -> None:
    run = await engine.run(graph(node("only", "transform", output={"text": "private"})))
    file = tmp_path / "kept.json"
    told = await workspace(
        "history", str(run.id), "--output", str(file), address=address_of(engine)
    )
    assert told.code == 0
    text = await asyncio.to_thread(file.read_text)
    assert '"identity": "recorder"' in text
    assert "private" not in text
    assert golden(read_history(file)) == text
    printed = await workspace("history", str(run.id), address=address_of(engine))
    assert printed.out == text
    nowhere = str(tmp_path / "absent" / "kept.json")
    told = await workspace("history", str(run.id), "--output", nowhere, address=address_of(engine))
    assert (told.code, "cannot be written" in told.err) == (1, True)
    assert (await workspace("replay", str(file))).code == 0


@pytest.mark.parametrize("path", sorted(HISTORIES.glob("*.json")), ids=lambda path: path.stem)
def test_the_histories_we_keep_have_this_format(path: Path) -> None:
    assert golden(read_history(path)) == path.read_text()


# ---- the gate of a deploy


@workflow.defn(name="Export")
class AnotherExport:
    """The same type as another build might have it."""

    @workflow.run
    async def run(self, job_id: str) -> str:  # noqa: ARG002  # as the real one takes it
        await workflow.sleep(timedelta(milliseconds=1))
        return "done"


@workflow.defn(name="Elsewhere")
class Elsewhere:
    """Another program's workflow in the same namespace."""

    @workflow.run
    async def run(self) -> str:
        return "done"


async def ended_elsewhere(engine: Engine, workflow_type: str, *arguments: str, name: str) -> None:
    """An execution that another build or program ran to its end, seen in visibility."""
    queue = f"another-build-{new_id()}"
    async with Worker(
        engine.client,
        task_queue=queue,
        workflows=[AnotherExport, Elsewhere],
        workflow_runner=UnsandboxedWorkflowRunner(),
    ):
        await engine.client.execute_workflow(
            workflow_type, args=arguments, id=name, task_queue=queue
        )

    async def is_visible() -> bool:
        count = await engine.client.count_workflows(
            f"TaskQueue = '{queue}' AND ExecutionStatus = 'Completed'"
        )
        return count.count == 1

    await eventually(is_visible, what="the end in visibility")


async def gate(engine: Engine, workflow_type: str) -> Told:
    """One type alone: other tests' open runs would come before what this one is about."""
    return await workspace(
        "replay", "--since", "1h", "--type", workflow_type, address=address_of(engine)
    )


def judged(told: Told) -> dict[str, list[str]]:
    """Each workflow type of the table with its numbers of replayed, failed and skipped ones."""
    lines = [line.split() for line in told.out.splitlines() if line.strip()]
    return {name: rest for name, *rest in lines if rest and all(one.isdigit() for one in rest)}


@pytest.mark.long
@pytest.mark.parametrize("parallel", ["1", "2"])
async def test_a_gate_passes_when_everything_recent_replays(engine: Engine, parallel: str) -> None:
    automation = await engine.publish(graph(node("pause", "delay", seconds=600)))
    waits = await engine.start(automation.id)
    await engine.until(automation.id, waits, lambda run: run.status == "waiting")
    for _ in range(2):
        await engine.run(graph(node("only", "transform", output={})))

    async def are_visible() -> bool:
        count = await engine.client.count_workflows("WorkflowType = 'AutomationRun'")
        return count.count >= 3

    await eventually(are_visible, what="the runs in visibility")
    told = await workspace(
        "replay", "--since", "1h", "--type", "AutomationRun", "--limit", "40",
        "--parallel", parallel, address=address_of(engine),
    )  # fmt: skip
    assert told.code == 0, told.out
    name, replayed, failed, skipped = told.out.splitlines()[-1].split()
    assert (name, failed, skipped) == ("AutomationRun", "0", "0")
    assert int(replayed) >= 3
    await engine.cancel(automation.id, waits)


@pytest.mark.long
async def test_a_gate_fails_on_what_this_code_would_not_give(engine: Engine) -> None:
    subject = str(new_id())
    name = WorkflowKind.EXPORT.workflow_id(subject)
    await ended_elsewhere(engine, "Export", subject, name=name)
    told = await gate(engine, "Export")
    assert told.code == 1
    assert name in told.out
    assert "timer" in told.out
    assert "activity advance_job" in told.out
    assert judged(told)["Export"][1:] == ["1", "0"]


async def test_a_gate_passes_over_the_workflows_of_another_program(engine: Engine) -> None:
    await ended_elsewhere(engine, "Elsewhere", name=str(new_id()))
    told = await gate(engine, "Elsewhere")
    assert (told.code, "Nothing to replay" in told.err) == (2, True)
    assert judged(told) == {"Elsewhere": ["0", "0", "1"]}


async def test_open_executions_are_judged_before_ended_ones(engine: Engine) -> None:
    automation = await engine.publish(graph(node("pause", "delay", seconds=600)))
    waits = await engine.start(automation.id)
    await engine.until(automation.id, waits, lambda run: run.status == "waiting")
    ended = await engine.run(graph(node("only", "transform", output={})))

    async def are_visible() -> bool:
        count = await engine.client.count_workflows(
            f"(WorkflowId = '{WorkflowKind.AUTOMATION_RUN.workflow_id(waits)}'"
            " AND ExecutionStatus = 'Running')"
            f" OR (WorkflowId = '{WorkflowKind.AUTOMATION_RUN.workflow_id(ended.id)}'"
            " AND ExecutionStatus = 'Completed')"
        )
        return count.count == 2

    await eventually(are_visible, what="the open and the ended run in visibility")
    first = [
        one
        async for one in recent_executions(engine.client, timedelta(hours=1), "AutomationRun", 1)
    ]
    assert [one.status for one in first] == [WorkflowExecutionStatus.RUNNING]
    await engine.cancel(automation.id, waits)


async def test_a_gate_that_found_nothing_to_replay_does_not_pass(engine: Engine) -> None:
    told = await workspace(
        "replay", "--since", "1h", "--type", "Misspelt", address=address_of(engine)
    )
    assert (told.code, "Nothing to replay" in told.err) == (2, True)


def test_an_execution_of_another_program_is_no_verdict(tmp_path: Path) -> None:
    def foreign(event: Json) -> None:
        started = event.get("workflowExecutionStartedEventAttributes")
        if started is not None:
            started["workflowType"]["name"] = "Elsewhere"
            started["taskQueue"]["name"] = "elsewhere"

    told = here("replay", changed(DIAMOND, foreign, tmp_path))
    assert (told.code, "not a workflow of this platform" in told.out) == (2, True)


@pytest.mark.parametrize(
    "arguments",
    [
        (),
        ("",),
        ("x", "--since", "1h"),
        ("--since", "soon"),
        ("--since", "24 h"),
        ("--since", "24h", "--debug"),
    ],
)
def test_a_call_that_makes_no_sense_is_refused(arguments: tuple[str, ...]) -> None:
    told = here("replay", *arguments)
    assert told.code == 2
    assert told.out == ""

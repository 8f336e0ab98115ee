"""The process of a quarantine: executes what its worker sends, until nothing comes any more."""

import asyncio
import ctypes
import os
import signal
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

from temporalio import activity
from temporalio.api.failure.v1 import Failure as EncodedFailure
from temporalio.client import Client
from temporalio.testing import ActivityEnvironment
from temporalio.worker import ActivityInboundInterceptor, ExecuteActivityInput
from typing_extensions import override

from activities.database_errors import FinalErrorInterceptor
from cli.quarantine import process
from cli.quarantine.process import Pipe, receive
from cli.shutdown import background, bound_memory
from cli.work_handlers.registry import registrations_of
from cli.worker_parts import open_parts
from models.registrations import register_models
from runtime.configuration.settings import Settings, load_settings
from runtime.database import libpq_url
from runtime.observability.logs import configure_logging
from runtime.postgresql.notifier import Notifier
from runtime.processes import exit_codes
from runtime.temporal.executions import data_converter

MEMORY = 2 * 1024**3
"""Bytes of address space, and less where a worker has less."""
IDLE_SECONDS = 120
_PR_SET_PDEATHSIG = 1

_Activities = Mapping[str, Callable[..., Any]]


def main() -> None:
    """Serve the standard streams; all printed output goes to the log of the worker."""
    # A copy, because the output of an activity would otherwise be read as a message.
    answers = Pipe(os.dup(1))
    os.dup2(2, 1)
    # Ctrl-C and the end of a container are for the worker, which then ends this process.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)
    _end_with_parent()
    settings = load_settings()
    configure_logging(settings.log_format, settings.log_level)
    # Never above the limit of the worker, which the operator chose for the machine.
    bound_memory(min(filter(None, (MEMORY, settings.worker_memory_limit))))
    asyncio.run(_serve(settings, answers))
    # Threads of a stuck activity must not keep the process.
    os._exit(0)


def _end_with_parent() -> None:
    """Have Linux kill this process with its parent; elsewhere it ends with its input."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


async def _serve(settings: Settings, answers: Pipe) -> None:
    register_models()
    notifier = Notifier(libpq_url(settings.database_url.get_secret_value()))
    async with open_parts(settings, "workspace-quarantine") as parts, background(notifier.run()):
        parts.database.notify_workers = parts.starts.on_foreign_begin = notifier.notify
        parts.database.notify_readers = notifier.notify_readers
        parts.database.notify_waiters = notifier.notify_waiters
        queues = registrations_of(parts).activities.values()
        activities = {_name(method): method for methods in queues for method in methods}
        exit_codes.listen_to_steps(lambda step: answers.write(process.Step(step)))
        answers.write(process.Ready())
        await _answer(activities, parts.client, await _standard_input(), answers)


async def _standard_input() -> asyncio.StreamReader:
    reader = asyncio.StreamReader()
    loop = asyncio.get_running_loop()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    return reader


def _name(function: Callable[..., Any]) -> str:
    definition = activity._Definition.must_from_callable(function)  # it has no other
    assert definition.name is not None, "all of ours have one"
    return definition.name


async def _answer(
    activities: _Activities, client: Client, requests: asyncio.StreamReader, answers: Pipe
) -> None:
    environment = ActivityEnvironment(client)
    executing: asyncio.Task[None] | None = None
    while True:
        idle = executing is None or executing.done()
        try:
            request = await asyncio.wait_for(receive(requests), IDLE_SECONDS if idle else None)
        except (TimeoutError, asyncio.IncompleteReadError):
            return
        if isinstance(request, process.Cancel):
            environment.cancel()
        elif isinstance(request, process.Execute):
            environment = ActivityEnvironment(client)
            environment.info = request.facts.info()
            environment.payload_converter = data_converter.payload_converter
            environment.on_heartbeat = lambda *details: answers.write(
                process.Beat(process.packed(details))
            )
            function = activities[request.facts.activity_type]
            executing = asyncio.create_task(_execute(environment, function, request, answers))


async def _execute(
    environment: ActivityEnvironment,
    function: Callable[..., Any],
    request: process.Execute,
    answers: Pipe,
) -> None:
    chain = FinalErrorInterceptor().intercept_activity(_Function())
    types, _ = process.types_of(function)
    arguments = process.unpacked(request.arguments, types)
    call = ExecuteActivityInput(function, arguments, None, {})
    with suppress(BrokenPipeError):
        try:
            answer: process.Message = process.Result(
                process.packed([await environment.run(chain.execute_activity, call)])
            )
        except asyncio.CancelledError:
            answer = process.Cancelled()
        except MemoryError:
            answer = process.OutOfMemory()
        except Exception as error:  # noqa: BLE001  # the worker raises it again
            failure = EncodedFailure()
            await data_converter.encode_failure(error, failure)
            answer = process.Failure(failure.SerializeToString().hex())
        answers.write(answer)


class _Function(ActivityInboundInterceptor):
    """The end of the chain: the activity itself."""

    def __init__(self) -> None:
        """Nothing follows."""

    @override
    async def execute_activity(self, input: ExecuteActivityInput) -> Any:
        return await input.fn(*input.args)


if __name__ == "__main__":
    main()

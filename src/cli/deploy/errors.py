"""Refusals of changes of a deployment, in words for the operator who asked for them."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import typer
from temporalio.service import RPCError, RPCStatusCode

from cli.console import complain
from cli.supervisor.errors import StartError
from runtime.settings import SettingsError


class RefusedError(Exception):
    """The change makes no sense for the deployment as it is; the message says what to do."""

    retryable = False


def unknown_build(name: str, build: str, builds: Sequence[str]) -> RefusedError:
    if not builds:
        return RefusedError(
            f"No worker has registered as a version of the deployment {name} yet. Start workers"
            " with WORKSPACE_WORKER_VERSIONS=promoted; WORKSPACE_WORKER_DEPLOYMENT names another."
        )
    return RefusedError(f"The deployment {name} has no build {build}. It has {', '.join(builds)}.")


def without_workers(build: str, queues: Sequence[str]) -> RefusedError:
    return RefusedError(
        f"No worker of build {build} works on: {', '.join(queues)}. Start its workers first, for"
        " what it is given would wait for them."
    )


def still_in_use(build: str, state: str) -> RefusedError:
    return RefusedError(
        f"Build {build} is {state}: it takes new work. Promote another one, or ramp it to 0, then"
        " drain it."
    )


def other_code(build: str, current: str) -> RefusedError:
    return RefusedError(
        f"This is the code of build {build}, but {current or 'none'} is current: only its own code"
        " can say what replays there. Ask in a checkout or container of the current build."
    )


@contextmanager
def reported_refusals() -> Iterator[None]:
    """Say why nothing was changed, and exit with code 1."""
    try:
        yield
    except (RefusedError, SettingsError, StartError, ConnectionError) as error:
        complain(str(error))
    except RPCError as error:
        changed = error.status in {RPCStatusCode.FAILED_PRECONDITION, RPCStatusCode.ABORTED}
        advice = " It may have been changed meanwhile: see `workspace deploy status`."
        complain(f"Temporal refused: {error.message}.{advice if changed else ''}")
    else:
        return
    raise typer.Exit(1) from None

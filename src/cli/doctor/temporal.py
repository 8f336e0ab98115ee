"""Checks of Temporal, its namespace, and the workers."""

from collections.abc import Sequence
from datetime import timedelta
from typing import TYPE_CHECKING

from cli.doctor.findings import Finding, warning
from runtime.settings import Settings

if TYPE_CHECKING:
    from cli.deploy.overview import BuildOverview
    from models.workspace.system.shapes import WorkerBody

_TIMEOUT = timedelta(seconds=5)


async def check_temporal(settings: Settings) -> Finding:
    """Look whether Temporal answers, and has the namespace."""
    from temporalio.api.workflowservice.v1 import DescribeNamespaceRequest, GetSystemInfoRequest
    from temporalio.service import RPCError, RPCStatusCode

    from runtime.temporal_client import TemporalUnreachableError, connect

    subject = "Temporal"
    try:
        client = await connect(settings, seconds=3)
        service = client.workflow_service
        server = await service.get_system_info(GetSystemInfoRequest(), timeout=_TIMEOUT)
        described = DescribeNamespaceRequest(namespace=client.namespace)
        await service.describe_namespace(described, timeout=_TIMEOUT)
    except TemporalUnreachableError:
        return Finding(subject, "does not answer", "check TEMPORAL_ADDRESS, and that it is up")
    except RPCError as error:
        if error.status is RPCStatusCode.NOT_FOUND:
            remedy = "run temporal/set-up-namespace.sh, or check TEMPORAL_NAMESPACE"
            return Finding(subject, f"namespace {client.namespace} not found", remedy)
        remedy = "check TEMPORAL_API_KEY and the other TEMPORAL_ variables"
        return Finding(subject, f"refuses: {error.status.name.lower()}", remedy)
    return Finding(subject, f"version {server.server_version}, namespace {client.namespace}")


async def check_search_attributes(settings: Settings) -> Finding:
    """Look whether the namespace has the search attributes."""
    from temporalio.api.operatorservice.v1 import ListSearchAttributesRequest
    from temporalio.service import RPCError

    from runtime.families import SearchAttribute
    from runtime.temporal_client import TemporalUnreachableError, connect

    subject = "Search attributes"
    try:
        client = await connect(settings, seconds=3)
        request = ListSearchAttributesRequest(namespace=client.namespace)
        answer = await client.operator_service.list_search_attributes(request, timeout=_TIMEOUT)
    except (TemporalUnreachableError, RPCError):
        return Finding(subject, "cannot be read", "reach Temporal and its namespace first")
    missing = [name.value for name in SearchAttribute if name.value not in answer.custom_attributes]
    if not missing:
        return Finding(subject, "all registered")
    return Finding(subject, f"missing: {', '.join(missing)}", "run temporal/set-up-namespace.sh")


async def check_workers(settings: Settings) -> Finding:
    """Look whether each build with work has workers: processes that poll, and are alive.

    Temporal counts a process for minutes after its death; its row in the database says when it was
    there last.
    """
    from temporalio.service import RPCError

    from cli.deploy.deployment import Deployment
    from cli.deploy.overview import overview
    from runtime.temporal_client import TemporalUnreachableError, connect

    subject = "Workers"
    processes = await _processes(settings)
    if processes is None:
        return Finding(subject, "cannot be read", "reach the database and its schema first")
    alive = {_identity(one) for one in processes if one.alive}
    try:
        client = await connect(settings, seconds=3)
        deployment = Deployment(client, settings.worker_deployment, alive)
        rows = await overview(deployment)
    except (TemporalUnreachableError, RPCError):
        return Finding(subject, "cannot be read", "reach Temporal and its namespace first")
    return judged_workers(processes, rows)


def judged_workers(processes: "Sequence[WorkerBody]", rows: "Sequence[BuildOverview]") -> Finding:
    """The finding about the processes of the last hour, and builds with their workers."""
    from cli.deploy.overview import faults

    subject = "Workers"
    facts = [
        f"{row.build or 'without version'} {row.state.value}, {row.percent:g} % of new work,"
        f" {len(row.workers)} worker{'' if len(row.workers) == 1 else 's'}"
        for row in rows
    ]
    absences = [
        f"{_identity(one)} not heard from since {one.seen_at:%H:%M:%S}Z"
        for one in processes
        if not one.alive
    ]
    fact = "; ".join([*facts, *absences]) or "none was ever there"
    if all(not one.alive for one in processes):
        return Finding(subject, fact, "start `workspace worker`")
    remedies = [sentence for row in rows for sentence in faults(row)]
    if remedies:
        return Finding(subject, fact, " ".join(remedies))
    if absences:
        return warning(subject, fact, "see why a worker ended; it is shown for an hour")
    return Finding(subject, fact)


async def _processes(settings: Settings) -> "Sequence[WorkerBody] | None":
    """The worker processes of the last hour; None where they cannot be read."""
    import psycopg
    from sqlalchemy.exc import DBAPIError

    from models.workspace.system.queries import worker_processes
    from runtime.database import Database

    database = Database(settings.database_url.get_secret_value(), pool_size=1)
    try:
        async with database.transaction() as work:
            return await worker_processes(work)
    except (psycopg.Error, DBAPIError):
        return None
    finally:
        await database.close()


def _identity(process: "WorkerBody") -> str:
    """The name by which Temporal knows the process."""
    return f"{process.pid}@{process.host}"

"""A worker deployment as Temporal knows it: builds, their shares, and an overview of its work."""

import asyncio
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import Any

from google.protobuf.timestamp_pb2 import Timestamp
from rich.table import Table
from temporalio.api.deployment.v1 import RoutingConfig, WorkerDeploymentInfo
from temporalio.api.enums.v1 import WorkerDeploymentVersionStatus
from temporalio.api.workflowservice.v1 import (
    DescribeWorkerDeploymentRequest,
    SetWorkerDeploymentCurrentVersionRequest,
    SetWorkerDeploymentRampingVersionRequest,
)
from temporalio.client import Client
from temporalio.service import RPCError, RPCStatusCode

from cli.console import say, terminal
from cli.polling import recent_pollers
from runtime.temporal.workflow_kinds import Queue

RPC_TIMEOUT = timedelta(seconds=10)

WITHOUT_VERSION = ""
"""The name of the workers without a version, where builds are named."""


class State(StrEnum):
    """The part that a build has in a deployment."""

    WAITING = "waiting"
    """It has workers and was never promoted."""
    CURRENT = "current"
    RAMPING = "ramping"
    """It takes a share of the new work."""
    DRAINING = "draining"
    """It takes no new work, and some of its own is open."""
    DRAINED = "drained"


_STATES = {
    WorkerDeploymentVersionStatus.WORKER_DEPLOYMENT_VERSION_STATUS_CURRENT: State.CURRENT,
    WorkerDeploymentVersionStatus.WORKER_DEPLOYMENT_VERSION_STATUS_RAMPING: State.RAMPING,
    WorkerDeploymentVersionStatus.WORKER_DEPLOYMENT_VERSION_STATUS_DRAINING: State.DRAINING,
    WorkerDeploymentVersionStatus.WORKER_DEPLOYMENT_VERSION_STATUS_DRAINED: State.DRAINED,
}


@dataclass(frozen=True, slots=True)
class Build:
    """One version of a deployment. Its share of new work is in percent."""

    build_id: str
    state: State
    share: float
    last_current: datetime | None
    """The end of the time for which it was current, if it was."""


@dataclass(frozen=True, slots=True)
class Routing:
    """All builds of a deployment, the newest first, and a token for a change that follows."""

    builds: Sequence[Build]
    token: bytes

    @property
    def current(self) -> str:
        """The build that is current; WITHOUT_VERSION when there is none."""
        names = [build.build_id for build in self.builds if build.state is State.CURRENT]
        return names[0] if names else WITHOUT_VERSION

    def build(self, build_id: str) -> Build | None:
        return next((build for build in self.builds if build.build_id == build_id), None)


class Deployment:
    """A deployment of this name; a change raises RPCError where Temporal refuses it."""

    def __init__(self, client: Client, name: str, alive: Collection[str] | None = None) -> None:
        """With the processes that are `alive`, others that Temporal still counts are left out."""
        self.client = client
        self._alive = alive
        self._service = client.workflow_service
        self.name = name

    async def routing(self) -> Routing:
        """The deployment as it is; without builds when no worker has registered yet."""
        request = DescribeWorkerDeploymentRequest(
            namespace=self.client.namespace, deployment_name=self.name
        )
        try:
            answer = await self._service.describe_worker_deployment(request, timeout=RPC_TIMEOUT)
        except RPCError as error:
            if error.status is not RPCStatusCode.NOT_FOUND:
                raise
            return Routing([], b"")
        return Routing(_builds(answer.worker_deployment_info), answer.conflict_token)

    async def promote(self, build_id: str, token: bytes = b"") -> None:
        """Give a build all new work, and the open work that stays with no other."""
        request = SetWorkerDeploymentCurrentVersionRequest(
            namespace=self.client.namespace,
            deployment_name=self.name,
            build_id=build_id,
            identity=self.client.identity,
            conflict_token=token,
        )
        await self._service.set_worker_deployment_current_version(request, timeout=RPC_TIMEOUT)

    async def ramp(self, build_id: str, percent: float, token: bytes) -> None:
        """Give a build a share of the new work; none ends the ramp."""
        request = SetWorkerDeploymentRampingVersionRequest(
            namespace=self.client.namespace,
            deployment_name=self.name,
            build_id=build_id if percent else WITHOUT_VERSION,
            percentage=percent,
            identity=self.client.identity,
            conflict_token=token,
        )
        await self._service.set_worker_deployment_ramping_version(request, timeout=RPC_TIMEOUT)

    async def workers(self, builds: Sequence[str]) -> Mapping[str, Mapping[Queue, frozenset[str]]]:
        """The processes that poll each queue, by build; WITHOUT_VERSION has those without one."""
        groups = {build: f"{self.name}:{build}" if build else "" for build in builds}
        pollers = {
            queue: await recent_pollers(self.client, queue, list(groups.values()))
            for queue in Queue
        }
        return {
            build: {queue: self._living(pollers[queue][group]) for queue in Queue}
            for build, group in groups.items()
        }

    def _living(self, processes: frozenset[str]) -> frozenset[str]:
        return processes if self._alive is None else processes & frozenset(self._alive)

    def open_work(self, build_id: str, *, pinned: bool) -> str:
        """A query for the open executions of a build that stay with it, or for all others."""
        behavior = "=" if pinned else "!="
        version = f"= '{self.name}:{build_id}'" if build_id else "IS NULL"
        query = (
            f"TaskQueue = '{Queue.AUTOMATION}' AND ExecutionStatus = 'Running'"
            f" AND TemporalWorkerDeploymentVersion {version}"
        )
        if build_id:
            query += f" AND TemporalWorkflowVersioningBehavior {behavior} 'Pinned'"
        return query

    async def count(self, build_id: str, *, pinned: bool) -> int:
        query = self.open_work(build_id, pinned=pinned)
        return (await self.client.count_workflows(query)).count


def _builds(info: WorkerDeploymentInfo) -> Sequence[Build]:
    newest_first = sorted(
        info.version_summaries, key=lambda one: one.create_time.ToNanoseconds(), reverse=True
    )
    return [
        Build(
            build_id=summary.deployment_version.build_id,
            state=(state := _STATES.get(summary.status, State.WAITING)),
            share=_share(info.routing_config, state),
            last_current=_time(summary.last_current_time),
        )
        for summary in newest_first
    ]


def _share(routing: RoutingConfig, state: State) -> float:
    ramping = routing.ramping_version_percentage
    return {State.CURRENT: 100 - ramping, State.RAMPING: ramping}.get(state, 0)


def _time(moment: Timestamp) -> datetime | None:
    return moment.ToDatetime(tzinfo=UTC) if moment.ToNanoseconds() else None


_NO_NAME = "(without version)"


@dataclass(frozen=True, slots=True)
class BuildOverview:
    """One build. Pinned work stays with it; following work continues with the current one."""

    build: str
    """Empty for workers that have no version."""
    state: State
    percent: float
    pinned: int
    following: int
    workers: Sequence[str]
    queues_without_workers: Sequence[Queue]


async def overview(deployment: Deployment) -> Sequence[BuildOverview]:
    """Every build, the newest first; workers without a version are last."""
    routing = await deployment.routing()
    shares = {build.build_id: (build.state, build.share) for build in routing.builds}
    ramping = sum(build.share for build in routing.builds if build.state is State.RAMPING)
    is_current = routing.current == WITHOUT_VERSION
    shares[WITHOUT_VERSION] = (State.CURRENT, 100 - ramping) if is_current else (State.DRAINING, 0)
    workers = await deployment.workers(list(shares))
    rows = await asyncio.gather(
        *(
            _overview_of_build(deployment, name, *share, workers[name])
            for name, share in shares.items()
        )
    )
    return [row for row in rows if row.build or is_current or row.following or row.workers]


async def _overview_of_build(
    deployment: Deployment,
    build_id: str,
    state: State,
    share: float,
    workers: Mapping[Queue, frozenset[str]],
) -> BuildOverview:
    pinned = await deployment.count(build_id, pinned=True) if build_id else 0
    return BuildOverview(
        build_id,
        state,
        share,
        pinned,
        await deployment.count(build_id, pinned=False),
        sorted(frozenset().union(*workers.values())),
        [queue for queue, processes in workers.items() if not processes],
    )


def overview_json(name: str, rows: Sequence[BuildOverview]) -> dict[str, Any]:
    """The overview for other programs."""
    builds = [
        {
            "queuesWithoutWorkers" if key == "queues_without_workers" else key: value
            for key, value in asdict(row).items()
        }
        for row in rows
    ]
    return {"deployment": name, "builds": builds}


def print_overview(name: str, rows: Sequence[BuildOverview]) -> None:
    """Print the overview, and what needs an operator."""
    say(terminal(), f"Deployment {name}")
    table = Table(box=None, padding=(0, 2, 0, 0))
    table.add_column("build", overflow="fold")
    table.add_column("state")
    for column in ("new work", "pinned", "following", "workers"):
        table.add_column(column, justify="right")
    for row in rows:
        figures = (f"{row.percent:g} %", str(row.pinned), str(row.following), str(len(row.workers)))
        table.add_row(row.build or _NO_NAME, row.state, *figures)
    terminal().print(table)
    for row in rows:
        for sentence in faults(row):
            say(terminal(), sentence)


def faults(row: BuildOverview) -> Sequence[str]:
    """Sentences about work that waits for missing workers."""
    name, queues = row.build or _NO_NAME, ", ".join(row.queues_without_workers)
    if not queues:
        return []
    if row.percent:
        return [f"{name} receives new work but has no workers for: {queues}."]
    if row.pinned:
        remedy = f"Start its workers, or move its work: workspace deploy drain {row.build} --move"
        return [f"{name} has open work but no workers for: {queues}. {remedy}"]
    return []

"""A worker deployment as Temporal knows it: its builds, the share of each, and changes of them."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import StrEnum

from google.protobuf.timestamp_pb2 import Timestamp
from temporalio.api.deployment.v1 import RoutingConfig, WorkerDeploymentInfo
from temporalio.api.enums.v1 import WorkerDeploymentVersionStatus
from temporalio.api.workflowservice.v1 import (
    DescribeWorkerDeploymentRequest,
    SetWorkerDeploymentCurrentVersionRequest,
    SetWorkerDeploymentRampingVersionRequest,
)
from temporalio.client import Client
from temporalio.service import RPCError, RPCStatusCode

from cli.polling import recent_pollers
from runtime.families import Queue

RPC_TIMEOUT = timedelta(seconds=10)

WITHOUT_VERSION = ""
"""Stands for the workers that have no version, where builds are named."""


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

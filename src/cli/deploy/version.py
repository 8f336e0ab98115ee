"""The version that the workers of a process register as, and its promotion when it starts."""

import asyncio
import hashlib
from dataclasses import dataclass
from functools import cache
from importlib.metadata import version as release_of
from pathlib import Path

import structlog
from temporalio.client import Client
from temporalio.common import VersioningBehavior, WorkerDeploymentVersion
from temporalio.service import RPCError
from temporalio.worker import WorkerDeploymentConfig

from cli.deploy.deployment import Deployment
from runtime.deployment_settings import DeploymentSettings, WorkerVersions

log = structlog.get_logger()

SOURCES = Path(__file__).parents[2]
DETERMINISTIC = ("workflows", "models/automation/automations/rules/planner")
"""The packages that decide which commands an execution gives: others change nothing at a replay."""

_FIRST_DELAY = 0.05
_LONGEST_DELAY = 2.0
_TRIES_IN_SILENCE = 12


@dataclass(frozen=True, slots=True)
class WorkerVersion:
    """A build of the workers, and what it is registered for."""

    deployment: str
    build: str
    use: WorkerVersions = WorkerVersions.NEWEST

    @classmethod
    def of(cls, settings: DeploymentSettings) -> "WorkerVersion":
        build = settings.worker_build or default_build()
        return cls(settings.worker_deployment, build, settings.worker_versions)

    @property
    def takes_over(self) -> bool:
        """True when it executes whatever is open and whatever comes."""
        return self.use is not WorkerVersions.PROMOTED

    @property
    def poller_group(self) -> str:
        """The name by which a task queue tells its pollers; empty for pollers without a version."""
        return "" if self.use is WorkerVersions.OFF else f"{self.deployment}:{self.build}"

    def config(self) -> WorkerDeploymentConfig:
        """The configuration of each of its workers.

        Without a name for the build, the SDK hashes the code of every module.
        """
        versioned = self.use is not WorkerVersions.OFF
        behavior = VersioningBehavior.AUTO_UPGRADE if versioned else VersioningBehavior.UNSPECIFIED
        return WorkerDeploymentConfig(
            version=WorkerDeploymentVersion(self.deployment, self.build),
            use_worker_versioning=versioned,
            default_versioning_behavior=behavior,
        )


async def promote_at_start(client: Client, version: WorkerVersion) -> None:
    """Make the version current as soon as Temporal knows its workers, where settings say so.

    A worker with some of the queues only waits for the workers of the others.
    """
    if version.use is not WorkerVersions.NEWEST:
        return
    deployment = Deployment(client, version.deployment)
    delay, tries = _FIRST_DELAY, 1
    while (refusal := await _refusal(deployment, version.build)) is not None:
        if tries == _TRIES_IN_SILENCE:
            code, reason = refusal.status.name, refusal.message
            log.warning("this build is not current yet", build=version.build, code=code, why=reason)
        await asyncio.sleep(delay)
        delay, tries = min(delay * 2, _LONGEST_DELAY), tries + 1


async def _refusal(deployment: Deployment, build: str) -> RPCError | None:
    try:
        await deployment.promote(build)
    except RPCError as error:
        return error
    return None


@cache
def default_build() -> str:
    """The release, and a hash of the code that a replay depends on: `0.0.1-1f0c9d2e7a4b`."""
    digest = hashlib.sha256()
    for package in DETERMINISTIC:
        for path in sorted((SOURCES / package).rglob("*.py")):
            digest.update(path.relative_to(SOURCES).as_posix().encode() + b"\0")
            digest.update(path.read_bytes() + b"\0")
    return f"{release_of('workspace-platform')}-{digest.hexdigest()[:12]}"

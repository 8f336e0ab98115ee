"""The settings of worker deployments: the version that workers register as, and its promotion."""

import re
from enum import StrEnum

from pydantic import field_validator
from pydantic_settings import BaseSettings

_NAME = re.compile(r"[A-Za-z0-9_-]{1,60}")
_BUILD = re.compile(r"[A-Za-z0-9_.+-]{1,60}")


class WorkerVersions(StrEnum):
    """The use of worker versions, which decides who executes work that is open at a rollout."""

    NEWEST = "newest"
    """The build that started last takes all work over, open work too."""
    PROMOTED = "promoted"
    """An operator promotes a build; long work that is open stays with its own."""
    OFF = "off"
    """Workers have no version. A deployment that has a current one gives them nothing."""


class DeploymentSettings(BaseSettings):
    worker_versions: WorkerVersions = WorkerVersions.NEWEST
    """`newest`, `promoted` or `off` (docs/operations/deployments.md)."""
    worker_deployment: str = "workspace"
    """The name of the deployment in Temporal: one for the workers of a namespace."""
    worker_build: str | None = None
    """The build id of this process's code; by default its release and a hash of its workflows."""

    @field_validator("worker_versions", mode="before")
    @classmethod
    def _is_a_use(cls, value: object) -> object:
        if value not in set(WorkerVersions):
            raise ValueError(f"must be {', '.join(WorkerVersions)}")
        return value

    @field_validator("worker_deployment")
    @classmethod
    def _is_a_name(cls, value: str) -> str:
        if not _NAME.fullmatch(value):
            raise ValueError("must be at most 60 letters, digits, hyphens and underscores")
        return value

    @field_validator("worker_build")
    @classmethod
    def _is_a_build(cls, value: str | None) -> str | None:
        if value is not None and not _BUILD.fullmatch(value):
            raise ValueError("must be at most 60 letters, digits, dots, hyphens and underscores")
        return value

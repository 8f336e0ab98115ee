"""Which workflow executes which family, where its tasks queue, and what workers register."""

from collections.abc import Mapping
from typing import Any

from temporalio.worker.workflow_sandbox import SandboxedWorkflowRunner, SandboxRestrictions

from activities.relay import Route
from runtime.families import Family, Queue
from workflows.automation_run import AutomationRun
from workflows.job import JOB_WORKFLOWS
from workflows.maintenance import Maintenance
from workflows.retention import Retention

ROUTES: Mapping[Family, Route] = {
    Family.AUTOMATION_RUN: Route("AutomationRun", Queue.AUTOMATION),
    **{family: Route(made.__name__, Queue.AUTOMATION) for family, made in JOB_WORKFLOWS.items()},
}
"""Families that start through the outbox."""

WORKFLOWS: list[type[Any]] = [AutomationRun, Maintenance, Retention, *JOB_WORKFLOWS.values()]

PURE_PACKAGES = ("activities", "models", "runtime", "workflows.node_table", "workflows.policies")
"""Passed through the sandbox: what a workflow imports of them is pure, and loading it anew for
every run costs as much as the run."""


def workflow_runner() -> SandboxedWorkflowRunner:
    """The production runner: sandboxed, with our pure packages shared."""
    return SandboxedWorkflowRunner(
        restrictions=SandboxRestrictions.default.with_passthrough_modules(
            *PURE_PACKAGES, "sqlalchemy", "sqlmodel", "psycopg", "structlog", "httpx2", "httpcore2"
        )
    )

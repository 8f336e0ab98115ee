"""How workflows are run: each in a sandbox of its own, which shares our pure packages."""

from dataclasses import dataclass

from temporalio import workflow
from temporalio.bridge.proto.workflow_activation import WorkflowActivation
from temporalio.bridge.proto.workflow_completion import WorkflowActivationCompletion
from temporalio.converter import StorageDriverStoreContext
from temporalio.worker import WorkflowInstance, WorkflowInstanceDetails
from temporalio.worker.workflow_sandbox import SandboxedWorkflowRunner, SandboxRestrictions
from typing_extensions import override

PURE_PACKAGES = (
    "activities",
    "models",
    "runtime",
    "workflows.automation_runs.node_table",
    "workflows.policies",
)
"""Passed through the sandbox: what a workflow imports of them is pure, and loading it anew for
every run costs as much as the run."""


def workflow_runner() -> SandboxedWorkflowRunner:
    """The production runner: sandboxed, with our pure packages shared."""
    return _Runner(
        restrictions=SandboxRestrictions.default.with_passthrough_modules(
            *PURE_PACKAGES, "sqlalchemy", "sqlmodel", "psycopg", "structlog", "httpx2", "httpcore2"
        )
    )


@dataclass(frozen=True)
class _Runner(SandboxedWorkflowRunner):
    @override
    def create_instance(self, det: WorkflowInstanceDetails) -> WorkflowInstance:
        return _WithoutContexts(super().create_instance(det))


class _WithoutContexts(WorkflowInstance):
    """A sandboxed workflow whose payloads are the same whatever they belong to.

    For every payload the SDK asks the sandbox several times what it belongs to, so that a codec or
    an external store may tell. We have neither, and the questions cost more than the activation.
    """

    def __init__(self, sandboxed: WorkflowInstance) -> None:
        self._sandboxed = sandboxed

    @override
    def activate(self, act: WorkflowActivation) -> WorkflowActivationCompletion:
        return self._sandboxed.activate(act)

    @override
    def get_serialization_context(self, command_info: object) -> None:
        return None

    @override
    def get_external_store_context(self, command_info: object) -> StorageDriverStoreContext:
        return StorageDriverStoreContext(target=None)

    @override
    def get_info(self) -> workflow.Info:
        return self._sandboxed.get_info()

    @override
    def get_thread_id(self) -> int | None:
        return self._sandboxed.get_thread_id()

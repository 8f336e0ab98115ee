"""The runners of workflows: unsandboxed in production, in a sandbox for replays.

The sandbox loads the module that defines a workflow again for every run, which costs a fourth of a
worker's processor time. It would find code that replays differently; tests find that before. Every
recorded history is replayed in the sandbox, and tests/workflows/test_purity.py holds that modules
of workflows have no effects and share no state (ADR 0024, 0076).
"""

from collections.abc import Collection
from dataclasses import dataclass, replace

from temporalio import workflow
from temporalio.bridge.proto.workflow_activation import WorkflowActivation
from temporalio.bridge.proto.workflow_completion import WorkflowActivationCompletion
from temporalio.common import VersioningBehavior
from temporalio.converter import StorageDriverStoreContext
from temporalio.worker import (
    UnsandboxedWorkflowRunner,
    WorkflowInstance,
    WorkflowInstanceDetails,
    WorkflowRunner,
)
from temporalio.worker.workflow_sandbox import SandboxedWorkflowRunner, SandboxRestrictions
from typing_extensions import override


def production_runner(pinned: Collection[str] = ()) -> WorkflowRunner:
    """The runner of workers, whose executions of `pinned` types stay with their version.

    All others have the behaviour that the worker says.
    """
    return _Unsandboxed(pinned)


def sandboxed_runner() -> SandboxedWorkflowRunner:
    """The runner of replays: the SDK's restrictions, with nothing passed through by name.

    A workflow names its passed modules in its own file, under `imports_passed_through`.
    """
    return _Sandboxed(restrictions=SandboxRestrictions.default)


class _Unsandboxed(UnsandboxedWorkflowRunner):
    def __init__(self, pinned: Collection[str]) -> None:
        self._pinned = pinned

    @override
    def create_instance(self, det: WorkflowInstanceDetails) -> WorkflowInstance:
        if det.info.workflow_type in self._pinned:
            # Replaced here and not in the decorator, because only a deployment with versions pins.
            defn = replace(det.defn, versioning_behavior=VersioningBehavior.PINNED)
            det = replace(det, defn=defn)
        return _WithoutContexts(super().create_instance(det))


@dataclass(frozen=True)
class _Sandboxed(SandboxedWorkflowRunner):
    @override
    def prepare_workflow(self, defn: object) -> None:
        """Nothing: each replay loads its workflow again."""


class _WithoutContexts(WorkflowInstance):
    """A workflow whose payloads do not depend on the workflow or activity that they belong to.

    For every payload the SDK asks the instance several times what it belongs to, for codecs and
    external stores. We have neither, and the questions cost more than the activation.
    """

    def __init__(self, instance: WorkflowInstance) -> None:
        self._instance = instance

    @override
    def activate(self, act: WorkflowActivation) -> WorkflowActivationCompletion:
        return self._instance.activate(act)

    @override
    def get_serialization_context(self, command_info: object) -> None:
        return None

    @override
    def get_external_store_context(self, command_info: object) -> StorageDriverStoreContext:
        return StorageDriverStoreContext(target=None)

    @override
    def get_info(self) -> workflow.Info:
        return self._instance.get_info()

    @override
    def get_thread_id(self) -> int | None:
        return self._instance.get_thread_id()

"""The runner of workflows: each runs in a sandbox of its own.

The sandbox loads the module that defines the workflow anew for every run. What that module imports
under `workflow.unsafe.imports_passed_through` is shared by all runs and not restricted, so it must
be pure, or a reference to activities that Temporal calls: tests/workflows/test_purity.py holds both
(ADR 0024).
"""

from dataclasses import dataclass

from temporalio import workflow
from temporalio.bridge.proto.workflow_activation import WorkflowActivation
from temporalio.bridge.proto.workflow_completion import WorkflowActivationCompletion
from temporalio.converter import StorageDriverStoreContext
from temporalio.worker import WorkflowInstance, WorkflowInstanceDetails
from temporalio.worker.workflow_sandbox import SandboxedWorkflowRunner, SandboxRestrictions
from typing_extensions import override


def workflow_runner() -> SandboxedWorkflowRunner:
    """The production runner: the SDK's restrictions, with nothing passed through by name.

    What a workflow passes through stands in its own file, under `imports_passed_through`.
    """
    return _Runner(restrictions=SandboxRestrictions.default)


@dataclass(frozen=True)
class _Runner(SandboxedWorkflowRunner):
    @override
    def prepare_workflow(self, defn: object) -> None:
        """Nothing: each run loads its workflow anew, and the tests replay every workflow so.

        To load each of them once more when a worker starts takes a fifth of its start.
        """

    @override
    def create_instance(self, det: WorkflowInstanceDetails) -> WorkflowInstance:
        return _WithoutContexts(super().create_instance(det))


class _WithoutContexts(WorkflowInstance):
    """A sandboxed workflow whose payloads are the same whatever they belong to.

    For every payload the SDK asks the sandbox several times what it belongs to, for codecs and
    external stores. We have neither, and the questions cost more than the activation.
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

"""Change sets on the wire (interface.md#change-set-states), and the changes of a dry run."""

from typing import Annotated

from pydantic import Field, JsonValue

from models.core.base import Id, Input, JsonObject, Label, Moment, Shape, example
from models.core.pagination import Listed
from models.workspace.changes.differences import ChangeOperation
from models.workspace.changes.rules import NAME, ChangeStatus, OperationKind, ResultStatus, Stake

MAX_OPERATIONS = 200
MIN_INSTRUCTION, MAX_INSTRUCTION = 3, 4_000

_EXAMPLE: JsonObject = {
    "title": "Add leads",
    "operations": [
        {
            "kind": "create_database",
            "ref": "leads",
            "input": {"label": "Leads", "fields": [{"label": "Company", "kind": "text"}]},
        },
        {
            "kind": "create_record",
            "input": {"databaseId": {"ref": "leads"}, "title": "The first one"},
        },
    ],
}


class Operation(Input):
    """One operation: `input` is the body of the API operation, with the ids of its path.

    `{"ref": "leads"}` in an input is the id of what the operation named `leads` creates,
    `leads.item` its item, `leads.surface` its surface, `leads.views.<key>` and `leads.fields.<key>`
    the views and fields of a database. Credentials in `auth`, headers and URLs are shown as
    `[redacted]`, and deleted when the changes are closed. References to secrets show the name.
    """

    kind: Annotated[OperationKind, Field(strict=False)]
    ref: Annotated[str, Field(pattern=NAME)] | None = None
    input: JsonObject


Operations = Annotated[list[Operation], Field(min_length=1, max_length=MAX_OPERATIONS)]


class ProposeChanges(Input):
    """Body of propose changes: a change set written by hand."""

    model_config = example(_EXAMPLE)

    title: Label | None = None
    operations: Operations


class CreateAiRun(Input):
    """Body of create AI run: either an instruction, or the operations themselves."""

    model_config = example({"instruction": "Add a database for customer feedback"})

    instruction: (
        Annotated[str, Field(min_length=MIN_INSTRUCTION, max_length=MAX_INSTRUCTION)] | None
    ) = None
    title: Label | None = None
    operations: Operations | None = None


Index = Annotated[int, Field(ge=0, lt=MAX_OPERATIONS)]


class ApplyChanges(Input):
    """Body of apply.

    Additions are always applied. Edits are applied if their index is listed, or with `approveAll`.
    Deletions and actions are applied only if their index is listed. With `dryRun` nothing is saved.
    """

    model_config = example({"approvedIndexes": [1]})

    approved_indexes: Annotated[list[Index], Field(max_length=MAX_OPERATIONS)] | None = None
    approve_all: bool = False
    dry_run: bool = False


class RejectChanges(Input):
    """Body of reject."""

    reason: Annotated[str, Field(max_length=1_000)] | None = None


class OperationResult(Shape):
    """The result of one operation; `subjectId` is the created or changed resource."""

    index: int
    kind: OperationKind
    stake: Stake
    status: ResultStatus
    needs_approval: bool
    error: str | None
    subject_id: str | None


class ChangeCount(Shape):
    """The number of changed resources of one kind."""

    kind: str
    created: int
    updated: int
    deleted: int
    restored: int


class ChangedResource(Shape):
    """A record, or a definition, before and after.

    Both sides hold the values of `changedKeys`; for a record these are the keys of its fields.
    """

    kind: str
    id: str
    operation: ChangeOperation
    item_id: Id | None = None
    changed_keys: list[str]
    before: JsonObject | None = None
    after: JsonObject | None = None


class StartedAutomation(Shape):
    """An automation with the runs that would start at once, and the changes it would debounce."""

    automation_id: Id
    label: str
    runs: int
    debounced: int


class SentMessage(Shape):
    """Messages that would be sent.

    `channel` is `notification`, or how it leaves: `mail`, `push`, `webhook`. `kind` is the kind of
    the notification, or the type of the event.
    """

    channel: str
    kind: str | None = None
    user_id: Id | None = None
    endpoint_id: Id | None = None
    count: int


class StartedWork(Shape):
    """Durable work that would be started, signalled or canceled; it makes the calls outside."""

    workflow_kind: str
    intent: str
    count: int


class DryRunChanges(Shape):
    """The changes that a request would make, in the response to `Prefer: dry-run`.

    It shows only what the caller can read. Automations would start, and messages and work
    would leave, when the request is sent without the preference.
    """

    counts: list[ChangeCount]
    resources: list[ChangedResource]
    omitted: int = Field(description="Changed resources beyond those in `resources`.")
    automations: list[StartedAutomation]
    messages: list[SentMessage]
    work: list[StartedWork]


class ProposedRequest(Shape):
    """A request that waits to be applied, with the status that its dry run had.

    Its body is shown without secrets, and applied as it was sent.
    """

    method: str
    path: str
    body: JsonValue = None
    status: int


class RequestAnswer(Shape):
    """The answer of a request that was applied."""

    status: int
    data: JsonValue = None


class ApplyResult(Shape):
    """The operations applied so far; the counts are counts of `results`.

    `response` is the answer of a proposed request.
    """

    run_id: Id
    status: ChangeStatus
    results: list[OperationResult]
    applied_count: int
    skipped_count: int
    failed_count: int
    response: RequestAnswer | None = None


class PlannedOperation(Shape):
    """One operation of a change set, and its risk."""

    index: int
    kind: OperationKind
    stake: Stake
    ref: str | None
    input: JsonObject


class ChangeSetSummary(Shape):
    """A change set in lists. `source` says who created its operations."""

    id: Id
    workspace_id: Id
    source: str
    title: str
    instruction: str | None
    status: ChangeStatus
    operation_count: int
    created_by_user_id: Id
    rejected_reason: str | None
    expires_at: Moment
    created_at: Moment
    updated_at: Moment
    completed_at: Moment | None


class ChangeSetDetail(ChangeSetSummary):
    """A change set with its operations and their results, or with its request.

    `changes` are the result of the dry run when the request was proposed.
    """

    request: ProposedRequest | None
    changes: DryRunChanges | None
    operations: list[PlannedOperation]
    results: list[OperationResult]
    applied_count: int
    skipped_count: int
    failed_count: int


class ChangeSetList(Listed):
    changes: list[ChangeSetSummary]


class AiRunList(Listed):
    runs: list[ChangeSetSummary]


class Proposal(Shape):
    """The response to `Prefer: propose`: the request waits to be applied, and changed nothing."""

    proposal: ChangeSetSummary
    changes: DryRunChanges

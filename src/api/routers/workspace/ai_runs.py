"""Drafts of a workspace, change sets planned by a model or by hand, and the model that is asked."""

from functools import partial
from uuid import UUID

from api.kernel.pipeline import call_within
from api.kernel.routing import Access, ApiRequest, Cursor, Data, Router, WholeLimit
from models.core.access.rules import Level, Scope
from models.workspace import model_settings
from models.workspace.changes import commands, queries, requests
from models.workspace.changes import shapes as change_shapes
from models.workspace.changes.rules import ChangeStatus
from models.workspace.starters import seeding
from models.workspace.starters import shapes as starter_shapes
from runtime.database import UnitOfWork
from runtime.errors import ConflictError, InProgressError

starters_router = Router(tags=["onboarding"])

WORKSPACE = "/v1/workspaces/{workspaceId}"

DRAFT_SECONDS = 55

SEED = Access(
    scopes=[Scope.DATABASES_WRITE, Scope.SURFACES_WRITE], level=Level.EDIT, idempotent=True
)


@starters_router.post("/v1/onboarding/workspace-draft", access=Access())
async def draft_workspace(
    request: ApiRequest, body: starter_shapes.DraftWorkspace
) -> Data[starter_shapes.StarterPlan]:
    """Draft a workspace from a description, without creating anything.

    If the caller has ai:write in a workspace with a model, the model writes the plan. Otherwise, or
    if the model returns no plan within a minute, rules write it.
    """
    asker = await seeding.with_model(request.work, request.principal, request.roles)
    if asker is None:
        return Data(seeding.draft_by_rules(body.description, body.locale))
    draft = seeding.ModelDraft(asker, request.new_id, body)
    await seeding.accept_draft(request.work, draft)
    poll, forget = partial(seeding.draft_outcome, draft), partial(seeding.forget_draft, draft)
    return request.deferred(poll, within=DRAFT_SECONDS, then=forget)


@starters_router.post(
    f"{WORKSPACE}/starter-draft", access=SEED, errors=[ConflictError, InProgressError]
)
async def seed_from_draft(
    request: ApiRequest, body: starter_shapes.SeedDraft
) -> Data[starter_shapes.SeededDraft]:
    """Build the plan of a draft: all of it or nothing."""
    actor, seed_id = request.actor, request.new_id
    await seeding.accept_plan(request.work, actor, seed_id, body.plan)

    async def poll(work: UnitOfWork, last: bool) -> starter_shapes.SeededDraft | None:
        return await seeding.seed_outcome(
            work, actor, seed_id, starter_shapes.SeededDraft, last=last
        )

    return request.deferred(poll, within=DRAFT_SECONDS)


@starters_router.post(
    f"{WORKSPACE}/starter-template", access=SEED, errors=[ConflictError, InProgressError]
)
async def seed_from_template(
    request: ApiRequest, body: starter_shapes.SeedTemplate
) -> Data[starter_shapes.SeededTemplate]:
    """Build a starter template: databases, records, views, pages and an automation.

    Repeating it builds it again. Its automations are published, but disabled.
    """
    actor, seed_id = request.actor, request.new_id
    await seeding.accept_template(request.work, actor, seed_id, body.template_key)

    async def poll(work: UnitOfWork, last: bool) -> starter_shapes.SeededTemplate | None:
        return await seeding.seed_outcome(
            work, actor, seed_id, starter_shapes.SeededTemplate, last=last
        )

    return request.deferred(poll, within=DRAFT_SECONDS)


@starters_router.get(f"{WORKSPACE}/starter-templates", access=Access(scopes=[Scope.WORKSPACE_READ]))
async def list_starter_templates(
    request: ApiRequest, limit: WholeLimit = 1000, cursor: Cursor = None
) -> Data[starter_shapes.StarterTemplateList]:
    """List the starter templates."""
    page = request.page("starter templates", limit, cursor).among(seeding.list_templates())
    return Data(starter_shapes.StarterTemplateList.of(page))


router = Router(tags=["ai"])

RUNS = "/v1/workspaces/{workspaceId}/ai/runs"
RUN = f"{RUNS}/{{runId}}"

WAIT_SECONDS = 55

APPLY_ERRORS = (
    ConflictError,
    InProgressError,
    requests.OutdatedProposalError,
    requests.RefusedProposalError,
)

READ = Access(scopes=[Scope.AI_READ])
WRITE = Access(scopes=[Scope.AI_WRITE], idempotent=True)


@router.post(RUNS, access=WRITE, status_code=201, errors=[InProgressError])
async def create_ai_run(
    request: ApiRequest, body: change_shapes.CreateAiRun
) -> Data[change_shapes.ChangeSetDetail]:
    """Plan changes from an instruction or from operations, without applying them.

    Uses the model of the workspace. Without a model, or if it returns no plan, rules are used.
    """
    actor, keys, run_id = request.actor, request.services.keys, request.new_id
    planned = await seeding.plan_run(request.work, actor, keys, run_id, body)
    if planned is not None:
        return Data(planned)

    async def poll(work: UnitOfWork, last: bool) -> change_shapes.ChangeSetDetail | None:
        return await seeding.plan_outcome(work, actor, run_id, last=last)

    return request.deferred(poll, within=WAIT_SECONDS)


@router.get(RUNS, access=READ, calls=queries.list_runs)
async def list_ai_runs() -> None:
    """List AI runs, newest first: your own, and all of them for owners and administrators."""


@router.get(RUN, access=READ)
async def get_ai_run(request: ApiRequest) -> Data[change_shapes.ChangeSetDetail]:
    """Get an AI run with its operations and their results."""
    return Data(await queries.get_changes(request.work, request.actor, request.ids["runId"]))


@router.post(f"{RUN}/reject", access=WRITE, errors=[ConflictError, InProgressError])
async def reject_ai_run(
    request: ApiRequest, body: change_shapes.RejectChanges
) -> Data[change_shapes.ChangeSetDetail]:
    """Reject the operations not yet applied. Applied ones are kept."""
    run_id = request.ids["runId"]
    return Data(await commands.reject(request.work, request.actor, run_id, body.reason))


@router.post(
    f"{RUN}/apply",
    access=Access(scopes=[Scope.AI_WRITE, Scope.WORKSPACE_CHANGES_APPLY], idempotent=True),
    errors=APPLY_ERRORS,
)
async def apply_ai_run(
    request: ApiRequest, body: change_shapes.ApplyChanges
) -> Data[change_shapes.ApplyResult]:
    """Apply the approved operations of a run.

    Each operation is a separate transaction with the permissions of the caller. Others are skipped,
    and can be applied later. With `dryRun` nothing is saved, and operations that would be applied
    are `pending`. After a minute, the current state is returned.
    """
    return await applied(request, request.ids["runId"], body)


async def applied(
    request: ApiRequest, change_id: UUID, body: change_shapes.ApplyChanges
) -> Data[change_shapes.ApplyResult]:
    """The answer of apply, for a run and for a change set."""
    actor = request.actor
    request.is_safe = body.dry_run
    if answer := await apply_request(request, change_id, body):
        return Data(answer)
    await commands.accept_application(request.work, actor, change_id, request.new_id, body)

    async def poll(work: UnitOfWork, last: bool) -> change_shapes.ApplyResult | None:
        return await queries.apply_outcome(work, actor, change_id, last=last)

    return request.deferred(poll, within=WAIT_SECONDS)


async def apply_request(
    request: ApiRequest, change_id: UUID, body: change_shapes.ApplyChanges
) -> change_shapes.ApplyResult | None:
    """The answer of apply for a change set of one request; None for operations to apply."""
    work, actor, keys = request.work, request.actor, request.services.keys
    proposed = await requests.find_request(work, actor, change_id)
    if proposed is None:
        return await commands.try_out(work, actor, keys, change_id, body) if body.dry_run else None
    if not body.dry_run:
        return await _sent_as_proposed(request, proposed)
    async with requests.undone(work):
        result = await _sent_as_proposed(request, proposed)
    return result.model_copy(update={"status": ChangeStatus(proposed.status)})


async def _sent_as_proposed(
    request: ApiRequest, proposed: requests.ProposalRow
) -> change_shapes.ApplyResult:
    work, original = request.work, requests.opened_request(request.services.keys, proposed)
    is_kept = not request.is_dry_run
    async with requests.as_proposed(work, request.actor, proposed, is_kept=is_kept):
        answer = await call_within(request, original)
    return await requests.close_request(work, proposed, answer.status_code, bytes(answer.body))


changes_router = Router(tags=["changes"])

CHANGES = "/v1/workspaces/{workspaceId}/changes"


@changes_router.get(
    CHANGES, access=Access(scopes=[Scope.WORKSPACE_CHANGES_READ]), calls=queries.list_changes
)
async def list_changes() -> None:
    """List change sets, newest first: your own, and all of them for owners and administrators."""


@changes_router.post(
    CHANGES,
    access=Access(scopes=[Scope.WORKSPACE_CHANGES_PROPOSE], idempotent=True),
    status_code=201,
)
async def propose_changes(
    request: ApiRequest, body: change_shapes.ProposeChanges
) -> Data[change_shapes.ChangeSetDetail]:
    """Propose changes. They can be applied within seven days."""
    return Data(
        await commands.propose(
            request.work,
            request.actor,
            request.services.keys,
            request.new_id,
            body.operations,
            title=body.title,
        )
    )


@changes_router.get(
    f"{CHANGES}/{{changeId}}",
    access=Access(scopes=[Scope.WORKSPACE_CHANGES_READ]),
    calls=queries.get_changes,
)
async def get_changes() -> None:
    """Get a change set with its operations and their results."""


@changes_router.post(
    f"{CHANGES}/{{changeId}}/apply",
    access=Access(scopes=[Scope.WORKSPACE_CHANGES_APPLY], idempotent=True),
    errors=APPLY_ERRORS,
)
async def apply_changes(
    request: ApiRequest, body: change_shapes.ApplyChanges
) -> Data[change_shapes.ApplyResult]:
    """Apply the approved operations of a change set, as for an AI run.

    A proposed request is sent as it was proposed, with the permissions of the caller. It is refused
    if what it changes, or the automations that it starts, have changed since.
    """
    return await applied(request, request.ids["changeId"], body)


model_settings_router = Router(tags=["ai"])

SETTINGS = "/v1/workspaces/{workspaceId}/ai/model-settings"


@model_settings_router.get(
    SETTINGS, access=Access(scopes=[Scope.MODELS_READ]), calls=model_settings.get_settings
)
async def get_model_settings() -> None:
    """Get the model settings, without the key of the endpoint."""


@model_settings_router.put(
    SETTINGS,
    access=Access(scopes=[Scope.MODELS_WRITE], idempotent=True),
    calls=model_settings.put_settings,
)
async def put_model_settings() -> None:
    """Set the model: an OpenAI-compatible `/chat/completions` endpoint."""

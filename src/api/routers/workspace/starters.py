"""Onboarding: draft a workspace from a description, and seed one from a draft or a template."""

from functools import partial

from api.kernel.routing import Access, ApiRequest, Cursor, Data, Router, WholeLimit
from models.core.access.rules import Level, Scope
from models.workspace.starters import commands, drafts, queries
from models.workspace.starters.shapes import (
    DraftWorkspace,
    SeedDraft,
    SeededDraft,
    SeededTemplate,
    SeedTemplate,
    StarterPlan,
    StarterTemplateList,
)
from runtime.database import UnitOfWork
from runtime.errors import ConflictError, InProgressError

router = Router(tags=["onboarding"])

WORKSPACE = "/v1/workspaces/{workspaceId}"

WAIT_SECONDS = 55

SEED = Access(
    scopes=[Scope.DATABASES_WRITE, Scope.SURFACES_WRITE], level=Level.EDIT, idempotent=True
)


@router.post("/v1/onboarding/workspace-draft", access=Access())
async def draft_workspace(request: ApiRequest, body: DraftWorkspace) -> Data[StarterPlan]:
    """Draft a workspace from a description, and create nothing.

    Where the caller holds ai:write in a workspace that has set a model, the model writes the plan.
    Rules write it elsewhere, and when the model gives none within a minute.
    """
    asker = await drafts.with_model(request.work, request.principal, request.roles)
    if asker is None:
        return Data(drafts.draft_by_rules(body.description, body.locale))
    draft = drafts.ModelDraft(asker, request.new_id, body)
    await drafts.accept_draft(request.work, draft)
    poll, forget = partial(drafts.draft_outcome, draft), partial(drafts.forget_draft, draft)
    return request.deferred(poll, within=WAIT_SECONDS, then=forget)


@router.post(f"{WORKSPACE}/starter-draft", access=SEED, errors=[ConflictError, InProgressError])
async def seed_from_draft(request: ApiRequest, body: SeedDraft) -> Data[SeededDraft]:
    """Build what a draft plans: everything, or nothing when a part of it cannot be built."""
    actor, seed_id = request.actor, request.new_id
    await commands.accept_plan(request.work, actor, seed_id, body.plan)

    async def poll(work: UnitOfWork, last: bool) -> SeededDraft | None:
        return await queries.seed_outcome(work, actor, seed_id, SeededDraft, last=last)

    return request.deferred(poll, within=WAIT_SECONDS)


@router.post(f"{WORKSPACE}/starter-template", access=SEED, errors=[ConflictError, InProgressError])
async def seed_from_template(request: ApiRequest, body: SeedTemplate) -> Data[SeededTemplate]:
    """Build a starter that is shipped: databases, records, views, pages and an automation.

    Doing it twice builds it twice. Its automations are published, and wait to be enabled.
    """
    actor, seed_id = request.actor, request.new_id
    await commands.accept_template(request.work, actor, seed_id, body.template_key)

    async def poll(work: UnitOfWork, last: bool) -> SeededTemplate | None:
        return await queries.seed_outcome(work, actor, seed_id, SeededTemplate, last=last)

    return request.deferred(poll, within=WAIT_SECONDS)


@router.get(f"{WORKSPACE}/starter-templates", access=Access(scopes=[Scope.WORKSPACE_READ]))
async def list_starter_templates(
    request: ApiRequest, limit: WholeLimit = 1000, cursor: Cursor = None
) -> Data[StarterTemplateList]:
    """List the starters the platform ships."""
    page = request.page("starter templates", limit, cursor).among(queries.list_templates())
    return Data(StarterTemplateList(templates=page.items, cursor=page.cursor))

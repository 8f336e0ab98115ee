"""Creating, changing and copying forms, submitting answers within limits, forms in a bundle.

Limits of submissions hold for all processes together (ADR 0149). A limit is kept as the moment at
which it is full again: each submission moves it on, and it may be as far ahead as a burst takes.
One that is full has no row. A refused submission writes nothing."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, NamedTuple

import sqlalchemy as sa
from pydantic import ValidationError as ShapeError
from sqlalchemy.dialects.postgresql import insert

from models.content.items.commands import check_parent, create_item_for
from models.content.items.joins import ITEM, live_items
from models.content.items.rules import ItemKind
from models.content.surfaces.commands import copy_surface, create_missing, create_surface
from models.content.surfaces.rules.contents import SurfaceKind
from models.core.access.rules import Actor, Principal, PrincipalType, Role, Scope
from models.core.base import Id, JsonObject, deferred_adapter
from models.core.bundles import USER, BundleKind, ImportTarget, Row, Stage, shape_problem
from models.core.keys import share_field_keys
from models.core.problems import located, refusal
from models.data.fields.commands import of_live_databases
from models.data.fields.queries import load_schema, require_edit
from models.data.forms import queries, shapes
from models.data.forms.rules import check_fields, default_fields, read_answers
from models.data.records.bundle import live_records
from models.data.records.commands import create_record
from models.data.records.shapes import CreateRecord, RecordDetail
from models.messages.events.rules import EventKind
from models.messages.events.store import emit
from runtime.clock import wire_timestamp
from runtime.database import UnitOfWork
from runtime.errors import ConflictError, NotFoundError, RateLimitedError
from runtime.ids import new_id

FORM = b""
"""The address of the limit of the whole form."""


class Quota(NamedTuple):
    """As many submissions at once as `burst`, and one more each `interval`; none: no limit."""

    burst: int
    interval: timedelta | None

    @classmethod
    def of(cls, a_minute: float, burst: int) -> "Quota":
        """The quota of a rate; 0 sets no limit."""
        return cls(burst, timedelta(minutes=1 / a_minute) if a_minute else None)


@dataclass(frozen=True, slots=True)
class Submitter:
    """The sender of an answer: a digest of form and address, and the limits that count."""

    address: bytes
    by_address: Quota
    by_form: Quota

    @property
    def quotas(self) -> Sequence[tuple[bytes, int, timedelta]]:
        """The limits that are set: the address of each, its burst, and the time of one more."""
        both = ((self.address, self.by_address), (FORM, self.by_form))
        return [
            (whose, burst, interval) for whose, (burst, interval) in both if interval is not None
        ]


class TooManySubmissionsError(RateLimitedError):
    """The form, or the address, has sent as many submissions as it may for now."""

    def __init__(self, burst: int, wait: timedelta, full: timedelta) -> None:
        seconds = max(1, math.ceil(wait.total_seconds()))
        unit = "second" if seconds == 1 else "seconds"
        super().__init__(f"Too many submissions. Try again in {seconds} {unit}.")
        self.headers = {  # type: ignore[misc]  # of this refusal, not of its class
            "Retry-After": str(seconds),
            "X-RateLimit-Limit": str(burst),
            "X-RateLimit-Remaining": "0",
            "X-RateLimit-Reset": str(math.ceil(full.total_seconds())),
        }


async def check_quotas(work: UnitOfWork, form_id: Id, submitter: Submitter) -> None:
    """Refuse a submission beyond a limit, before anything is written.

    Raises TooManySubmissionsError.
    """
    limits = submitter.quotas
    rows = await work.rows(
        sa.select(queries.form_quota.c.address, queries.form_quota.c.full_at).where(
            queries.form_quota.c.form_id == form_id,
            queries.form_quota.c.address.in_([whose for whose, *_ in limits]),
        )
    )
    full_at = {row.address: row.full_at for row in rows}
    for whose, burst, interval in limits:
        full = full_at.get(whose, work.now) - work.now
        wait = full + interval - burst * interval
        if wait > timedelta():
            raise TooManySubmissionsError(burst, wait, full)


async def take_quotas(
    work: UnitOfWork, workspace_id: Id, form_id: Id, submitter: Submitter
) -> None:
    """Count a submission; others of the form wait for its transaction.

    Raises TooManySubmissionsError where others took what was left.
    """
    limits = submitter.quotas
    if not limits:
        return
    statement = insert(queries.form_quota).values(
        [
            {
                "workspace_id": workspace_id,
                "form_id": form_id,
                "address": whose,
                "full_at": work.now + interval,
            }
            for whose, _, interval in limits
        ]
    )
    later = sa.func.greatest(queries.form_quota.c.full_at, work.now) + (
        statement.excluded.full_at - work.now
    )
    furthest = sa.case(
        *(
            (queries.form_quota.c.address == whose, work.now + burst * interval)
            for whose, burst, interval in limits
        )
    )
    statement = statement.on_conflict_do_update(
        index_elements=["form_id", "address"], set_={"full_at": later}, where=later <= furthest
    )
    taken = await work.rows(statement.returning(queries.form_quota.c.address))
    if len(taken) < len(limits):
        await check_quotas(work, form_id, submitter)
        _, burst, interval = limits[0]
        raise TooManySubmissionsError(burst, interval, burst * interval)


async def create_form_item(
    work: UnitOfWork, actor: Actor, body: shapes.CreateFormBody
) -> shapes.FormDetail:
    """Create a form together with its item.

    Raises what `create_form` raises, and `NotFoundError` for a parent the actor does not see.
    """
    await check_parent(work, actor, body.parent_item_id)
    form_id = new_id()
    item_id = await create_item_for(
        work, actor, ItemKind.FORM, form_id, body.label, parent_item_id=body.parent_item_id
    )
    await _insert_form(work, actor, item_id, form_id, body, "fields")
    return await queries.get_form(work, actor, form_id)


async def create_form(
    work: UnitOfWork,
    actor: Actor,
    item_id: Id,
    config: JsonObject,
    *,
    form_id: Id | None = None,
    path: str = "config",
) -> Id:
    """Create the form of an item, and its surface, from the `config` of a body; gives its id.

    Raises `ValidationError` below `path`, `NotFoundError` for the database, `DeniedError` without
    edit access to it, because a form lets others write there.
    """
    made = form_id or new_id()
    await _insert_form(work, actor, item_id, made, _read(config, path), f"{path}.fields")
    return made


async def _insert_form(
    work: UnitOfWork, actor: Actor, item_id: Id, form_id: Id, body: shapes.CreateForm, path: str
) -> None:
    await require_edit(work, actor, body.database_id, _EDIT_NEEDED)
    await share_field_keys(work, actor.workspace_id)
    schema = await load_schema(work, actor.workspace_id, body.database_id)
    form_fields = default_fields(schema.fields) if body.fields is None else body.fields
    check_fields(form_fields, schema.fields, work.now, path=path)
    await work.execute(
        sa.insert(queries.form).values(
            **body.model_dump(include=shapes.CreateForm.model_fields.keys() - {"fields"}),
            id=form_id,
            workspace_id=actor.workspace_id,
            item_id=item_id,
            fields=_stored(form_fields),
            created_by_user_id=actor.user_id,
            created_at=work.now,
            updated_at=work.now,
        )
    )
    await create_surface(work, actor, item_id, SurfaceKind.FORM)


async def update_form(
    work: UnitOfWork,
    actor: Actor,
    form_id: Id,
    body: shapes.UpdateForm,
    expected_version: int | None = None,
) -> shapes.FormDetail:
    """Change a form, or make it public or private.

    Raises `NotFoundError`, `DeniedError` without edit access to the form's database,
    `ValidationError` below `fields`, `ConflictError` for a form changed since.
    """
    await share_field_keys(work, actor.workspace_id)
    conditions = (queries.form.c.workspace_id == actor.workspace_id, queries.form.c.id == form_id)
    row = await work.one(
        sa.select(queries.form).where(*conditions).with_for_update(key_share=True),
        "form",
        of=queries.Form,
    )
    await require_edit(work, actor, row.database_id, _EDIT_NEEDED)
    values = _changes(body)
    if body.fields is not None:
        schema = await load_schema(work, actor.workspace_id, row.database_id)
        check_fields(body.fields, schema.fields, work.now)
        values["fields"] = _stored(body.fields)
    if expected_version is not None and expected_version != row.version:
        raise ConflictError(
            f"The form was changed since: its version is {row.version}. Read it again."
        )
    await work.execute(
        sa.update(queries.form)
        .where(*conditions)
        .values(**values, version=queries.form.c.version + 1, updated_at=work.now)
    )
    return await queries.get_form(work, actor, form_id)


async def copy_form(work: UnitOfWork, actor: Actor, form_id: Id, new_item_id: Id) -> Id:
    """A copy of a form, with its surface, for another item; it is not public.

    Raises `NotFoundError`.
    """
    source = await queries.get_form(work, actor, form_id)
    copy_id = new_id()
    overrides: dict[str, Any] = {
        "id": copy_id,
        "item_id": new_item_id,
        "public": False,
        "submission_count": 0,
        "version": 1,
        "created_by_user_id": actor.user_id,
        "created_at": work.now,
        "updated_at": work.now,
    }
    columns = [one.name for one in queries.form.c]
    await work.execute(
        sa.insert(queries.form).from_select(
            columns,
            sa.select(
                *(
                    sa.literal(overrides[name], queries.form.c[name].type)
                    if name in overrides
                    else queries.form.c[name]
                    for name in columns
                )
            ).where(
                queries.form.c.workspace_id == actor.workspace_id, queries.form.c.id == form_id
            ),
        )
    )
    await copy_surface(work, actor, source.surface_id, new_item_id)
    return copy_id


async def submit_form(
    work: UnitOfWork, item_id: Id | None, body: shapes.SubmitForm, submitter: Submitter
) -> shapes.SubmittedForm:
    """Create a record of the answers.

    Raises `ValidationError` at `data.<key>`, the same `NotFoundError` for a form that is not public
    and for one that takes no answers now, and `TooManySubmissionsError`.
    """
    found_form = await queries.find_public(work, item_id, writing=True)
    if not found_form.open:
        raise NotFoundError("form")
    await check_quotas(work, found_form.row.id, submitter)
    answers = read_answers(found_form.questions, body.data)
    row = found_form.row
    new_record = await create_record(
        work, _public_actor(row), row.database_id, CreateRecord(data=answers)
    )
    submission_id = new_id()
    await _emit(work, row, new_record, submission_id)
    await work.execute(
        sa.insert(queries.form_submission).values(
            id=submission_id,
            workspace_id=row.workspace_id,
            form_id=row.id,
            record_id=new_record.id,
            created_at=work.now,
        )
    )
    # Last, so that other submissions wait for the locks on these rows as briefly as possible.
    await take_quotas(work, row.workspace_id, row.id, submitter)
    result = await work.execute(
        sa.update(queries.form)
        .where(queries.form.c.workspace_id == row.workspace_id, queries.form.c.id == row.id)
        .where(queries.takes_answers(work.now))
        .values(submission_count=queries.form.c.submission_count + 1)
    )
    if result.rowcount == 0:
        raise NotFoundError("form")
    return shapes.SubmittedForm(submission_id=submission_id, confirmation=row.confirmation)


async def _emit(
    work: UnitOfWork, row: queries.PublicFormRow, new_record: RecordDetail, submission_id: Id
) -> None:
    """Emit the event for the automations that subscribe to the form."""
    submission = {
        "id": str(submission_id),
        "formId": str(row.id),
        "formItemId": str(row.item_id),
        "submittedAt": wire_timestamp(work.now),
    }
    payload = {"record": new_record.to_json(), "submission": submission}
    kind = EventKind.FORM_SUBMITTED
    await emit(work, row.workspace_id, kind, row.item_id, payload, event_id=submission_id)


def _public_actor(row: queries.PublicFormRow) -> Actor:
    """The submitter: a principal that may create records, in the name of the form's creator."""
    return Actor(
        principal=Principal(
            type=PrincipalType.SHARE_LINK, id=row.id, user_id=row.created_by_user_id
        ),
        workspace_id=row.workspace_id,
        role=Role.EDITOR,
        scopes=frozenset({Scope.RECORDS_WRITE}),
    )


_EDIT_NEEDED = "A form needs edit access to the database its responses are saved to."
_MAY_BE_ABSENT = frozenset({"title", "description", "closes_at", "max_submissions"})


def _changes(body: shapes.UpdateForm) -> dict[str, Any]:
    given = body.model_dump(exclude_unset=True, exclude={"fields"})
    return {
        name: value for name, value in given.items() if value is not None or name in _MAY_BE_ABSENT
    }


def _stored(form_fields: list[shapes.FormField]) -> list[JsonObject]:
    return [one.model_dump(mode="json", by_alias=True, exclude_none=True) for one in form_fields]


def _read(config: JsonObject, path: str) -> shapes.CreateForm:
    try:
        return shapes.CreateForm.model_validate(config)
    except ShapeError as error:
        raise refusal(list(located(error, path))) from None


async def rewrite_questions(
    work: UnitOfWork, workspace_id: Id, item_id: Id, fields: list[JsonObject]
) -> None:
    """Store the questions of a form, named by its item, in which a field has another key."""
    await work.execute(
        sa.update(queries.form)
        .where(queries.form.c.workspace_id == workspace_id, queries.form.c.item_id == item_id)
        .values(fields=fields, version=queries.form.c.version + 1, updated_at=work.now)
    )


_FILE = "forms.ndjson"
_QUESTIONS = deferred_adapter(shapes.Questions)


def _forms(workspace_id: Id) -> sa.Select[Any]:
    return of_live_databases(workspace_id, queries.form).where(
        queries.form.c.item_id.in_(live_items(workspace_id, ITEM.id))
    )


def _submissions(workspace_id: Id) -> sa.Select[Any]:
    return sa.select(queries.form_submission).where(
        queries.form_submission.c.workspace_id == workspace_id,
        queries.form_submission.c.form_id.in_(
            _forms(workspace_id).with_only_columns(queries.form.c.id)
        ),
        queries.form_submission.c.record_id.in_(live_records(workspace_id)),
    )


async def _with_surfaces(
    work: UnitOfWork, target: ImportTarget, rows: Sequence[Row]
) -> Sequence[Row]:
    """The rows; a form whose bundle has no surface for it gets an empty one."""
    item_ids = [Id(row["item_id"]) for row in rows]
    await create_missing(work, target.workspace_id, item_ids, SurfaceKind.FORM)
    return rows


FORMS = BundleKind(
    name="form",
    stage=Stage.CONTENT,
    file=_FILE,
    table=queries.form,
    rows=_forms,
    references={"item_id": "item", "database_id": "database", "created_by_user_id": USER},
    contents=("fields",),
    lists=("fields",),
    check=lambda row: shape_problem(_QUESTIONS, row["fields"], "fields"),
    store=_with_surfaces,
)

SUBMISSIONS = BundleKind(
    name="form_submission",
    stage=Stage.CONTENT,
    file=_FILE,
    table=queries.form_submission,
    rows=_submissions,
    references={"form_id": "form", "record_id": "record"},
)

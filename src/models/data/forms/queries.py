"""Forms: their tables, and reading them, for the members who edit them and for the public."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Protocol

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import JSONB
from sqlmodel import Field, SQLModel

from models.content.items.joins import ITEM, live_item_of, live_items
from models.content.items.queries import placement, placement_of
from models.content.surfaces.queries import surface_id_of
from models.core.access.rules import Actor, Scope
from models.core.base import Id, JsonObject
from models.core.purging import Retention
from models.core.references import rules as reference_rules
from models.data.fields.commands import share_schema
from models.data.fields.queries import load_schema
from models.data.fields.queries import visible as database_visible
from models.data.fields.rules.fields import Schema
from models.data.forms.rules import Question, questions, unmet
from models.data.forms.shapes import FormDetail, FormField, PublicField, PublicForm, PublicOption
from models.data.records.search import seen_titles
from models.people.workspaces import live_workspace_of
from runtime.database import UnitOfWork
from runtime.errors import NotFoundError
from runtime.postgresql.schema import Timestamp, same_workspace, table_of
from runtime.postgresql.statements import PreparedStatement

_ZERO = {"server_default": sa.text("0")}


class Form(SQLModel, table=True):
    """The target of an item of kind form; its answers become records of a database.

    `submission_count` is counted in the transaction of each submission, so that no two of them
    pass `max_submissions` together. The form acts in the name of its creator.
    """

    __tablename__ = "form"
    __table_args__ = (
        sa.UniqueConstraint("workspace_id", "id"),
        same_workspace("item_id", "item.id", ondelete="CASCADE"),
        same_workspace("database_id", "database.id", ondelete="CASCADE"),
        sa.ForeignKeyConstraint(["created_by_user_id"], ["app_user.id"]),
        sa.Index("uq_form_item_id", "item_id", unique=True),
        sa.Index("ix_form_workspace_id_database_id", "workspace_id", "database_id"),
    )

    id: Id = Field(primary_key=True)
    workspace_id: Id
    item_id: Id
    database_id: Id
    title: str | None = None
    description: str | None = None
    fields: list[dict[str, Any]] = Field(sa_type=JSONB)
    submit_label: str
    confirmation: str
    public: bool
    accepting: bool
    closes_at: datetime | None = Field(default=None, sa_type=Timestamp)
    max_submissions: int | None = None
    submission_count: int = Field(default=0, sa_column_kwargs=_ZERO)
    version: int = Field(default=1, sa_column_kwargs={"server_default": sa.text("1")})
    created_by_user_id: Id
    created_at: datetime = Field(sa_type=Timestamp)
    updated_at: datetime = Field(sa_type=Timestamp)


class FormSubmission(SQLModel, table=True):
    """One answer, and the record it became."""

    __tablename__ = "form_submission"
    __table_args__ = (
        same_workspace("form_id", "form.id", ondelete="CASCADE"),
        same_workspace("record_id", "record.id", ondelete="CASCADE"),
        sa.Index(
            "ix_form_submission_workspace_id_form_id_created_at_id",
            "workspace_id",
            "form_id",
            "created_at",
            "id",
        ),
        sa.Index("ix_form_submission_workspace_id_record_id", "workspace_id", "record_id"),
    )

    id: Id = Field(primary_key=True)
    workspace_id: Id
    form_id: Id
    record_id: Id
    created_at: datetime = Field(sa_type=Timestamp)


class FormQuota(SQLModel, table=True):
    """A limit of submissions, by form and address: the moment at which it is full again.

    The address is a digest under the secret of the platform, empty for the limit of the form.
    """

    __tablename__ = "form_quota"
    __table_args__ = (
        same_workspace("form_id", "form.id", ondelete="CASCADE"),
        sa.Index("ix_form_quota_full_at", "full_at"),
    )

    form_id: Id = Field(primary_key=True)
    address: bytes = Field(sa_type=sa.LargeBinary, primary_key=True)
    workspace_id: Id
    full_at: datetime = Field(sa_type=Timestamp)


form = table_of(Form)
form_submission = table_of(FormSubmission)
form_quota = table_of(FormQuota)

purge_quotas = Retention(form_quota, form_quota.c.full_at)
"""Limits that are full again."""


async def form_definitions(
    work: UnitOfWork, actor: Actor, sought: reference_rules.Sought
) -> Sequence[reference_rules.Definition]:
    """The forms that may name a thing."""
    if sought.kind is reference_rules.SubjectKind.MEMBER:
        condition = form.c.created_by_user_id == Id(sought.subject.id)
    elif sought.database_id is not None:
        condition = form.c.database_id == sought.database_id
    else:
        return []
    rows = await work.rows(
        live_items(actor.workspace_id, *form.c, ITEM.title.label("label"))
        .join(form, sa.and_(form.c.workspace_id == ITEM.workspace_id, form.c.item_id == ITEM.id))
        .where(condition)
        .order_by(ITEM.title, form.c.id),
        of=_LabelledForm,
    )
    return [
        reference_rules.Definition(
            kind="form",
            id=row.item_id,
            label=row.label,
            scope=Scope.RESOURCES_READ,
            item_id=row.item_id,
            document={"fields": row.fields},
            references=list(_form_references(row)),
        )
        for row in rows
    ]


class _LabelledForm(Protocol):
    """A form with the label of its item."""

    item_id: Id
    database_id: Id
    label: str
    fields: list[JsonObject]
    created_by_user_id: Id


def _form_references(row: _LabelledForm) -> Iterator[reference_rules.Reference]:
    database = str(row.database_id)
    yield from reference_rules.named_at(
        reference_rules.SubjectKind.DATABASE, database, "databaseId"
    )
    yield from reference_rules.cleared(
        reference_rules.below(reference_rules.question_references(database, row.fields), "fields")
    )
    # It acts in the name of its creator.
    yield from reference_rules.named_at(
        reference_rules.SubjectKind.MEMBER, str(row.created_by_user_id), "createdByUserId"
    )


async def databases_of_forms(
    work: UnitOfWork, workspace_id: Id, database_id: Id | None = None
) -> Mapping[str, str]:
    """The database of each form by the form's item: of all forms, or of one database."""
    statement = sa.select(form.c.item_id, form.c.database_id).where(
        form.c.workspace_id == workspace_id
    )
    if database_id is not None:
        statement = statement.where(form.c.database_id == database_id)
    return {str(row.item_id): str(row.database_id) for row in await work.rows(statement)}


visible = placement_of(form)
"""The placement of a form: `await visible(work, workspace_ids, form_id, user_id)`."""


def takes_answers(now: datetime | sa.ColumnElement[datetime]) -> sa.ColumnElement[bool]:
    """The condition that a form takes one more answer at this moment."""
    moment = sa.literal(now, Timestamp) if not isinstance(now, sa.ColumnElement) else now
    return sa.and_(
        form.c.public,
        form.c.accepting,
        sa.or_(form.c.closes_at.is_(None), form.c.closes_at > moment),
        sa.or_(form.c.max_submissions.is_(None), form.c.submission_count < form.c.max_submissions),
    )


class PublicFormRow(Protocol):
    """A public form with the title it is shown by; `open` says whether it takes answers."""

    id: Id
    workspace_id: Id
    item_id: Id
    database_id: Id
    created_by_user_id: Id
    shown_title: str
    description: str | None
    fields: list[JsonObject]
    submit_label: str | None
    confirmation: str | None
    open: bool


_PUBLIC = PreparedStatement(
    # The only query without a workspace: the public names a form by its item alone.
    sa.select(
        form,
        sa.func.coalesce(form.c.title, ITEM.title).label("shown_title"),
        sa.and_(takes_answers(sa.bindparam("now", type_=Timestamp)), ~ITEM.archived).label("open"),
    )
    .join(*live_item_of(form))
    .join(*live_workspace_of(form))
    .where(
        form.c.item_id == sa.bindparam("item_id", type_=sa.Uuid),
        form.c.public,
    ),
    PublicFormRow,
)


@dataclass(frozen=True, slots=True)
class FormAnswer:
    """An answer to a form, by the record it became."""

    record_id: Id
    title: str
    created_at: datetime


@dataclass(frozen=True, slots=True)
class FoundForm:
    """A public form with what it asks now; `open` says whether it takes an answer."""

    row: PublicFormRow
    schema: Schema
    questions: list[Question]
    open: bool


async def get_form(work: UnitOfWork, actor: Actor, form_id: Id) -> FormDetail:
    """A form as members see it. Raises `NotFoundError`."""
    row = await work.one(
        sa.select(
            form, surface_id_of(form.c.workspace_id, form.c.item_id).label("surface_id")
        ).where(form.c.workspace_id == actor.workspace_id, form.c.id == form_id),
        "form",
    )
    return FormDetail.model_validate(row)


async def find_public(work: UnitOfWork, item_id: Id | None, *, writing: bool = False) -> FoundForm:
    """The public form of an item; `writing` locks the fields of its database against changes.

    Raises the same `NotFoundError` for a form that is unknown, not public, or in the trash with its
    item, its database or its workspace.
    """
    row = None
    if item_id is not None:
        row = await _PUBLIC.first(work, {"item_id": item_id, "now": work.now})
    if row is None:
        raise NotFoundError("form")
    within, owner = [row.workspace_id], row.created_by_user_id
    if await placement(work, within, row.item_id, owner) is None:
        raise NotFoundError("form")
    if await database_visible(work, within, row.database_id, owner) is None:
        raise NotFoundError("form")
    if writing:
        await share_schema(work, row.database_id)
    schema = await load_schema(work, row.workspace_id, row.database_id)
    asked = questions(
        [FormField.model_validate(one) for one in row.fields], schema.fields, work.now
    )
    return FoundForm(row, schema, asked, row.open and not unmet(asked, schema.fields))


async def public_form(work: UnitOfWork, item_id: Id | None) -> PublicForm:
    """A form as the public sees it. Raises `NotFoundError`."""
    found_form = await find_public(work, item_id)
    return PublicForm(
        title=found_form.row.shown_title,
        description=found_form.row.description,
        fields=[_public_field(question) for question in found_form.questions],
        submit_label=found_form.row.submit_label,
        accepting=found_form.open,
    )


async def latest_answers(
    work: UnitOfWork, actor: Actor, form_id: Id, most: int
) -> list[FormAnswer]:
    """The newest answers to a form whose records the actor sees, newest first."""
    statement = (
        sa.select(form_submission)
        .where(
            form_submission.c.workspace_id == actor.workspace_id,
            form_submission.c.form_id == form_id,
        )
        .order_by(form_submission.c.created_at.desc(), form_submission.c.id.desc())
        .limit(most)
    )
    rows = await work.rows(statement, of=FormSubmission)
    titles = await seen_titles(work, actor, [row.record_id for row in rows])
    return [
        FormAnswer(row.record_id, titles[row.record_id], row.created_at)
        for row in rows
        if row.record_id in titles
    ]


def _public_field(question: Question) -> PublicField:
    spec, form_field = question.field, question.form_field
    options = {option.key: option for option in spec.options}
    return PublicField(
        key=spec.key,
        label=form_field.label or spec.label,
        kind=spec.kind,
        required=question.required,
        help=form_field.help,
        options=[
            PublicOption(key=key, name=options[key].name, color=options[key].color)
            for key in spec.option_keys
        ],
        visible_if=form_field.visible_if,
        hidden=form_field.hidden or None,
    )

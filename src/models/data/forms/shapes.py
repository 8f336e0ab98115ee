"""Forms on the wire: as their makers see them, and as the public does (interface.md#forms)."""

from typing import Annotated

from pydantic import Field

from models.core.base import Id, Input, InputId, JsonObject, Label, Moment, Shape
from models.core.openapi import documented_as
from models.core.values import InputMoment
from models.data.fields.rules.fields import FieldKind

MAX_QUESTIONS = 200
MAX_SUBMISSIONS = 1_000_000_000

Text = Annotated[str, Field(max_length=4_000)]
MaxSubmissions = Annotated[int, Field(ge=1, le=MAX_SUBMISSIONS)]


class FormField(Input):
    """One question: a field of the database, as the form asks for it.

    `visibleIf` is a filter over the answers to questions before this one. A `hidden` question is
    not shown: the address of the form answers it, as in `?source=newsletter` for the key `source`.
    """

    key: Annotated[str, Field(min_length=1, max_length=63)]
    required: bool = False
    label: Label | None = None
    help: Text | None = None
    visible_if: Annotated[JsonObject, documented_as("Filter")] | None = None
    hidden: bool | None = None


Questions = Annotated[list[FormField], Field(max_length=MAX_QUESTIONS)]


class CreateForm(Input):
    """The content of a new form; without `fields` it includes all fields that a form can ask for.

    Without `title` the item's is shown.
    """

    database_id: InputId
    title: Label | None = None
    description: Text | None = None
    fields: Questions | None = None
    submit_label: Label = "Submit"
    confirmation: Text = "Thank you. Your answer has been recorded."
    accepting: bool = True
    closes_at: InputMoment | None = None
    max_submissions: MaxSubmissions | None = None
    public: bool = False


class CreateFormBody(CreateForm):
    """Body of create form: a form, and the label and place of its item."""

    label: Label
    parent_item_id: InputId | None = None


class UpdateForm(Input):
    """Body of update form: given keys are replaced; null clears optional ones."""

    title: Label | None = None
    description: Text | None = None
    fields: Questions | None = None
    submit_label: Label | None = None
    confirmation: Text | None = None
    accepting: bool | None = None
    closes_at: InputMoment | None = None
    max_submissions: MaxSubmissions | None = None
    public: bool | None = None


class FormFieldShape(Shape):
    key: str
    required: bool
    label: str | None = None
    help: str | None = None
    visible_if: Annotated[JsonObject, documented_as("Filter")] | None = None
    hidden: bool | None = None


class FormDetail(Shape):
    """A form as its editors see it; `public` lets anyone respond who knows the item's id.

    `surfaceId` holds notes of its editors; the public does not see it.
    """

    id: Id
    workspace_id: Id
    item_id: Id
    surface_id: Id
    database_id: Id
    title: str | None
    description: str | None
    fields: list[FormFieldShape]
    submit_label: str
    confirmation: str
    public: bool
    accepting: bool
    closes_at: Moment | None
    max_submissions: int | None
    submission_count: int
    version: int
    created_at: Moment
    updated_at: Moment


class PublicOption(Shape):
    """An option as people without an account see it."""

    key: str
    name: str
    color: str


class PublicField(Shape):
    """One question as the public sees it."""

    key: str
    label: str
    kind: FieldKind
    required: bool
    help: str | None
    options: list[PublicOption]
    visible_if: Annotated[JsonObject, documented_as("Filter")] | None
    hidden: bool | None
    """True for a question that the address of the form answers."""


class PublicForm(Shape):
    """A form as the public sees it; `accepting` says whether it accepts responses now."""

    title: str
    description: str | None
    fields: list[PublicField]
    submit_label: str
    accepting: bool


class SubmitForm(Input):
    """Body of submit form: answers by key, without those to questions that are not asked."""

    data: JsonObject


class SubmittedForm(Shape):
    submission_id: Id
    confirmation: str

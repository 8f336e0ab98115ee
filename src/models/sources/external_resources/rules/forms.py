"""The questions of a provider's form, in the terms of our databases."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from models.core.base import JsonObject
from models.data.fields.rules.kinds import FieldKind


@dataclass(frozen=True, slots=True)
class FormQuestion:
    """One question. `kind` is the kind of the field which keeps its answers; None when none can.

    `options` are the names to choose from, of a select; `settings` belong to the field.
    """

    label: str
    kind: FieldKind | None
    required: bool = False
    help: str | None = None
    options: Sequence[str] = ()
    settings: JsonObject = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class HostedForm:
    """A form as its provider describes it; `questions` in their order."""

    title: str
    questions: Sequence[FormQuestion]
    description: str | None = None


class NoFormError(ValueError):
    """A document that describes no form."""

    retryable = False

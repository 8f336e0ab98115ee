"""The impact of a change on the wire: what is asked, and the places that name a thing."""

from enum import StrEnum
from typing import Annotated, Self

from pydantic import Field, model_validator

from models.core.base import EXAMPLE_ID, Id, Input, InputId, Shape, example
from models.core.references.rules import Access, SubjectKind

MAX_PLACES = 500
"""Places of one answer."""


class Change(StrEnum):
    """The change whose impact is asked for."""

    DELETE = "delete"
    RENAME = "rename"
    CONVERT = "convert"


_BY_KEY = frozenset({SubjectKind.FIELD, SubjectKind.OPTION, SubjectKind.SECRET})


class ImpactQuestion(Input):
    """Body of get impact: a thing, and the change that is planned.

    `id` is that of the thing; of an option it is the id of its field, of a form that of its item.
    `key` is the key of the option, or the name of the secret. `rename` is a change of the key of a
    field or an option, or of the name of a secret; `convert` is for fields.
    """

    model_config = example({"kind": "field", "id": EXAMPLE_ID, "change": "delete"})

    kind: Annotated[SubjectKind, Field(strict=False)]
    id: InputId | None = None
    key: Annotated[str, Field(min_length=1, max_length=63)] | None = None
    change: Annotated[Change, Field(strict=False)] = Change.DELETE

    @model_validator(mode="after")
    def _names_a_thing(self) -> Self:
        named = self.kind in (SubjectKind.SECRET, SubjectKind.OPTION)
        if (self.key is not None) is not named:
            raise ValueError("takes key for an option or a secret, and only there")
        if (self.id is None) is not (self.kind is SubjectKind.SECRET):
            raise ValueError("takes id for everything but a secret")
        if self.change is Change.RENAME and self.kind not in _BY_KEY:
            raise ValueError("can be renamed without any impact: it is named by its id")
        if self.change is Change.CONVERT and self.kind is not SubjectKind.FIELD:
            raise ValueError("cannot be converted: only fields can")
        return self


class ImpactPlace(Shape):
    """A place that names the thing.

    `kind` and `id` name the definition: an automation, a view, a field, a form by its item.
    `path` leads to the place in it; `nodeId`, `version` and `state` say where in an automation. An
    `automation_run` means the `runs` open runs of that version. With `breaks` the place fails after
    the change; otherwise the platform changes it, too, or it keeps working.
    """

    kind: str
    id: Id
    label: str
    path: str
    access: Access
    breaks: bool
    node_id: str | None = None
    version: int | None = None
    state: str | None = None
    runs: int | None = None
    item_id: Id | None = None
    database_id: Id | None = None


class ImpactAnswer(Shape):
    """The places that name a thing, the breaking ones first, at most 500.

    `total` counts all places, `breaking` the ones that break. Places that the caller may not see
    are in `total` and counted by `hidden`, and are not listed.
    """

    kind: SubjectKind
    label: str
    change: Change
    places: list[ImpactPlace]
    total: int
    breaking: int
    hidden: int

    @property
    def is_listed_in_part(self) -> bool:
        """True when there are more places to show than are listed."""
        return self.total - self.hidden > len(self.places)

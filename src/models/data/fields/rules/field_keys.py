"""Answers to a key that names no field: the keys there are, the nearest first."""

from collections.abc import Callable, Mapping

from models.core.nearest import known
from models.core.problems import an
from models.data.fields.rules.fields import FieldSpec

Fields = Mapping[str, FieldSpec]
_MOST_TOLD = 20
_IS_NO_FIELD = "is not the key of a field of this database"
_IS_NO_RELATION = "is not the key of a relation field of this database"


def no_field(key: object, fields: Fields, of: str = "this database") -> str:
    """That a key is not the key of a field, and the keys that are; a label leads to its key."""
    return f"is not the key of a field of {of}; {_known(key, fields)}"


def no_relation(key: object, fields: Fields) -> str:
    """The same where only relation fields are meant."""
    spec = fields.get(key) if isinstance(key, str) else None
    if spec is not None and spec.stored:
        return f"is {an(spec.kind)} field: set it as data.{spec.key}"
    relations = {name: one for name, one in fields.items() if one.relation}
    return f"{_IS_NO_RELATION}; {_known(key, relations)}"


class FieldHints:
    """The same for an input that may name many keys: the first few are answered at length.

    To look for the nearest keys takes time, and a refusal shows only its first problems.
    """

    def __init__(self, fields: Fields) -> None:
        self._fields = fields
        self._told: dict[tuple[str, str], str] = {}

    def no_field(self, key: str) -> str:
        """The answer of `no_field`, or only its first part."""
        return self._said(no_field, key) or _IS_NO_FIELD

    def no_relation(self, key: str) -> str:
        """The answer of `no_relation`, or only its first part."""
        return self._said(no_relation, key) or _IS_NO_RELATION

    def _said(self, tell: Callable[[object, Fields], str], key: str) -> str | None:
        asked = tell.__name__, key
        if asked not in self._told and len(self._told) < _MOST_TOLD:
            self._told[asked] = tell(key, self._fields)
        return self._told.get(asked)


def _known(key: object, fields: Fields) -> str:
    return known(key, fields, {one.key: one.label for one in fields.values()})

"""Converting a whole field to another kind: its values, its default and its options."""

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from models.core.base import JsonObject
from models.core.values import InvalidValueError
from models.data.fields.rules.defaults import default_text, default_value
from models.data.fields.rules.fields import FieldSpec, Option
from models.data.fields.rules.kinds import FieldKind
from models.data.fields.rules.options import MakeId, OptionGrowth
from models.data.fields.rules.value_conversion import LOST, convert_value, option_names

_GROWING = frozenset({FieldKind.SELECT, FieldKind.MULTI_SELECT})


class Converter:
    """Converts the values of one field; `to_spec` is the field after the conversion.

    Where the new field may get options, each value adds those it names.
    """

    def __init__(
        self, from_spec: FieldSpec, to_spec: FieldSpec, make_id: MakeId, *, grows: bool
    ) -> None:
        self._from = from_spec
        self._growth = OptionGrowth(to_spec.options, make_id)
        self._grows = grows and to_spec.kind in _GROWING
        self.to_spec = to_spec

    def convert(self, values: Iterable[Any]) -> list[Any]:
        """The stored forms of these values, None for each lost value."""
        inputs = list(values)
        if self._grows:
            for value in inputs:
                for name in option_names(self._from, self.to_spec, value):
                    self._growth.add(name)
            self.to_spec = replace(self.to_spec, options=tuple(self._growth.options))
        results = (convert_value(self._from, self.to_spec, value) for value in inputs)
        return [None if value is LOST else value for value in results]

    def with_default(self) -> FieldSpec:
        """The field after the conversion, with the old default converted."""
        before = default_value(self._from)
        after = LOST if before is None else convert_value(self._from, self.to_spec, before)
        try:
            kept = None if after is LOST else default_text(self.to_spec, after)
        except InvalidValueError:
            kept = None
        return replace(self.to_spec, default=kept)


def described(spec: FieldSpec) -> JsonObject:
    """The parts of a field that its conversion stores in the job."""
    return {
        "kind": spec.kind.value,
        "settings": spec.settings,
        "options": [option.wire() for option in spec.options],
    }


def with_described(spec: FieldSpec, description: JsonObject) -> FieldSpec:
    """A field with the kind, settings and options that a job stored."""
    return replace(
        spec,
        kind=FieldKind(description["kind"]),
        settings=description["settings"],
        options=tuple(Option(**option) for option in description["options"]),
        default=None,
        index_id=None,
        index_ready=False,
    )


def is_unchanged(spec: FieldSpec, description: JsonObject) -> bool:
    """True when a field is as the job stored it, apart from added options."""
    now = described(spec)
    ids = {option["id"] for option in description["options"]}
    options = [option for option in now["options"] if option["id"] in ids]
    return {**now, "options": options} == description

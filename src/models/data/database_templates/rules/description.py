"""The form of a template: plain data, shaped as the bodies that create its parts."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from models.core.base import Id
from runtime.derived_ids import derived_id

Body = Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Template:
    """One shipped database; its fields, views and record templates are bodies of requests."""

    key: str
    label: str
    description: str
    icon: str
    category: str
    fields: Sequence[Body]
    views: Sequence[Body]
    record_templates: Sequence[Body] = field(default=())

    @property
    def id(self) -> Id:
        """The id, the same in every installation."""
        return derived_id("database-template", self.key)


def select(label: str, *names: str, **extra: object) -> Body:
    """A field with these choices."""
    return {"label": label, "kind": "select", "options": _options(names), **extra}


def tags(label: str, *names: str) -> Body:
    """A field with any number of choices, which grows with its use."""
    return {
        "label": label,
        "kind": "multi_select",
        "options": _options(names),
        "settings": {"allowCreate": True},
    }


def status(label: str, *, todo: Sequence[str], doing: Sequence[str], done: Sequence[str]) -> Body:
    """A status field; a key is the name in lower case with `_` between words."""
    groups = {"todo": todo, "in_progress": doing, "done": done}
    return {
        "label": label,
        "kind": "status",
        "options": [
            {"name": name, "key": _key(name), "color": _GROUP_COLORS[group]}
            for group, names in groups.items()
            for name in names
        ],
        "settings": {
            "groups": {group: [_key(name) for name in names] for group, names in groups.items()}
        },
        "defaultValue": _key(todo[0]),
    }


_GROUP_COLORS = {"todo": "gray", "in_progress": "blue", "done": "green"}
_COLORS = ("blue", "green", "orange", "purple", "red", "teal", "yellow", "pink", "brown", "gray")


def _options(names: Sequence[str]) -> list[Body]:
    return [
        {"name": name, "key": _key(name), "color": _COLORS[place % len(_COLORS)]}
        for place, name in enumerate(names)
    ]


def _key(name: str) -> str:
    return name.lower().replace("-", "_").replace(" ", "_")

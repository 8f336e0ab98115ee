"""Scopes as a person chooses them: by area and noun, and in sets that are asked for most."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from models.core.access.rules import Scope


class Preset(StrEnum):
    """Sets of scopes to begin with."""

    NONE = "none"
    READ = "read"
    RUN = "run"
    ALL = "all"


PRESETS: Mapping[Preset, str] = {
    Preset.NONE: "None",
    Preset.READ: "Read everything",
    Preset.RUN: "Run automations",
    Preset.ALL: "All that I have",
}

_RUN = frozenset(
    {
        Scope.WORKSPACE_READ,
        Scope.RESOURCES_READ,
        Scope.AUTOMATIONS_READ,
        Scope.ACTIONS_READ,
        Scope.ACTIONS_RUN,
    }
)

_AREAS: Mapping[str, Sequence[str]] = {
    "Workspace": ("workspace", "members", "workspace_changes", "billing"),
    "Content": ("resources", "surfaces", "blocks", "canvas", "files"),
    "Data": ("databases", "records", "views", "time_entries", "data_sources"),
    "Automation": ("automations", "actions", "models", "ai"),
    "Access and delivery": ("api_keys", "integrations", "webhooks"),
}


@dataclass(frozen=True, slots=True)
class Noun:
    """One noun with the scopes about it."""

    label: str
    scopes: Sequence[Scope]


def areas() -> Sequence[tuple[str, Sequence[Noun]]]:
    """Every scope, by the noun it is about, and the area of that."""
    return [
        (
            title,
            [
                Noun(
                    label=name.replace("_", " "),
                    scopes=[scope for scope in Scope if scope.partition(":")[0] == name],
                )
                for name in names
            ],
        )
        for title, names in _AREAS.items()
    ]


def preset_scopes(preset: Preset, own: frozenset[Scope]) -> frozenset[Scope]:
    """The scopes of a set that a person has."""
    match preset:
        case Preset.NONE:
            return frozenset()
        case Preset.READ:
            return frozenset(scope for scope in own if scope.endswith(":read"))
        case Preset.RUN:
            return own & _RUN
        case Preset.ALL:
            return own

"""The sections of the settings, as the side list shows them."""

from collections.abc import Sequence
from dataclasses import dataclass

from models.core.access.rules import Scope


@dataclass(frozen=True, slots=True)
class Section:
    """One page of the settings, and the scope that reads it."""

    name: str
    label: str
    scope: Scope = Scope.WORKSPACE_READ
    for_administrators: bool = False

    @property
    def path(self) -> str:
        """The path below that of the workspace."""
        return "settings" if self.name == "general" else f"settings/{self.name}"


Groups = Sequence[tuple[str, Sequence[Section]]]

GROUPS: Groups = (
    (
        "Workspace",
        (
            Section("general", "General"),
            Section("members", "Members", Scope.MEMBERS_READ),
            Section("invitations", "Invitations", Scope.MEMBERS_READ),
            Section("pause", "Pause"),
            Section("usage", "Usage", Scope.BILLING_READ),
            Section("audit", "Audit log", Scope.WORKSPACE_UPDATE),
        ),
    ),
    (
        "Developers",
        (
            Section("api-keys", "API keys", Scope.API_KEYS_READ),
            Section("request-logs", "Request logs", Scope.API_KEYS_READ),
            Section("secrets", "Secrets", Scope.INTEGRATIONS_READ),
            Section("webhooks", "Webhooks", Scope.WEBHOOKS_READ),
            Section("model", "Language model", Scope.MODELS_READ),
        ),
    ),
    ("You", (Section("notifications", "Notifications"),)),
    (
        "Platform",
        (
            Section("system", "System", for_administrators=True),
            Section("experiments", "Experiments", for_administrators=True),
            Section("release-notices", "Release notices", for_administrators=True),
        ),
    ),
)


def visible_groups(scopes: frozenset[Scope], *, is_administrator: bool) -> Groups:
    """The sections that a member may read, group by group."""
    groups = [
        (
            title,
            [
                section
                for section in sections
                if section.scope in scopes and (is_administrator or not section.for_administrators)
            ],
        )
        for title, sections in GROUPS
    ]
    return [(title, sections) for title, sections in groups if sections]

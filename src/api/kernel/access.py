"""What an operation demands of its caller, declared beside it and enforced before it runs."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from pydantic.alias_generators import to_camel

from models.access.rules import Level, Scope

Credential = Literal["any", "session", "key", "none"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Access:
    """The demands of one operation (decisions C2, C4).

    `resource` names what the path parameter `<resource>Id` must identify: something visible in
    the caller's workspace, on which the caller needs `level`. `transaction=False` is for
    operations that must answer without a database.
    """

    credential: Credential = "any"
    scopes: Sequence[Scope] = ()
    resource: str | None = None
    level: Level = Level.NONE
    idempotent: bool = False
    platform_admin: bool = False
    transaction: bool = True

    @property
    def parameter(self) -> str | None:
        """The path parameter that names the resource."""
        return None if self.resource is None else f"{to_camel(self.resource)}Id"

    def document(self) -> dict[str, Any]:
        """The `x-access` object of the OpenAPI document."""
        return {
            "credential": self.credential,
            "scopes": [scope.value for scope in self.scopes],
            "itemLevel": self.level.name.lower() if self.level else None,
            "idempotent": self.idempotent,
            "platformAdmin": self.platform_admin,
            "resource": self.resource,
        }

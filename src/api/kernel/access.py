"""The demands of an operation on its caller.

Routers declare it beside the operation; `authorization` enforces it, `openapi` documents it.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal
from uuid import UUID

from pydantic.alias_generators import to_camel

from models.core.access.rules import Level, Scope
from runtime.prefetching import Prefetch

Credential = Literal["any", "session", "key", "browser", "none"]

_CREDENTIALS = {
    "any": "",
    "session": "a session",
    "key": "an API key",
    "browser": "a session in a browser",
    "none": "no credential",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Access:
    """The demands of one operation (decisions C2, C4).

    All of `scopes` are needed. One of `any_scope` is enough to reach the command, which knows by
    the kind of the resource which of them it must be. `resource` names what the path parameter
    `<resource>Id` must identify: something visible in the caller's workspace, on which the caller
    needs `level`; a GET may `prefetch` what it asks about it. Where none is named, a guest needs
    the level of a writer on some item.
    An `idempotent` operation that `joins` has one effect although it is called without a key:
    called again before its answer was given, it gives that. `transaction=False` is for
    operations that must answer without a database; `writes` for a GET that counts its use,
    `snapshot` for one that reads rows which must agree with each other. The body of an `upload`
    is no JSON: it goes to the object store, and the endpoint finds what came of it in
    `call.upload`; where the endpoint has a body as well, JSON is that. Of a page, a form with a
    file is an upload, and the fields before its file are the body. `bundles` is for uploads
    that belong to no workspace: the prefix of their keys. With `in_trash` the resource may be in
    the trash. A `raw` operation takes any query and any body, which the endpoint finds in
    `call.raw_body`. What `starts_run` counts for the rate limit of run starts as well. The
    `heavy` requests of one caller take turns, as batches do. A `page` is served to clients that
    accept HTML, and takes the fields of a form as its body; its router says how it refuses. What
    scripts of pages read and do may be asked for by `cookie`, beside `Authorization`. Where it
    `prefers`, the caller may wait for the end of the work by `Prefer: wait`.
    """

    credential: Credential = "any"
    scopes: Sequence[Scope] = ()
    any_scope: Sequence[Scope] = ()
    resource: str | None = None
    prefetch: Callable[[UUID], Prefetch] | None = None
    in_trash: bool = False
    level: Level = Level.NONE
    idempotent: bool = False
    joins: bool = False
    platform_admin: bool = False
    transaction: bool = True
    writes: bool = False
    snapshot: bool = False
    upload: bool = False
    bundles: str | None = None
    raw: bool = False
    starts_run: bool = False
    heavy: bool = False
    page: bool = False
    cookie: bool = False
    prefers: bool = False

    def lacking(self, grants: frozenset[Scope]) -> str | None:
        """The scopes that a credential with these lacks, in words; None when it may come in."""
        missing = [scope for scope in self.scopes if scope not in grants]
        if missing:
            return " and ".join(missing)
        if self.any_scope and grants.isdisjoint(self.any_scope):
            return " or ".join(self.any_scope)
        return None

    @property
    def parameter(self) -> str | None:
        """The path parameter that names the resource."""
        return None if self.resource is None else f"{to_camel(self.resource)}Id"

    def sentence(self) -> str:
        """The demands in words, for the description of the operation."""
        needs = [_CREDENTIALS[self.credential]]
        needs += ["platform administration"] if self.platform_admin else []
        needs += [f"the scope `{scope.value}`" for scope in self.scopes]
        needs += [" or ".join(f"`{scope.value}`" for scope in self.any_scope)]
        if self.level and self.resource is not None:
            noun = self.resource.replace("_", " ")
            needs += [f"{self.level.name.lower()} access to the {noun}"]
        return f"Needs {' and '.join(filter(None, needs)) or 'any valid credential'}."

    def document(self) -> dict[str, Any]:
        """The `x-access` object of the OpenAPI document."""
        return {
            "credential": self.credential,
            "scopes": [scope.value for scope in self.scopes],
            "itemLevel": self.level.name.lower() if self.level else None,
            "idempotent": self.idempotent,
            "platformAdmin": self.platform_admin,
            "resource": self.resource,
            **({"anyScope": [scope.value for scope in self.any_scope]} if self.any_scope else {}),
        }

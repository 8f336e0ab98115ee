"""Resources of other providers, as whoever keeps connections to them reads them."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from models.core.base import Id, JsonObject
from models.sources.tabular.rules.options import TableFormat


@dataclass(frozen=True, slots=True)
class WantedResource:
    """A resource of a connection, and for whom it is read.

    `conditions` are what the provider called it when it was last read; see FetchedResource.
    """

    workspace_id: Id
    user_id: Id | None
    connection_id: Id
    resource: JsonObject
    conditions: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class FetchedResource:
    """A resource in a file, and what to ask next time to get it only if it has changed.

    One that is `unchanged` since then left the file empty.
    """

    format: TableFormat
    validators: Mapping[str, str] = field(default_factory=dict)
    unchanged: bool = False


class ResourceReader(Protocol):
    """Reads resources of every provider that connections can be made to."""

    async def fetch(self, request: WantedResource, path: Path) -> FetchedResource:
        """Write a resource to a file. Raises SourceProblem, also for a connection that is gone."""
        ...

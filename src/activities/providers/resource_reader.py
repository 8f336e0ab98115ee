"""Resources of connections as sources of rows: the ResourceReader of data sources and imports."""

from pathlib import Path

from typing_extensions import override

from activities.providers.adapter import ProblemKind, ProviderProblem
from activities.providers.calls import Providers, in_time
from activities.sources.resources import FetchedResource, ResourceReader, WantedResource
from models.sources.external_resources.rules.resources import ProviderResource
from models.sources.tabular.rules.options import TableFormat, format_named
from models.sources.tabular.rules.problems import ErrorKind, SourceProblem
from runtime.database import Database
from runtime.errors import PlatformError

DOWNLOAD_SECONDS = 300.0
"""Seconds of one download."""

_KINDS = {
    ProblemKind.AUTH: ErrorKind.AUTH,
    ProblemKind.DENIED: ErrorKind.AUTH,
    ProblemKind.TIMEOUT: ErrorKind.TIMEOUT,
    ProblemKind.TOO_LARGE: ErrorKind.TOO_LARGE,
}
_FINAL = frozenset(
    {
        ProblemKind.GONE,
        ProblemKind.INVALID,
        ProblemKind.UNSUPPORTED,
        ProblemKind.MALFORMED,
    }
)


class ProviderResources(ResourceReader):
    """Downloads a resource through its connection, in the name of who brings the rows in."""

    def __init__(self, database: Database, providers: Providers) -> None:
        self._database = database
        self._providers = providers

    @override
    async def fetch(self, request: WantedResource, path: Path) -> FetchedResource:
        async with self._database.transaction() as work:
            try:
                reached = await self._providers.reach(
                    work, request.workspace_id, request.user_id, request.connection_id
                )
            except PlatformError as error:
                raise SourceProblem(ErrorKind.AUTH, error.message) from error
        named = ProviderResource.model_validate(request.resource)
        adapter, access = reached.adapter, reached.access
        try:
            resource = await in_time(adapter.describe(access, named))
            download = await in_time(
                adapter.download(access, resource, path, request.conditions), DOWNLOAD_SECONDS
            )
        except ProviderProblem as problem:
            kind = _KINDS.get(problem.kind, ErrorKind.FETCH)
            raise SourceProblem(
                kind,
                problem.message,
                final=problem.kind in _FINAL,
                retry_after=problem.retry_after,
            ) from problem
        format_ = format_named(download.name, download.mime_type)
        if format_ is None and not download.unchanged:
            message = f"The resource is no table: its type is {download.mime_type}."
            raise SourceProblem(ErrorKind.PARSE, message)
        return FetchedResource(format_ or TableFormat.CSV, download.validators, download.unchanged)

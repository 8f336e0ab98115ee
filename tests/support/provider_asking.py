"""Asking an adapter as the platform does, in tests."""

from collections.abc import Mapping
from typing import Any
from uuid import UUID

from activities.providers.adapter import (
    Adapter,
    Listing,
    ProblemKind,
    ProviderAccess,
    ProviderProblem,
)
from models.sources.external_resources.rules.resources import ProviderResource


def access(config: Mapping[str, Any], **credentials: str) -> ProviderAccess:
    return ProviderAccess(UUID(int=1), UUID(int=2), UUID(int=3), dict(config), credentials)


def named(external_type: str, external_id: str, **more: Any) -> ProviderResource:
    """A resource of which a client says only what identifies it."""
    given = {
        "externalType": external_type,
        "externalId": external_id,
        "name": "x",
        "surfaceKind": "generic",
        "capabilities": [],
        **more,
    }
    return ProviderResource.model_validate(given)


async def listed_ids(
    adapter: Adapter, given: ProviderAccess, parent: str | None = None, **asked: Any
) -> list[str]:
    """What a listing gives, page by page."""
    found, cursor = list[str](), None
    while True:
        page = await adapter.browse(given, Listing(parent, cursor=cursor, **asked))
        found += [one.external_id for one in page.resources]
        cursor = page.cursor
        if cursor is None:
            return found


async def problem_of(asking: Any) -> ProblemKind:
    """Why a provider did not give what it was asked for."""
    try:
        await asking
    except ProviderProblem as problem:
        return problem.kind
    raise AssertionError("the provider answered")

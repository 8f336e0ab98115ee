"""Providers that a workspace has switched off; all others are on."""

from collections.abc import Mapping

from sqlalchemy import exists, select
from sqlalchemy.dialects.postgresql import insert

from models.core.access.rules import Actor
from models.core.base import Id
from models.sources.connections.providers import PROVIDERS, ProviderName
from models.sources.connections.shapes import ProviderDetail, SwitchProvider
from models.sources.connections.tables import provider_switch
from runtime.database import UnitOfWork
from runtime.errors import DeniedError, NotFoundError


def feature_name(provider: ProviderName) -> str:
    """The name of a provider's feature."""
    return f"provider:{provider.value}"


class FeatureOffError(DeniedError):
    """The workspace has switched a provider off."""

    def __init__(self, provider: ProviderName) -> None:
        super().__init__(
            f'The feature "{feature_name(provider)}" is switched off in this workspace.'
            " An administrator can switch it on."
        )


async def list_providers(work: UnitOfWork, actor: Actor) -> list[ProviderDetail]:
    """The providers that a workspace can connect to, and which of them are on."""
    rows = await work.rows(
        select(provider_switch.c.provider, provider_switch.c.enabled).where(
            provider_switch.c.workspace_id == actor.workspace_id
        )
    )
    switched = {row.provider: row.enabled for row in rows}
    return [_detail(name, switched) for name in PROVIDERS]


async def switch_provider(
    work: UnitOfWork, actor: Actor, name: str, body: SwitchProvider
) -> ProviderDetail:
    """Switch a provider on or off. Raises NotFoundError for one that there is not."""
    if name not in {one.value for one in PROVIDERS}:
        raise NotFoundError("provider")
    values = {"enabled": body.enabled, "updated_at": work.now}
    await work.execute(
        insert(provider_switch)
        .values(workspace_id=actor.workspace_id, provider=name, **values)
        .on_conflict_do_update(index_elements=["workspace_id", "provider"], set_=values)
    )
    return _detail(ProviderName(name), {name: body.enabled})


async def require_feature(work: UnitOfWork, workspace_id: Id, provider: ProviderName) -> None:
    """Raise FeatureOffError where the workspace has switched the provider off."""
    off = select(
        exists().where(
            provider_switch.c.workspace_id == workspace_id,
            provider_switch.c.provider == provider.value,
            ~provider_switch.c.enabled,
        )
    )
    if await work.scalar(off):
        raise FeatureOffError(provider)


def _detail(name: ProviderName, switched: Mapping[str, bool]) -> ProviderDetail:
    provider = PROVIDERS[name]
    return ProviderDetail(
        provider=name,
        label=provider.label,
        description=provider.description,
        credentials=list(provider.credentials),
        capabilities=list(provider.capabilities),
        feature=feature_name(name),
        enabled=switched.get(name.value, True),
    )

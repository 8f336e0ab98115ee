"""Push devices: the apps and browsers on which a user wants notifications."""

import json
from datetime import datetime
from enum import StrEnum
from typing import Annotated, Any, Self
from uuid import UUID

import sqlalchemy as sa
from pydantic import Field, model_validator
from sqlmodel import Field as TableField
from sqlmodel import SQLModel

from models.core.access.rules import Principal
from models.core.base import Id, Input, Moment, Shape, example
from models.core.pagination import Listed, PageRequest
from runtime.crypto import KeyRing, sealed
from runtime.database import UnitOfWork
from runtime.ids import new_id
from runtime.outbound_policy import url_problem
from runtime.postgresql.schema import Timestamp, one_of, table_of

MAX_DEVICES = 50
"""Registrations of one user; a further one takes the place of the one made first."""


class PushPlatform(StrEnum):
    IOS = "ios"
    ANDROID = "android"
    WEB = "web"


class PushProvider(StrEnum):
    APNS = "apns"
    FCM = "fcm"
    WEBPUSH = "webpush"


_USUAL = {
    PushPlatform.IOS: PushProvider.APNS,
    PushPlatform.ANDROID: PushProvider.FCM,
    PushPlatform.WEB: PushProvider.WEBPUSH,
}


def usual_provider(platform: PushPlatform) -> PushProvider:
    """The carrier of pushes to a platform, unless a client says otherwise."""
    return _USUAL[platform]


def provider_problem(platform: PushPlatform, provider: PushProvider) -> str | None:
    """The reason for which a provider reaches no device of a platform, in words, or None."""
    if provider is PushProvider.APNS and platform is not PushPlatform.IOS:
        return "apns only supports the platform ios."
    return None


def token_problem(provider: PushProvider, token: str) -> str | None:
    """The reason for which the URL in a token of Web Push is never called, in words, or None."""
    if provider is not PushProvider.WEBPUSH:
        return None
    try:
        subscription = json.loads(token)
    except (ValueError, RecursionError):
        return None
    endpoint = subscription.get("endpoint") if isinstance(subscription, dict) else None
    return url_problem(endpoint) if isinstance(endpoint, str) else None


def token_place(device_id: UUID) -> str:
    """The place that the sealed token of a device is bound to."""
    return f"push_device|{device_id}|sealed_token"


class PushDevice(SQLModel, table=True):
    """An active registration; one that is revoked is deleted, and its token with it."""

    __tablename__ = "push_device"
    __table_args__ = (
        sa.ForeignKeyConstraint(["user_id"], ["app_user.id"]),
        one_of("platform", PushPlatform),
        one_of("provider", PushProvider),
        sa.Index("uq_push_device_installation_id", "installation_id", unique=True),
        sa.Index("uq_push_device_token_digest", "token_digest", unique=True),
        sa.Index("ix_push_device_user_id", "user_id", "registered_at", "id"),
    )

    id: Id = TableField(primary_key=True)
    user_id: Id
    installation_id: str
    platform: str
    provider: str
    token_digest: bytes = TableField(sa_type=sa.LargeBinary)
    sealed_token: bytes = TableField(
        sa_type=sa.LargeBinary,
        sa_column_kwargs=sealed(lambda row: token_place(row.id), digest="token_digest"),
    )
    app_version: str | None = None
    locale: str | None = None
    registered_at: datetime = TableField(sa_type=Timestamp)


push_device = table_of(PushDevice)

InstallationId = Annotated[str, Field(pattern=r"^[!-~]{1,200}$")]
PushToken = Annotated[
    str, Field(min_length=16, max_length=4096, pattern=r"^[!-~][ -~]*[!-~]$", repr=False)
]
Locale = Annotated[str, Field(max_length=35, pattern=r"^[A-Za-z]{2,8}([-_][A-Za-z0-9]{1,8})*$")]
AppVersion = Annotated[str, Field(min_length=1, max_length=64)]


class RegisterPushDevice(Input):
    """Body of register push device.

    `installationId` is an unguessable id created by the app when it is installed. `token` is from
    the provider: 16 to 4096 printable ASCII characters. For `webpush` it is the JSON of the
    subscription of the browser, with `endpoint`, a public URL, and `keys`. The default provider of
    `ios` is `apns`, of `android` `fcm` and of `web` `webpush`.
    """

    model_config = example(
        {
            "installationId": "9f1c6f0e-3d1b-4f0a-8a53-1f7f3c9f5b11",
            "platform": "android",
            "token": "fGk3v0aT2l8:APA91bH7Yt3",
            "appVersion": "2.4.0",
            "locale": "en-GB",
        }
    )

    installation_id: InstallationId
    platform: Annotated[PushPlatform, Field(strict=False)]
    provider: Annotated[PushProvider, Field(strict=False)] | None = None
    token: PushToken
    app_version: AppVersion | None = None
    locale: Locale | None = None

    @property
    def carrier(self) -> PushProvider:
        """The provider that is meant."""
        return self.provider or usual_provider(self.platform)

    @model_validator(mode="after")
    def _is_reached(self) -> Self:
        problem = provider_problem(self.platform, self.carrier)
        if problem is not None:
            raise ValueError(problem)
        problem = token_problem(self.carrier, self.token)
        if problem is not None:
            raise ValueError(f"token: {problem}")
        return self


class RevokePushDevice(Input):
    """Body of revoke a push device."""

    model_config = example({"installationId": "9f1c6f0e-3d1b-4f0a-8a53-1f7f3c9f5b11"})

    installation_id: InstallationId


class PushRegistration(Shape):
    """The registration of an installation; `revoked` is true if this call ended it."""

    installation_id: str
    revoked: bool


class PushDeviceBody(Shape):
    """An active registration of the caller, without its token."""

    installation_id: str
    platform: PushPlatform
    provider: PushProvider
    app_version: str | None
    locale: str | None
    registered_at: Moment


class PushDeviceList(Listed):
    devices: list[PushDeviceBody]


class WebPushKey(Shape):
    """The public key of the platform for Web Push; absent where the platform has none."""

    public_key: str | None


async def list_push_devices(
    work: UnitOfWork, principal: Principal, page: PageRequest
) -> PushDeviceList:
    """The caller's active registrations, the one made last first."""
    columns = push_device.c
    own = sa.select(push_device).where(columns.user_id == principal.user_id)
    shown = await page.descending(work, own, columns.registered_at, columns.id, of=PushDevice)
    return PushDeviceList.of(shown)


async def find_device(work: UnitOfWork, device_id: Id) -> PushDevice | None:
    """A registration; None for one that was revoked."""
    return await work.first(
        sa.select(push_device).where(push_device.c.id == device_id), of=PushDevice
    )


def devices_of(user_id: sa.ColumnElement[Any]) -> sa.ColumnElement[Any]:
    """The ids of the registrations of the user that a column names, as an array."""
    own = sa.select(push_device.c.id).where(push_device.c.user_id == user_id)
    return sa.func.array(own.scalar_subquery(), type_=sa.ARRAY(sa.Uuid))


def token_of(keys: KeyRing, device: PushDevice) -> str:
    """The token of a registration. Raises UnreadableError."""
    return keys.unseal(device.sealed_token, token_place(device.id)).decode()


_device = push_device.c


async def register_push_device(
    work: UnitOfWork, principal: Principal, keys: KeyRing, body: RegisterPushDevice
) -> PushRegistration:
    """Make this the registration of the installation and of the token; others are revoked.

    An installation and a token belong to one registration each, whoever made it: who has the app
    has its token, and its next user is told instead of the one before.
    """
    token = body.token.encode()
    digests = keys.digests(token)
    await _lock(work, body.installation_id, digests[-1].hex())
    facts = {
        "platform": body.platform.value,
        "provider": body.carrier.value,
        "app_version": body.app_version,
        "locale": body.locale,
        "registered_at": work.now,
    }
    same_device = sa.and_(
        _device.user_id == principal.user_id,
        _device.installation_id == body.installation_id,
        _device.token_digest.in_(digests),
    )
    renewed = await work.first(
        sa.update(push_device).where(same_device).values(facts).returning(_device.id)
    )
    if renewed is None:
        either = sa.or_(
            _device.installation_id == body.installation_id, _device.token_digest.in_(digests)
        )
        await work.execute(sa.delete(push_device).where(either))
        device_id = new_id()
        row = {
            "id": device_id,
            "user_id": principal.user_id,
            "installation_id": body.installation_id,
            "token_digest": digests[0],
            "sealed_token": keys.seal(token, token_place(device_id)),
        }
        await work.execute(sa.insert(push_device).values({**row, **facts}))
        await _keep_newest(work, principal.user_id)
    return PushRegistration(installation_id=body.installation_id, revoked=False)


async def revoke_push_device(
    work: UnitOfWork, principal: Principal, body: RevokePushDevice
) -> PushRegistration:
    """End the caller's registration of an installation, if there is one."""
    own = sa.and_(
        _device.user_id == principal.user_id, _device.installation_id == body.installation_id
    )
    revoked = (await work.execute(sa.delete(push_device).where(own))).rowcount > 0
    return PushRegistration(installation_id=body.installation_id, revoked=revoked)


async def forget_device(work: UnitOfWork, device_id: Id) -> None:
    """Revoke a registration whose provider says that its token reaches no one any more."""
    await work.execute(sa.delete(push_device).where(_device.id == device_id))


async def _lock(work: UnitOfWork, *names: str) -> None:
    """Go on alone with an installation and a token: two registrations may not both miss another."""
    for name in sorted(names):
        lock = sa.func.hashtextextended(f"push-device/{name}", 0)
        await work.execute(sa.select(sa.func.pg_advisory_xact_lock(lock)))


async def _keep_newest(work: UnitOfWork, user_id: Id) -> None:
    older = (
        sa.select(_device.id)
        .where(_device.user_id == user_id)
        .order_by(_device.registered_at.desc(), _device.id.desc())
        .offset(MAX_DEVICES)
    )
    await work.execute(sa.delete(push_device).where(_device.id.in_(older)))

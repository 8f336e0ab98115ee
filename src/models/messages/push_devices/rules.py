"""Platforms, and who carries pushes to them (decisions C13). Pure."""

from enum import StrEnum
from uuid import UUID

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
    """Who carries pushes to a platform, unless a client says otherwise."""
    return _USUAL[platform]


def provider_problem(platform: PushPlatform, provider: PushProvider) -> str | None:
    """Why a provider reaches no device of a platform, in words."""
    if provider is PushProvider.APNS and platform is not PushPlatform.IOS:
        return "apns reaches devices of the platform ios only."
    return None


def token_place(device_id: UUID) -> str:
    """The place that the sealed token of a device is bound to."""
    return f"push_device|{device_id}|sealed_token"

"""Platforms, and who carries pushes to them (decisions C13). Pure."""

import json
from enum import StrEnum
from uuid import UUID

from runtime.callable_urls import url_problem

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
        return "apns reaches devices of the platform ios only."
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

"""The providers that the operator has keys for."""

from activities.deliveries.push.apns import Apns
from activities.deliveries.push.fcm import Fcm
from activities.deliveries.push.messages import Pusher
from activities.deliveries.push.web_push import WebPush
from models.messages.push_devices.rules import PushProvider
from runtime.outbound.client import OutboundClient
from runtime.push_settings import PushSettings


def pushers_of(
    settings: PushSettings, outbound: OutboundClient, http2: OutboundClient
) -> dict[PushProvider, Pusher]:
    """The carriers of pushes; APNs takes them by `http2` alone."""
    pushers: dict[PushProvider, Pusher] = {}
    if settings.vapid_keys:
        pushers[PushProvider.WEBPUSH] = WebPush(outbound, *settings.vapid_keys)
    if settings.fcm is not None:
        pushers[PushProvider.FCM] = Fcm(outbound, settings.fcm, settings.fcm_url)
    if settings.apns is not None:
        pushers[PushProvider.APNS] = Apns(http2, settings.apns, settings.apns_url)
    return pushers

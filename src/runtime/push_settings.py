"""The settings of pushes: the operator's keys at each provider, none of which is needed."""

from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from pydantic import SecretStr, field_validator, model_validator
from pydantic_settings import BaseSettings

if TYPE_CHECKING:
    from runtime.push_keys import ApnsKey, FcmAccount, VapidKey


class PushSettings(BaseSettings):
    vapid_private_key: SecretStr | None = None
    """For Web Push: 32 bytes in base64url. After a comma the keys that it took the place of."""
    vapid_subject: str | None = None
    """The contact that a push service may write to: `mailto:` an address, or a URL."""

    fcm_credentials: Path | None = None
    """The JSON file of a service account of Firebase."""
    fcm_url: str = "https://fcm.googleapis.com"

    apns_key: Path | None = None
    """The `.p8` file of a token signing key."""
    apns_key_id: str | None = None
    apns_team_id: str | None = None
    apns_topic: str | None = None
    """The bundle id of the app."""
    apns_url: str = "https://api.push.apple.com"

    @field_validator("fcm_url", "apns_url")
    @classmethod
    def _is_a_provider(cls, value: str) -> str:
        url = urlsplit(value)
        if url.scheme not in {"http", "https"} or not url.netloc or url.path or url.query:
            raise ValueError("must be https:// and a host, without a path")
        return value

    @model_validator(mode="after")
    def _pushes_are_whole(self) -> "PushSettings":
        for variables, read in (
            (("VAPID_PRIVATE_KEY", "VAPID_SUBJECT"), lambda: self.vapid_keys),
            (("FCM_CREDENTIALS",), lambda: self.fcm),
            (("APNS_KEY", "APNS_KEY_ID", "APNS_TEAM_ID", "APNS_TOPIC"), lambda: self.apns),
        ):
            present = [name for name in variables if getattr(self, name.lower()) is not None]
            names = " and ".join(f"WORKSPACE_{name}" for name in variables)
            if present and len(present) < len(variables):
                raise ValueError(f"Pushes need all of {names}")
            try:
                read()
            except ValueError as error:
                raise ValueError(f"{names}: {error}") from None
        return self

    @property
    def vapid(self) -> "VapidKey | None":
        """The key for Web Push that browsers subscribe with, if the operator has one."""
        return next(iter(self.vapid_keys), None)

    @cached_property
    def vapid_keys(self) -> "tuple[VapidKey, ...]":
        """That key, and older ones that browsers have subscribed with before."""
        if self.vapid_private_key is None or self.vapid_subject is None:
            return ()
        from runtime.push_keys import VapidKey  # noqa: PLC0415  # costs nothing without pushes

        scalars = self.vapid_private_key.get_secret_value().split(",")
        return tuple(VapidKey.parse(scalar.strip(), self.vapid_subject) for scalar in scalars)

    @cached_property
    def fcm(self) -> "FcmAccount | None":
        if self.fcm_credentials is None:
            return None
        from runtime.push_keys import FcmAccount  # noqa: PLC0415  # as above

        return FcmAccount.read(self.fcm_credentials)

    @cached_property
    def apns(self) -> "ApnsKey | None":
        parts = (self.apns_key, self.apns_key_id, self.apns_team_id, self.apns_topic)
        path, key_id, team_id, topic = parts
        if path is None or key_id is None or team_id is None or topic is None:
            return None
        from runtime.push_keys import ApnsKey  # noqa: PLC0415  # as above

        return ApnsKey.read(path, key_id, team_id, topic)

"""Push devices on the wire (interface, Push registration result; decisions C13, C18)."""

from typing import Annotated, Self

from pydantic import Field, model_validator

from models.core.base import Input, Moment, Nullable, Shape, example
from models.messages.push_devices.rules import (
    PushPlatform,
    PushProvider,
    provider_problem,
    token_problem,
    usual_provider,
)

InstallationId = Annotated[str, Field(pattern=r"^[!-~]{1,200}$")]
PushToken = Annotated[
    str, Field(min_length=16, max_length=4096, pattern=r"^[!-~][ -~]*[!-~]$", repr=False)
]
Locale = Annotated[str, Field(max_length=35, pattern=r"^[A-Za-z]{2,8}([-_][A-Za-z0-9]{1,8})*$")]
AppVersion = Annotated[str, Field(min_length=1, max_length=64)]


class RegisterPushDevice(Input):
    """Body of register a push device.

    `installationId` is an unguessable id that the app gave itself when it was installed. `token` is
    what the provider gave it: 16 to 4096 printable ASCII characters. For `webpush` it is the JSON
    text of the browser's subscription, with `endpoint`, a public URL, and `keys`. The provider of
    `ios` is `apns`, of `android` `fcm` and of `web` `webpush`, unless the body says otherwise.
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
    """The outcome of a registration; `revoked` says that this call has ended it."""

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


class PushDeviceList(Shape):
    devices: list[PushDeviceBody]
    cursor: Nullable[str]


class WebPushKey(Shape):
    """The public key of the platform for Web Push; absent where the platform has none."""

    public_key: str | None

"""Sections of the settings: identity, providers, mail, pushes, rates, deployments, metrics."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from email.utils import parseaddr
from enum import StrEnum
from functools import cached_property
from ipaddress import ip_network
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any
from urllib.parse import parse_qs, unquote, urlsplit

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    SecretStr,
    field_validator,
    model_validator,
)
from pydantic.alias_generators import to_camel
from pydantic_settings import BaseSettings, NoDecode

from runtime.outbound_policy import is_host, url_problem

if TYPE_CHECKING:
    from runtime.configuration.push_keys import ApnsKey, FcmAccount, VapidKey


DEVELOPMENT_ISSUER = "urn:workspace:development"
"""The issuer that the platform brings along, for use before an identity provider is chosen."""


class IdentitySettings(BaseSettings):
    public_url: str | None = None
    """The URL that users reach the API by, such as `https://workspace.example.com`."""

    oidc_issuer: str | None = None
    oidc_audience: str | None = None
    oidc_jwks: str | None = None
    """Path of a JWKS file, or the URL that serves one."""
    oidc_client_id: str | None = None
    """The client that the console is at the issuer; people then sign in there.

    The issuer must know `WORKSPACE_PUBLIC_URL` followed by `/sign-in/callback`.
    """
    oidc_client_secret: SecretStr | None = None
    """The secret of that client; a public client has none."""

    @field_validator("public_url")
    @classmethod
    def _is_an_origin(cls, value: str | None) -> str | None:
        if value is None:
            return None
        url = urlsplit(value)
        if url.scheme not in {"http", "https"} or not url.hostname or url.query or url.fragment:
            raise ValueError("must be an http or https URL, such as https://workspace.example.com")
        return value.rstrip("/")

    @field_validator("oidc_issuer", "oidc_jwks")
    @classmethod
    def _is_callable(cls, value: str | None) -> str | None:
        is_url = value is not None and value.startswith(("http://", "https://"))
        problem = url_problem(value) if value is not None and is_url else None
        if problem is not None:
            raise ValueError(problem)
        return value

    @model_validator(mode="after")
    def _sessions_are_whole(self) -> "IdentitySettings":
        names = {
            "WORKSPACE_OIDC_ISSUER": self.oidc_issuer,
            "WORKSPACE_OIDC_AUDIENCE": self.oidc_audience,
            "WORKSPACE_OIDC_JWKS": self.oidc_jwks,
        }
        missing = [name for name, value in names.items() if not value]
        if missing and len(missing) < len(names):
            raise ValueError(f"Sessions need all three; set {' and '.join(missing)} as well")
        if self.oidc_client_id and (missing or not self.public_url):
            raise ValueError(
                "WORKSPACE_OIDC_CLIENT_ID needs WORKSPACE_OIDC_ISSUER and WORKSPACE_PUBLIC_URL"
            )
        return self


def _callable(text: str) -> str:
    problem = url_problem(text)
    if problem is not None:
        raise ValueError(problem)
    return text


_Url = Annotated[str, AfterValidator(_callable)]


class ProviderSettings(BaseModel):
    """One provider, by camelCase keys in JSON.

    Without a client, sign-in by OAuth is not available. The URLs replace the provider's own.
    """

    model_config = ConfigDict(
        alias_generator=to_camel, extra="forbid", frozen=True, hide_input_in_errors=True
    )

    client_id: str | None = None
    client_secret: SecretStr | None = None
    """None for a public client, which proves itself by PKCE alone."""
    scopes: tuple[str, ...] | None = None
    """Permissions that users are asked to grant, instead of all that the adapter can use."""
    api_url: _Url | None = None
    authorization_url: _Url | None = None
    token_url: _Url | None = None
    revocation_url: _Url | None = None


def _parsed(value: object) -> dict[str, Any]:
    try:
        settings = json.loads(value) if isinstance(value, str) else value
    except (ValueError, RecursionError):
        settings = None
    if not isinstance(settings, dict):
        raise ValueError(  # noqa: TRY004  # the one that Pydantic hears
            'must be a JSON object, such as {"github": {"clientId": "…", "clientSecret": "…"}}'
        )
    return settings


Providers = Annotated[dict[str, ProviderSettings], NoDecode, BeforeValidator(_parsed)]
"""The settings of providers, by their names; a variable holds JSON."""

_PORTS = {"smtp": 587, "smtps": 465}
_FORM = "the URL must be smtp[s]://[user:password@]host[:port], its parts percent-encoded"
_STARTTLS = {"required": True, "auto": None, "off": False}


@dataclass(frozen=True, slots=True, kw_only=True)
class MailServer:
    """The server that mail is handed over to; `starttls` None means when the server offers it."""

    host: str
    port: int
    sender: str
    sender_name: str = ""
    tls: bool = False
    starttls: bool | None = None
    username: str | None = None
    password: str | None = field(default=None, repr=False)

    @classmethod
    def parse(cls, url: str, sender: str) -> "MailServer":
        """From `smtp[s]://[user:password@]host[:port][?starttls=required|auto|off]` and an address.

        STARTTLS is required where a password would be sent. Raises ValueError.
        """
        try:
            parts = urlsplit(url)
            port, host = parts.port, parts.hostname
        except ValueError:  # whose text may be a part of the password
            raise ValueError(_FORM) from None
        query = parse_qs(parts.query, keep_blank_values=True)
        starttls = query.pop("starttls", ["required" if parts.username else "auto"])[-1]
        rest = query or parts.path.strip("/") or parts.fragment
        if parts.scheme not in _PORTS or not host or not is_host(host) or rest:
            raise ValueError(_FORM)
        if starttls not in _STARTTLS:
            raise ValueError("starttls must be required, auto or off")
        name, address = parseaddr(sender)
        domain = address.rpartition("@")[2]
        if not address.isascii() or not all(address.partition("@")) or not is_host(domain):
            raise ValueError("the sender must be an email address")
        tls = parts.scheme == "smtps"
        return cls(
            host=host,
            port=port or _PORTS[parts.scheme],
            sender=address,
            sender_name=name,
            tls=tls,
            starttls=False if tls else _STARTTLS[starttls],
            username=None if parts.username is None else unquote(parts.username),
            password=None if parts.password is None else unquote(parts.password),
        )


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
        from runtime.configuration.push_keys import VapidKey  # noqa: PLC0415  # costs nothing without pushes

        scalars = self.vapid_private_key.get_secret_value().split(",")
        return tuple(VapidKey.parse(scalar.strip(), self.vapid_subject) for scalar in scalars)

    @cached_property
    def fcm(self) -> "FcmAccount | None":
        if self.fcm_credentials is None:
            return None
        from runtime.configuration.push_keys import FcmAccount  # noqa: PLC0415  # as above

        return FcmAccount.read(self.fcm_credentials)

    @cached_property
    def apns(self) -> "ApnsKey | None":
        parts = (self.apns_key, self.apns_key_id, self.apns_team_id, self.apns_topic)
        path, key_id, team_id, topic = parts
        if path is None or key_id is None or team_id is None or topic is None:
            return None
        from runtime.configuration.push_keys import ApnsKey  # noqa: PLC0415  # as above

        return ApnsKey.read(path, key_id, team_id, topic)


def _split(value: object) -> object:
    if isinstance(value, str):
        return tuple(part.strip() for part in value.split(",") if part.strip())
    return value


Listed = Annotated[tuple[str, ...], NoDecode, BeforeValidator(_split)]
"""A comma-separated variable."""


class RateSettings(BaseSettings):
    rate_limit_key: float = Field(default=100, ge=0, le=1_000_000)
    """Calls a second of one caller that a process takes on average; 0 sets no limit. A caller is an
    API key, the sessions of one user, or a share link."""
    rate_limit_key_burst: int = Field(default=200, ge=1, le=1_000_000)
    """Such calls that a process takes at once."""
    rate_limit_run_start: float = Field(default=50, ge=0, le=1_000_000)
    """Calls a second that start runs, of the same callers; 0 sets no limit."""
    rate_limit_run_start_burst: int = Field(default=100, ge=1, le=1_000_000)
    """Such calls that a process takes at once."""
    rate_limit_webhook: float = Field(default=50, ge=0, le=1_000_000)
    """Calls a second of one webhook that a process takes on average; 0 sets no limit."""
    rate_limit_webhook_burst: int = Field(default=200, ge=1, le=1_000_000)
    """Calls of one webhook that a process takes at once."""
    rate_limit_form: float = Field(default=120, ge=0, le=1_000_000)
    """Submissions a minute of one public form on average; 0 sets no limit."""
    rate_limit_form_burst: int = Field(default=120, ge=1, le=1_000_000)
    """Submissions of one public form at once."""
    rate_limit_form_address: float = Field(default=10, ge=0, le=1_000_000)
    """Submissions of it a minute that come from one address; 0 sets no limit."""
    rate_limit_form_address_burst: int = Field(default=20, ge=1, le=1_000_000)
    """Submissions of one public form from one address at once."""
    rate_limit_visitor: float = Field(default=10, ge=0, le=1_000_000)
    """Uses a second of links that need no account, from one address: sign-in links, share links,
    decisions by mail and resume URLs; 0 sets no limit."""
    rate_limit_visitor_burst: int = Field(default=200, ge=1, le=1_000_000)
    """Such uses that a process takes at once."""

    trusted_proxies: Listed = ()
    """Addresses and CIDR ranges of proxies whose `X-Forwarded-For` names the client."""

    @field_validator("trusted_proxies")
    @classmethod
    def _are_networks(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        for entry in value:
            ip_network(entry)
        return value


_NAME = re.compile(r"[A-Za-z0-9_-]{1,60}")
_BUILD = re.compile(r"[A-Za-z0-9_.+-]{1,60}")


class WorkerVersions(StrEnum):
    """The use of worker versions, which decides the workers that execute open work at a rollout."""

    NEWEST = "newest"
    """The build that started last takes all work over, open work too."""
    PROMOTED = "promoted"
    """An operator promotes a build; long work that is open stays with its own."""
    OFF = "off"
    """Workers have no version. A deployment that has a current one gives them nothing."""


class DeploymentSettings(BaseSettings):
    worker_versions: WorkerVersions = WorkerVersions.NEWEST
    """`newest`, `promoted` or `off` (docs/operations/deployments.md)."""
    worker_deployment: str = "workspace"
    """The name of the deployment in Temporal: one for the workers of a namespace."""
    worker_build: str | None = None
    """The build id of this process's code; by default its release and a hash of its workflows."""

    @field_validator("worker_versions", mode="before")
    @classmethod
    def _is_a_use(cls, value: object) -> object:
        if value not in set(WorkerVersions):
            raise ValueError(f"must be {', '.join(WorkerVersions)}")
        return value

    @field_validator("worker_deployment")
    @classmethod
    def _is_a_name(cls, value: str) -> str:
        if not _NAME.fullmatch(value):
            raise ValueError("must be at most 60 letters, digits, hyphens and underscores")
        return value

    @field_validator("worker_build")
    @classmethod
    def _is_a_build(cls, value: str | None) -> str | None:
        if value is not None and not _BUILD.fullmatch(value):
            raise ValueError("must be at most 60 letters, digits, dots, hyphens and underscores")
        return value


OTHER = "other"
"""Replaces each value that the list does not name, so that a run cannot add a series."""

_ENTRY = re.compile(r"([a-z][a-zA-Z0-9_.-]{0,39})=([^\x00]{1,2000})")


def parse_counted_attributes(text: str) -> Mapping[str, tuple[str, ...]]:
    """`key=value|value,key=value` as the values of each key. Raises ValueError."""
    values_of: dict[str, tuple[str, ...]] = {}
    for entry in filter(None, map(str.strip, text.split(","))):
        parts = _ENTRY.fullmatch(entry)
        values = () if parts is None else tuple(map(str.strip, parts[2].split("|")))
        if parts is None or not all(values):
            raise ValueError("must be key=value|value, and a comma between keys")
        if parts[1] in values_of:
            raise ValueError("must name each key once")
        values_of[parts[1]] = values
    return values_of

"""The platform's settings: environment variables, checked once, at the start of a process."""

import re
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar
from urllib.parse import urlsplit

from psycopg import ProgrammingError
from psycopg.conninfo import conninfo_to_dict
from pydantic import Field, SecretStr, ValidationError, field_validator, model_validator
from pydantic_core import ErrorDetails
from pydantic_settings import BaseSettings, NoDecode, SettingsConfigDict

from runtime.configuration import sections
from runtime.outbound_policy import Allowance, Listener

MIB = 1024 * 1024

_SettingsT = TypeVar("_SettingsT", bound=BaseSettings)


class SettingsError(Exception):
    """A variable is missing or wrong; the message says which one to set, and to what."""

    retryable = False


class TemporalSettings(sections.DeploymentSettings):
    """Temporal and the deployment there: all that a tool needs which only asks about executions."""

    model_config = SettingsConfigDict(
        env_prefix="WORKSPACE_",
        env_ignore_empty=True,
        extra="ignore",
        populate_by_name=True,
        hide_input_in_errors=True,
    )

    temporal_address: str = Field(default="127.0.0.1:7233", validation_alias="TEMPORAL_ADDRESS")
    temporal_namespace: str = Field(default="default", validation_alias="TEMPORAL_NAMESPACE")
    temporal_ui_url: str | None = None

    @field_validator("temporal_address")
    @classmethod
    def _is_listener(cls, value: str) -> str:
        Listener.parse(value)
        return value


class Settings(
    sections.IdentitySettings, sections.PushSettings, sections.RateSettings, TemporalSettings
):
    """The facts that a process needs about the world around it."""

    database_url: SecretStr = Field(validation_alias="DATABASE_URL")
    """libpq URL of the PostgreSQL database; it may hold a password."""
    database_pooler_url: SecretStr | None = Field(
        default=None, validation_alias="DATABASE_POOLER_URL"
    )
    """libpq URL of a pool in transaction mode in front of it, such as PgBouncer's."""
    database_pool_size: int = Field(default=10, ge=1, le=200)

    secret_key: SecretStr
    """Master secret of at least 32 bytes; after a comma, earlier ones that may still be read."""

    platform_admins: sections.Listed = ()
    """E-mail addresses of platform administrators."""
    platform_admin_claim: str = "platform_admin"
    """Name of the session claim that, when true, makes a platform administrator."""

    outbound_allow: sections.Listed = ()
    """Hosts (also `host:port`) and CIDR ranges that may be called although they are private.

    The API refuses to save a URL of any other private host, and workers to call it.
    """

    own_listeners: sections.Listed = ()
    """More listeners of the platform, as `host:port`: no user's call is let through to them.

    Other settings name PostgreSQL, Temporal, its UI, the public URL and the metrics.
    """

    smtp_url: SecretStr | None = None
    """`smtp[s]://[user:password@]host[:port][?starttls=required|auto|off]` of the mail server.

    A private host must be allowed by `WORKSPACE_OUTBOUND_ALLOW` as well.
    """
    smtp_from: str | None = None
    """The sender of mails: an address, also as `Name <address>`."""

    providers: sections.Providers = Field(default_factory=dict, repr=False)
    """Facts about providers, as JSON by their names:
    `{"github": {"clientId": "…", "clientSecret": "…"}}`.

    A provider that sends users back needs `WORKSPACE_PUBLIC_URL` too.
    """

    state_dir: Path = Path(".state")
    """The directory for all that no other setting places elsewhere."""
    object_store: str = Field(
        default_factory=lambda known: f"{Path(known['state_dir']).absolute().as_uri()}/objects"
    )
    """The store for the bytes of files: `file:///directory`, `s3://bucket/prefix` or `memory://`.

    Every process must see the same; `memory://` is one process's own, for tests.
    """
    upload_limit: int = Field(default=100 * MIB, ge=1024)
    """Bytes of one uploaded file."""
    bundle_limit: int = Field(default=8 * 1024 * MIB, ge=1024)
    """Bytes of one bundle that an administrator uploads."""

    body_limit: int = Field(default=1 * MIB, ge=1024)
    batch_body_limit: int = Field(default=8 * MIB, ge=1024)

    receive_seconds: float = Field(default=10, gt=0, le=3600)
    """Seconds that the head of a request may take, and that a body may be behind its rate."""
    receive_rate: float = Field(default=1024, gt=0)
    """Bytes a second at which a body must arrive."""
    connections_per_address: int = Field(default=256, ge=0)
    """Connections of one address to a process that serves the API; 0 sets no limit.

    Behind a proxy all of them are the proxy's, which then has to set the limit.
    """

    running_cap: int = Field(default=200, ge=1, le=100_000)
    """Runs of one workspace that may be running when another of it is started."""

    trash_days: int = Field(default=30, ge=30, le=36_500)
    """Days for which the deleted is kept; for 30 of them it can be restored.

    See interface.md#trash.
    """
    request_log_days: int = Field(default=30, ge=1, le=36_500)
    inbox_days: int = Field(default=7, ge=1, le=36_500)
    """Days for which events that reached automations are kept, with what became of them."""
    run_days: int = Field(default=90, ge=1, le=36_500)
    """Days for which a run is kept after its end."""
    run_limit_seconds: int = Field(default=30 * 86_400, ge=60, le=366 * 86_400)
    """Seconds that a run may last; then it is timed out (interface.md#limits)."""

    api_memory_limit: int = Field(default=4096 * MIB, ge=0)
    """Bytes of address space of a process that serves the API; 0 sets no limit."""
    worker_memory_limit: int = Field(default=4096 * MIB, ge=0)
    """Bytes of address space of a worker process; 0 sets no limit."""

    otel_endpoint: str | None = Field(default=None, validation_alias="OTEL_EXPORTER_OTLP_ENDPOINT")
    """Base URL of an OTLP receiver (HTTP) that takes traces; without one nothing is traced."""
    worker_metrics_address: str | None = None
    """The listener at which a worker serves the metrics of its Temporal SDK, as `host:port`."""

    counted_attributes: Annotated[Mapping[str, tuple[str, ...]], NoDecode] = Field(
        default_factory=dict
    )
    """Attributes of runs that metrics count, by key and value: `region=eu|us,plan=free|pro`."""

    log_format: Literal["json", "console"] = "json"
    log_level: Literal["debug", "info", "warning", "error"] = "info"

    @field_validator("counted_attributes", mode="before")
    @classmethod
    def _parse_counted(cls, value: object) -> object:
        return sections.parse_counted_attributes(value) if isinstance(value, str) else value

    @field_validator("database_url", "database_pooler_url")
    @classmethod
    def _is_postgresql(cls, value: SecretStr | None) -> SecretStr | None:
        if value is None:
            return None
        if not value.get_secret_value().startswith(("postgres://", "postgresql://")):
            raise ValueError("must start with postgresql://, for example postgresql://host/name")
        try:
            conninfo_to_dict(value.get_secret_value())
        except ProgrammingError:  # whose text may be a part of the password
            raise ValueError(
                "must be a libpq URL: percent-encode special characters, and use only"
                " parameters that libpq supports"
            ) from None
        return value

    @field_validator("secret_key")
    @classmethod
    def _is_long(cls, value: SecretStr) -> SecretStr:
        secrets = value.get_secret_value().split(",")
        if any(len(secret.strip().encode()) < 32 for secret in secrets):
            raise ValueError(
                "must be at least 32 bytes without a comma; try `openssl rand -base64 48`"
            )
        return value

    @field_validator("otel_endpoint")
    @classmethod
    def _is_receiver(cls, value: str | None) -> str | None:
        if value is not None and not value.startswith(("http://", "https://")):
            raise ValueError("must be an http or https URL, such as http://127.0.0.1:4318")
        return value

    @field_validator("worker_metrics_address")
    @classmethod
    def _is_address(cls, value: str | None) -> str | None:
        if value is not None and not re.fullmatch(r"\S+:[0-9]{1,5}", value):
            raise ValueError("must be host:port, such as 127.0.0.1:9464")
        return value

    @field_validator("object_store")
    @classmethod
    def _is_a_store(cls, value: str) -> str:
        url = urlsplit(value)
        absolute = url.scheme == "file" and not url.netloc and url.path.startswith("/")
        if not (absolute or (url.scheme == "s3" and url.netloc) or value == "memory://"):
            raise ValueError("must be file:///directory or s3://bucket/prefix")
        return value

    @field_validator("outbound_allow")
    @classmethod
    def _are_hosts_or_ranges(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        for entry in value:
            Allowance.parse(entry)
        return value

    @field_validator("own_listeners")
    @classmethod
    def _are_listeners(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        for entry in value:
            Listener.parse(entry)
        return value

    @model_validator(mode="after")
    def _mail_is_whole(self) -> "Settings":
        if (self.smtp_url is None) is not (self.smtp_from is None):
            raise ValueError("Mail needs both WORKSPACE_SMTP_URL and WORKSPACE_SMTP_FROM")
        try:
            _ = self.mail
        except ValueError as error:
            raise ValueError(f"WORKSPACE_SMTP_URL and WORKSPACE_SMTP_FROM: {error}") from None
        return self

    @cached_property
    def mail(self) -> sections.MailServer | None:
        """The server that takes mails, if the operator named one."""
        if self.smtp_url is None or self.smtp_from is None:
            return None
        return sections.MailServer.parse(self.smtp_url.get_secret_value(), self.smtp_from)

    @cached_property
    def secret_keys(self) -> tuple[str, ...]:
        """The master secrets, the current one first."""
        return tuple(part.strip() for part in self.secret_key.get_secret_value().split(","))

    def is_platform_admin(self, email: str | None) -> bool:
        return email is not None and email.lower() in self._admin_emails

    @cached_property
    def _admin_emails(self) -> frozenset[str]:
        return frozenset(email.lower() for email in self.platform_admins)


def load_settings(**known: Any) -> Settings:
    """The settings of this process's environment, and the `known` ones, by field.

    Raises SettingsError that names the variables.
    """
    return _loaded(Settings, known)


def load_temporal_settings(**known: str) -> TemporalSettings:
    """The same, of what concerns Temporal."""
    return _loaded(TemporalSettings, known)


def _loaded(settings: type[_SettingsT], known: Mapping[str, Any]) -> _SettingsT:
    try:
        return settings(**known)
    except ValidationError as error:
        sentences = [sentence_of(problem) for problem in error.errors() if is_cause(problem)]
        raise SettingsError("\n".join(sentences)) from None


def is_cause(problem: ErrorDetails) -> bool:
    """True when a problem is one by itself: a default may follow from another variable."""
    return problem["type"] != "default_factory_not_called"


def sentence_of(problem: ErrorDetails) -> str:
    """The words on what to set or to correct, by a problem of the validation library."""
    variable = str(problem["loc"][0]) if problem["loc"] else ""
    if problem["type"] == "value_error":
        words = str(problem["ctx"]["error"]).removesuffix(".")
        if not variable:
            return f"{words}."
    else:
        words = _WORDS.get(problem["type"], "has an invalid value")
        context = problem.get("ctx", {})
        words = words.format(**{name: _plain(value) for name, value in context.items()})
    if not variable.isupper():
        variable = f"WORKSPACE_{variable.upper()}"
    if problem["type"] == "missing":
        return f"Set {variable}: {_PURPOSE.get(variable, 'it has no default')}."
    return f"Fix {variable}: {words}."


def _plain(value: object) -> object:
    return int(value) if isinstance(value, float) and value.is_integer() else value


_WORDS = {
    "int_parsing": "must be a whole number",
    "int_parsing_size": "must be a smaller whole number",
    "int_from_float": "must be a whole number",
    "float_parsing": "must be a number",
    "finite_number": "must be a number",
    "greater_than": "must be more than {gt}",
    "greater_than_equal": "must be at least {ge}",
    "less_than_equal": "must be at most {le}",
    "literal_error": "must be {expected}",
}
"""The words for what a value must be, by the validation library's name of the mistake."""

_PURPOSE = {
    "DATABASE_URL": "the PostgreSQL database, for example postgresql://user@host/workspace",
    "WORKSPACE_SECRET_KEY": "a master secret of at least 32 bytes; `openssl rand -base64 48`"
    " makes one",
}

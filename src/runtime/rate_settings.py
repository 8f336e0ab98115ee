"""The settings of how often something may be called, and of the proxies that say who calls."""

from ipaddress import ip_network
from typing import Annotated

from pydantic import BeforeValidator, Field, field_validator
from pydantic_settings import BaseSettings, NoDecode


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
    """Submissions a minute of one public form that a process takes on average; 0 sets no limit."""
    rate_limit_form_burst: int = Field(default=120, ge=1, le=1_000_000)
    """Submissions of one public form that a process takes at once."""
    rate_limit_form_address: float = Field(default=10, ge=0, le=1_000_000)
    """Submissions of it a minute that come from one address; 0 sets no limit."""
    rate_limit_form_address_burst: int = Field(default=20, ge=1, le=1_000_000)
    """Submissions of one public form from one address that a process takes at once."""
    rate_limit_visitor: float = Field(default=10, ge=0, le=1_000_000)
    """Uses a second of links that need no account, from one address: sign-in links, share links,
    decisions by mail and resume URLs; 0 sets no limit."""
    rate_limit_visitor_burst: int = Field(default=200, ge=1, le=1_000_000)
    """Such uses that a process takes at once."""

    trusted_proxies: Listed = ()
    """Addresses and CIDR ranges of proxies whose `X-Forwarded-For` says who calls."""

    @field_validator("trusted_proxies")
    @classmethod
    def _are_networks(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        for entry in value:
            ip_network(entry)
        return value

"""The settings of people: their identity provider, and the address at which they reach the API."""

from urllib.parse import urlsplit

from pydantic import SecretStr, field_validator, model_validator
from pydantic_settings import BaseSettings

from runtime.callable_urls import url_problem

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

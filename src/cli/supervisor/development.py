"""Session tokens without an identity provider: a local issuer, kept in the state directory."""

import os
from collections.abc import Mapping
from dataclasses import dataclass

from cli.supervisor.state import StateDir
from runtime.development_issuer import DevelopmentIssuer, ensure_issuer

EMAIL = "owner@localhost"
NAME = "Owner"


@dataclass(frozen=True, slots=True)
class DevelopmentSessions:
    """The local issuer, unless the operator configured a provider."""

    issuer: DevelopmentIssuer | None

    @property
    def environment(self) -> Mapping[str, str]:
        """The settings by which the API trusts the issuer."""
        if self.issuer is None:
            return {}
        return {
            "WORKSPACE_OIDC_ISSUER": self.issuer.issuer,
            "WORKSPACE_OIDC_AUDIENCE": self.issuer.audience,
            "WORKSPACE_OIDC_JWKS": str(self.issuer.jwks_path),
        }

    def mint(self) -> str:
        """A session token of the first workspace's owner; empty with a provider of one's own."""
        return "" if self.issuer is None else self.issuer.mint(EMAIL, NAME)


def development_sessions(state: StateDir) -> DevelopmentSessions:
    """The issuer whose key lives in the state directory."""
    provided = os.environ.get("WORKSPACE_OIDC_ISSUER")
    return DevelopmentSessions(None if provided else ensure_issuer(state.root))

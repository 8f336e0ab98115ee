"""What a new state directory gets: a first workspace with a key, and an issuer of sessions."""

import os
from collections.abc import Mapping
from dataclasses import dataclass

from sqlalchemy import select

from cli.supervisor.state import StateDir
from models.api_keys.commands import issue_key
from models.api_keys.tables import api_key
from models.workspaces.commands import ensure_first_workspace
from runtime.crypto import KeyRing
from runtime.database import Database, UnitOfWork
from runtime.development_issuer import DevelopmentIssuer, ensure_issuer
from runtime.ids import parse_id

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


async def ensure_first_key(state: StateDir, database_url: str) -> tuple[str, str]:
    """The first workspace's id and a key of it: the one handed out before while it still works."""
    keys = KeyRing([part.strip() for part in state.secret_key().split(",")])
    database = Database(database_url, pool_size=1, application="workspace-up")
    try:
        async with database.transaction() as work:
            workspace_id, user_id = await ensure_first_workspace(work, EMAIL, NAME)
            token = state.secrets().get("apiKey")
            if not token or not await _still_opens(work, keys, str(token), str(workspace_id)):
                token = await issue_key(
                    work, keys, workspace_id=workspace_id, user_id=user_id, name="First key"
                )
    finally:
        await database.close()
    state.remember_secrets(workspaceId=str(workspace_id), apiKey=str(token))
    return str(workspace_id), str(token)


async def _still_opens(work: UnitOfWork, keys: KeyRing, token: str, workspace_id: str) -> bool:
    live = select(api_key.c.id).where(
        api_key.c.digest.in_(keys.digests(token.encode())),
        api_key.c.workspace_id == parse_id(workspace_id),
        api_key.c.revoked_at.is_(None),
    )
    return await work.scalar(live) is not None

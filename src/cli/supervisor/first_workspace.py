"""The first workspace of a state directory, a key with all of its rights, and a link to sign in."""

from cli.supervisor.development import EMAIL, NAME
from cli.supervisor.state import StateDir
from models.people.api_keys import issue_key, opens, renew_digest
from models.people.credentials import make_sign_in_link
from models.people.workspaces import ensure_first_workspace
from runtime.crypto import KeyRing
from runtime.database import Database


async def ensure_first_key(state: StateDir, database_url: str) -> None:
    """Keep the first workspace and a key of it in the state directory, and a fresh link to sign in.

    The key stays the same for as long as it works.
    """
    keys = KeyRing([part.strip() for part in state.secret_key().split(",")])
    database = Database(database_url, pool_size=1, application="workspace-up")
    try:
        async with database.transaction() as work:
            workspace_id, user_id = await ensure_first_workspace(work, EMAIL, NAME)
            token = state.secrets().get("apiKey")
            if not token or not await opens(work, keys, str(token), workspace_id):
                token = await issue_key(
                    work, keys, workspace_id=workspace_id, user_id=user_id, name="First key"
                )
            await renew_digest(work, keys, str(token))
            link = await make_sign_in_link(work, user_id)
    finally:
        await database.close()
    state.remember_secrets(workspaceId=str(workspace_id), apiKey=str(token), signInToken=link)

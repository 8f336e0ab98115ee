"""Reading a link before it is used."""

from sqlalchemy import select

from models.people.browser_sessions.errors import UnusableLinkError
from models.people.browser_sessions.rules import is_well_formed
from models.people.browser_sessions.tables import sign_in_link
from models.people.users.queries import display_name
from runtime.crypto import fingerprint
from runtime.database import UnitOfWork


async def person_of_link(work: UnitOfWork, token: str) -> str:
    """The name of the person whom a link signs in. Raises UnusableLinkError."""
    if not is_well_formed(token):
        raise UnusableLinkError
    link = sign_in_link.c
    live = link.digest == fingerprint(token.encode()), link.expires_at > work.now
    user_id = await work.scalar(select(link.user_id).where(*live))
    if user_id is None:
        raise UnusableLinkError
    return await display_name(work, user_id)

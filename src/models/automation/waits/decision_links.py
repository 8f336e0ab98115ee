"""Links by which a person who is asked decides an approval without a session (ADR 0087).

The token is signed and stored nowhere. It names the node, the person and its end; the rows say
whether it still counts.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from uuid import UUID

from models.automation.automation_runs.node_queries import due_time
from models.automation.waits.resume_urls import Address
from models.core.base import Id
from runtime import base64url
from runtime.crypto import KeyRing
from runtime.database import UnitOfWork

LIFETIME = timedelta(days=7)
"""The longest time after its notification in which a link counts."""

_PREFIX = "decision_"
"""The start by which logs know a token (`runtime.telemetry`)."""
_LABEL = b"decision link/1/"
_PARTS = (0, 32, 48, 64, 80, 88)
"""The places of signature, workspace, run, person and end; the names of the node follow."""
_MAX_TOKEN = 4_000


@dataclass(frozen=True, slots=True)
class DecisionLink:
    """A node that waits, the person it asks, and the end of the link."""

    workspace_id: Id
    address: Address
    user_id: Id
    expires_at: datetime


async def link_to(
    work: UnitOfWork, workspace_id: Id, address: Address, user_id: Id, since: datetime
) -> DecisionLink:
    """The link for a person who was notified at `since`: it ends with the wait, or before that."""
    latest = since + LIFETIME
    due = await due_time(work, workspace_id, address.run_id, address.node_id, address.scope_key)
    return DecisionLink(workspace_id, address, user_id, latest if due is None else min(due, latest))


def decision_path(keys: KeyRing, link: DecisionLink) -> str:
    """The page that asks for the decision; the same each time a mail is sent."""
    place = link.address
    message = b"".join(
        (
            link.workspace_id.bytes,
            place.run_id.bytes,
            link.user_id.bytes,
            int(link.expires_at.timestamp()).to_bytes(8),
            f"{place.node_id}\x00{place.scope_key}".encode(),
        )
    )
    return f"/approvals/{_PREFIX}{base64url.encode(keys.sign(_LABEL + message) + message)}"


def read_link(keys: KeyRing, token: str) -> DecisionLink | None:
    """The link that a token is, over or not; None when its signature is not ours."""
    if len(token) > _MAX_TOKEN or not token.startswith(_PREFIX):
        return None
    raw = base64url.decode(token.removeprefix(_PREFIX)) or b""
    signature, workspace, run, person, end = _cut(raw)
    if not keys.verify(_LABEL + raw[_PARTS[1] :], signature):
        return None
    node_id, _, scope_key = raw[_PARTS[-1] :].decode().partition("\x00")
    return DecisionLink(
        UUID(bytes=workspace),
        Address(UUID(bytes=run), node_id, scope_key),
        UUID(bytes=person),
        datetime.fromtimestamp(int.from_bytes(end), UTC),
    )


def _cut(raw: bytes) -> Sequence[bytes]:
    return [raw[start:end] for start, end in pairwise(_PARTS)]

"""URLs that resume a node without an account, and links that decide an approval.

Both are tokens that are signed and stored nowhere. The token of a URL names the node, and is known
before the node waits. The token of a link names the node, the person and its end; the rows say
whether it still counts.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from uuid import UUID

from models.automation.automation_runs.node_queries import due_time
from models.automation.automation_runs.rules import NodeStatus
from models.automation.automation_runs.shapes import NodeRunShape
from models.core.base import Id
from runtime import base64url
from runtime.crypto import KeyRing
from runtime.database import UnitOfWork

_URL_LABEL = b"resume url/1/"

_SIGNATURE_BYTES = 16
_ID_BYTES = 16

_MAX_URL_TOKEN = 2_000


@dataclass(frozen=True, slots=True)
class NodeAddress:
    """A node in a scope of a run."""

    run_id: Id
    node_id: str
    scope_key: str = ""


def resume_path(keys: KeyRing, address: NodeAddress) -> str:
    """The path that resumes the node; the same for ever."""
    names = f"{address.node_id}\x00{address.scope_key}".encode()
    message = address.run_id.bytes + names
    signature = keys.sign(_URL_LABEL + message)[:_SIGNATURE_BYTES]
    return f"/v1/resume/{base64url.encode(signature + message)}"


def read_resume_token(keys: KeyRing, token: str) -> NodeAddress | None:
    """The node that a token names; None when its signature is not ours."""
    if len(token) > _MAX_URL_TOKEN:
        return None
    raw = base64url.decode(token) or b""
    signature, message = raw[:_SIGNATURE_BYTES], raw[_SIGNATURE_BYTES:]
    if not keys.verify(_URL_LABEL + message, signature, _SIGNATURE_BYTES):
        return None
    node_id, _, scope_key = message[_ID_BYTES:].decode().partition("\x00")
    return NodeAddress(UUID(bytes=message[:_ID_BYTES]), node_id, scope_key)


def show_resume_urls(keys: KeyRing, nodes: Sequence[NodeRunShape]) -> None:
    """Add the path that resumes each node which waits for one to its metadata."""
    for node in nodes:
        waits = node.status == NodeStatus.WAITING and node.metadata.get("wait", {}).get("byUrl")
        if waits:
            address = NodeAddress(node.run_id, node.node_id, node.scope_key)
            node.metadata["wait"]["resumeUrl"] = resume_path(keys, address)


LINK_LIFETIME = timedelta(days=7)
"""The longest time after its notification in which a link counts."""

_LINK_PREFIX = "decision_"
"""The start by which logs know a token (`runtime.observability.logs`)."""

_LINK_LABEL = b"decision link/1/"

_LINK_PARTS = (0, 32, 48, 64, 80, 88)
"""The places of signature, workspace, run, person and end; the names of the node follow."""

_MAX_LINK_TOKEN = 4_000


@dataclass(frozen=True, slots=True)
class DecisionLink:
    """A node that waits, the person it asks, and the end of the link."""

    workspace_id: Id
    address: NodeAddress
    user_id: Id
    expires_at: datetime


async def decision_link_to(
    work: UnitOfWork, workspace_id: Id, address: NodeAddress, user_id: Id, since: datetime
) -> DecisionLink:
    """The link for a person who was notified at `since`: it ends with the wait, or before that."""
    latest = since + LINK_LIFETIME
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
    return (
        f"/approvals/{_LINK_PREFIX}{base64url.encode(keys.sign(_LINK_LABEL + message) + message)}"
    )


def read_decision_link(keys: KeyRing, token: str) -> DecisionLink | None:
    """The link that a token is, over or not; None when its signature is not ours."""
    if len(token) > _MAX_LINK_TOKEN or not token.startswith(_LINK_PREFIX):
        return None
    raw = base64url.decode(token.removeprefix(_LINK_PREFIX)) or b""
    signature, workspace, run, person, end = _cut_link(raw)
    if not keys.verify(_LINK_LABEL + raw[_LINK_PARTS[1] :], signature):
        return None
    node_id, _, scope_key = raw[_LINK_PARTS[-1] :].decode().partition("\x00")
    return DecisionLink(
        UUID(bytes=workspace),
        NodeAddress(UUID(bytes=run), node_id, scope_key),
        UUID(bytes=person),
        datetime.fromtimestamp(int.from_bytes(end), UTC),
    )


def _cut_link(raw: bytes) -> Sequence[bytes]:
    return [raw[start:end] for start, end in pairwise(_LINK_PARTS)]

"""URLs that resume a node without an account.

The token names the node and is signed. It is stored nowhere, and is known before the node waits.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

from models.automation.automation_runs.rules import NodeStatus
from models.automation.automation_runs.shapes import NodeRunShape
from models.core.base import Id
from runtime import base64url
from runtime.crypto import KeyRing

_LABEL = b"resume url/1/"
_SIGNATURE_BYTES = 16
_ID_BYTES = 16
_MAX_TOKEN = 2_000


@dataclass(frozen=True, slots=True)
class Address:
    """A node in a scope of a run."""

    run_id: Id
    node_id: str
    scope_key: str = ""


def resume_path(keys: KeyRing, address: Address) -> str:
    """The path that resumes the node; the same for ever."""
    names = f"{address.node_id}\x00{address.scope_key}".encode()
    message = address.run_id.bytes + names
    signature = keys.sign(_LABEL + message)[:_SIGNATURE_BYTES]
    return f"/v1/resume/{base64url.encode(signature + message)}"


def read_token(keys: KeyRing, token: str) -> Address | None:
    """The node that a token names; None when its signature is not ours."""
    if len(token) > _MAX_TOKEN:
        return None
    raw = base64url.decode(token) or b""
    signature, message = raw[:_SIGNATURE_BYTES], raw[_SIGNATURE_BYTES:]
    if not keys.verify(_LABEL + message, signature, _SIGNATURE_BYTES):
        return None
    node_id, _, scope_key = message[_ID_BYTES:].decode().partition("\x00")
    return Address(UUID(bytes=message[:_ID_BYTES]), node_id, scope_key)


def show_resume_urls(keys: KeyRing, nodes: Sequence[NodeRunShape]) -> None:
    """Add the path that resumes each node which waits for one to its metadata."""
    for node in nodes:
        waits = node.status == NodeStatus.WAITING and node.metadata.get("wait", {}).get("byUrl")
        if waits:
            address = Address(node.run_id, node.node_id, node.scope_key)
            node.metadata["wait"]["resumeUrl"] = resume_path(keys, address)

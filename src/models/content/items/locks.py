"""The lock of a workspace's tree of items, an advisory lock of the transaction.

Adding an item takes it shared; moving, deleting and restoring take it exclusively. So nothing is
put below an item that goes to the trash meanwhile, and two moves cannot together form a cycle.
"""

from sqlalchemy import BigInteger, bindparam, func, select

from models.core.base import Id
from runtime.database import UnitOfWork
from runtime.prepared_statement import PreparedStatement

_KEY = bindparam("key", type_=BigInteger)
_SHARED = PreparedStatement(select(func.pg_advisory_xact_lock_shared(_KEY)))
_EXCLUSIVE = PreparedStatement(select(func.pg_advisory_xact_lock(_KEY)))


async def share_tree(work: UnitOfWork, workspace_id: Id) -> None:
    """Keep the shape of a workspace's tree as it is until the transaction ends."""
    await _SHARED.rows(work, {"key": _key(workspace_id)})


async def own_tree(work: UnitOfWork, workspace_id: Id) -> None:
    """Let nobody else change the tree until the transaction ends."""
    await _EXCLUSIVE.rows(work, {"key": _key(workspace_id)})


def _key(workspace_id: Id) -> int:
    """A key from the last 8 bytes of the id, which are random in a UUIDv7."""
    return int.from_bytes(workspace_id.bytes[8:], "big", signed=True)

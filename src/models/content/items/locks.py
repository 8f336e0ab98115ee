"""The lock between those who hang things into a tree and those who change its shape.

Who adds an item shares it; who moves, deletes or restores takes it alone. So nothing is put below
an item that goes to the trash meanwhile, and two moves cannot together make a circle.
"""

from sqlalchemy import BigInteger, bindparam, func, select

from models.core.base import Id
from runtime.database import UnitOfWork
from runtime.prepared_statement import PreparedStatement

_KEY = bindparam("key", type_=BigInteger)
_SHARED = PreparedStatement(select(func.pg_advisory_xact_lock_shared(_KEY)))
_ALONE = PreparedStatement(select(func.pg_advisory_xact_lock(_KEY)))


async def share_tree(work: UnitOfWork, workspace_id: Id) -> None:
    """Keep the shape of a workspace's tree as it is until the transaction ends."""
    await _SHARED.rows(work, {"key": _key(workspace_id)})


async def own_tree(work: UnitOfWork, workspace_id: Id) -> None:
    """Wait for those who add items, and keep new ones out until the transaction ends."""
    await _ALONE.rows(work, {"key": _key(workspace_id)})


def _key(workspace_id: Id) -> int:
    """The last 8 bytes of a UUIDv7 are random."""
    return int.from_bytes(workspace_id.bytes[8:], "big", signed=True)

"""A small database for nodes to work on."""

from models.core.base import Id
from models.data.databases.shapes import CreateDatabase
from models.data.databases.store import create_database
from tests.support.engine import Engine

FIELDS = [
    {"label": "Code", "kind": "text", "required": True},
    {"label": "Price", "kind": "number", "settings": {"min": 0}},
]


async def make_table(engine: Engine) -> Id:
    """A database with the fields title, code and price."""
    body = CreateDatabase.model_validate({"label": "Goods", "fields": FIELDS})
    async with engine.database.transaction() as work:
        return (await create_database(work, engine.actor, body)).id

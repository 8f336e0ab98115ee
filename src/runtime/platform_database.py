"""The database of a process, as its settings name it."""

from psycopg.conninfo import conninfo_to_dict

from runtime.database import Database, libpq_url
from runtime.sessions import PATIENCE
from runtime.settings import Settings

_PATIENCE_OF_ANSWERS = 0.7
"""Seconds: a request is refused within a second when PostgreSQL does not answer."""


def platform_database(settings: Settings, application: str, *, answers: bool = False) -> Database:
    """Its transactions go through the pooler where there is one; `application` names the process.

    A process that `answers` requests does not wait long for a PostgreSQL that does not answer.
    Who listens or migrates needs a session of its own, and uses `settings.database_url`.
    """
    pooler = settings.database_pooler_url
    url = (pooler or settings.database_url).get_secret_value()
    # Where the URL names several servers, the first may be one that is down.
    is_one = "," not in str(conninfo_to_dict(libpq_url(url)).get("host", ""))
    return Database(
        url,
        pool_size=settings.database_pool_size,
        application=application,
        pooled=pooler is not None,
        patience=_PATIENCE_OF_ANSWERS if answers and is_one else PATIENCE,
    )

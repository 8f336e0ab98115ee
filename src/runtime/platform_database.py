"""The database of a process, as its settings name it."""

from runtime.database import Database
from runtime.settings import Settings


def platform_database(settings: Settings, application: str) -> Database:
    """Its transactions go through the pooler where there is one; `application` names the process.

    Who listens or migrates needs a session of its own, and uses `settings.database_url`.
    """
    pooler = settings.database_pooler_url
    return Database(
        (pooler or settings.database_url).get_secret_value(),
        pool_size=settings.database_pool_size,
        application=application,
        pooled=pooler is not None,
    )

"""Checks of PostgreSQL, its pooler, the schema, and the secret key of what it holds."""

import asyncio

from cli.doctor.findings import Finding, warning
from runtime.settings import Settings

OLDEST = 18
"""The version of PostgreSQL that migrations need."""


async def check_database(settings: Settings) -> Finding:
    """Look whether PostgreSQL answers, and which version it is."""
    import psycopg

    from runtime.database import libpq_url

    url = libpq_url(settings.database_url.get_secret_value())
    try:
        async with await psycopg.AsyncConnection.connect(url, connect_timeout=5) as connection:
            version = connection.info.server_version
    except psycopg.OperationalError:
        return Finding("PostgreSQL", "does not answer", "check DATABASE_URL, and that it is up")
    remedy = None if version // 10_000 >= OLDEST else f"use PostgreSQL {OLDEST} or newer"
    return Finding("PostgreSQL", f"version {version // 10_000}.{version % 10_000}", remedy)


async def check_pooler(settings: Settings) -> Finding:
    """Look whether the pooler sets the limits that it does not let others set (ADR 0109)."""
    import psycopg

    from runtime.database import libpq_url
    from runtime.sessions import LIMITS

    subject, pooler = "Pooler", settings.database_pooler_url
    assert pooler is not None
    try:
        async with await psycopg.AsyncConnection.connect(
            libpq_url(pooler.get_secret_value()), connect_timeout=5, prepare_threshold=None
        ) as connection:
            query = "SELECT name, current_setting(name) FROM unnest(%s::text[]) AS name"
            rows = await (await connection.execute(query, ([*LIMITS],))).fetchall()
    except psycopg.OperationalError:
        return Finding(subject, "does not answer", "check DATABASE_POOLER_URL, and that it is up")
    limits = ", ".join(f"{name} {value}" for name, value in rows)
    if dict(rows) == LIMITS:
        return Finding(subject, limits)
    wanted = " ".join(f"SET {name} TO '{value}';" for name, value in LIMITS.items())
    return Finding(subject, limits, f"let its connect_query say: {wanted}")


async def check_schema(settings: Settings) -> Finding:
    """Look whether the schema is that of this build."""
    from sqlalchemy.exc import SQLAlchemyError

    from models.migrations.runner import current, head

    try:
        revision = await asyncio.to_thread(current, settings.database_url.get_secret_value())
    except SQLAlchemyError:
        return Finding("Schema", "cannot be read", "reach the database first")
    if revision == head():
        return Finding("Schema", f"revision {revision}")
    return Finding("Schema", f"revision {revision}, not {head()}", "run `workspace migrate`")


async def check_secret_key(settings: Settings) -> Finding:
    """Look whether the secret key is that of the database, and whether an older one is in use."""
    import psycopg
    from sqlalchemy.exc import DBAPIError

    from models.core.secret_keys.queries import known_keys
    from models.core.secret_keys.rules import PAGE, WrongSecretKeyError, check_keys, named
    from runtime.crypto import KeyRing
    from runtime.database import Database

    subject, keys = "Secret key", KeyRing(settings.secret_keys)
    database = Database(settings.database_url.get_secret_value(), pool_size=1)
    try:
        async with database.transaction() as work:
            recorded = [*await known_keys(work)]
        check_keys(recorded, keys.ids)
    except WrongSecretKeyError:
        fact = f"{named(keys.ids)}, and the database has values under {named(recorded)}"
        return Finding(
            subject, fact, f"set WORKSPACE_SECRET_KEY to the keys of the database ({PAGE})"
        )
    except (psycopg.Error, DBAPIError):
        return Finding(subject, "cannot be checked", "reach the database and its schema first")
    finally:
        await database.close()
    current = named([keys.current_id])
    older = [one for one in recorded if one != keys.current_id]
    if recorded and keys.current_id not in recorded:
        return warning(subject, f"{current}, not in use yet", "restart the API and the workers")
    if older:
        remedy = f"run `workspace rotate-secret`, then remove the older one ({PAGE})"
        return warning(subject, f"{current}; older: {named(older)}", remedy)
    return Finding(subject, current)

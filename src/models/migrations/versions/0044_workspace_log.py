"""The log of a workspace is written by the tables it tells of; tickets of realtime connections.

Revision ID: 0044
Revises: 0043
"""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0044"
down_revision = "0043"
branch_labels = None
depends_on = None

MOST_APART = 500
"""Rows of one statement that are told one by one; more are told together."""

NUMBERS = "'workspace_event_number'::regclass"

NUMBER = f"""CREATE FUNCTION workspace_event_number() RETURNS trigger LANGUAGE plpgsql AS $body$
BEGIN
    -- Once for each workspace a transaction tells of. Numbers it takes from here on are greater than
    -- the one in its lock, so a reader knows up to where the log is whole (docs/adr/0046).
    IF current_setting('workspace.telling', true) IS DISTINCT FROM NEW.workspace_id::text THEN
        PERFORM set_config('workspace.telling', NEW.workspace_id::text, true);
        PERFORM pg_advisory_xact_lock_shared(
            hashtext(NEW.workspace_id::text),
            (coalesce(pg_sequence_last_value({NUMBERS}), 0) & 2147483647)::integer
        );
        -- Whoever writes hears of it, and wakes the readers after the commit.
        RAISE NOTICE USING MESSAGE = 'workspace_event', DETAIL = NEW.workspace_id::text,
            ERRCODE = 'WS001';
    END IF;
    NEW.seq := nextval({NUMBERS});
    RETURN NEW;
END
$body$"""

HEADS = f"""CREATE FUNCTION workspace_event_heads(workspace_ids uuid[])
RETURNS TABLE (workspace_id uuid, head bigint) LANGUAGE plpgsql AS $body$
DECLARE
    last bigint := coalesce(pg_sequence_last_value({NUMBERS}), 0);
BEGIN
    -- The locks are looked at after the number was read: who is not among them has committed, or
    -- takes greater numbers.
    RETURN QUERY
    SELECT place.id, least(last, min(last - held.behind))
    FROM unnest(workspace_ids) AS place (id)
    LEFT JOIN (
        SELECT classid::bigint AS place, (last - objid::bigint) & 2147483647 AS behind
        FROM pg_locks
        WHERE locktype = 'advisory' AND objsubid = 2
            AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
    ) AS held ON held.place = hashtext(place.id::text)::bigint & 4294967295
        -- Half of the circle is ahead: that writer began after the number was read.
        AND held.behind < 1073741824
    GROUP BY place.id;
END
$body$"""

ACTOR = """CREATE FUNCTION workspace_actor(OUT kind text, OUT user_id uuid) LANGUAGE plpgsql AS $body$
DECLARE
    told text := coalesce(nullif(current_setting('workspace.actor', true), ''), 'system:');
BEGIN
    kind := split_part(told, ':', 1);
    user_id := nullif(split_part(told, ':', 2), '')::uuid;
END
$body$"""

TELL = """CREATE FUNCTION tell_workspace(
    workspace_id uuid, type text, item_id uuid, data jsonb, audience_user_id uuid DEFAULT NULL
) RETURNS void LANGUAGE sql AS $body$
    INSERT INTO workspace_event
        (workspace_id, type, at, actor_type, actor_user_id, item_id, audience_user_id, data)
    SELECT workspace_id, type, clock_timestamp(), kind, user_id, item_id, audience_user_id, data
    FROM workspace_actor()
$body$"""

_INSERT = """INSERT INTO workspace_event
        (workspace_id, type, at, actor_type, actor_user_id, item_id, data)"""

ITEMS_CREATED = f"""CREATE FUNCTION log_items_created() RETURNS trigger LANGUAGE plpgsql AS $body$
BEGIN
    {_INSERT}
    SELECT one.workspace_id, 'item.created', clock_timestamp(), actor.kind, actor.user_id, one.id,
        jsonb_strip_nulls(jsonb_build_object(
            'itemId', one.id, 'kind', one.kind, 'parentItemId', one.parent_item_id
        ))
    FROM after_rows AS one CROSS JOIN workspace_actor() AS actor
    -- Of very many, those at the top stand for what is below them.
    WHERE (SELECT count(*) FROM (SELECT FROM after_rows LIMIT {MOST_APART + 1}) AS few) <= {MOST_APART}
        OR NOT EXISTS (SELECT FROM after_rows AS above WHERE above.id = one.parent_item_id);
    RETURN NULL;
END
$body$"""

ITEMS_CHANGED = f"""CREATE FUNCTION log_items_changed() RETURNS trigger LANGUAGE plpgsql AS $body$
DECLARE
    few boolean := (SELECT count(*) FROM (SELECT FROM after_rows LIMIT {MOST_APART + 1}) AS few)
        <= {MOST_APART};
BEGIN
    {_INSERT}
    SELECT fresh.workspace_id, told.type, clock_timestamp(), actor.kind, actor.user_id, fresh.id,
        jsonb_strip_nulls(jsonb_build_object(
            'itemId', fresh.id, 'kind', fresh.kind, 'parentItemId', fresh.parent_item_id
        ))
    FROM after_rows AS fresh JOIN before_rows AS past ON past.id = fresh.id
    CROSS JOIN workspace_actor() AS actor
    CROSS JOIN LATERAL (SELECT CASE
        WHEN past.deleted_at IS NULL AND fresh.deleted_at IS NOT NULL THEN 'item.deleted'
        WHEN past.deleted_at IS NOT NULL AND fresh.deleted_at IS NULL THEN 'item.restored'
        WHEN fresh.deleted_at IS NOT NULL THEN NULL
        WHEN past.parent_item_id IS DISTINCT FROM fresh.parent_item_id THEN 'item.moved'
        WHEN past.access_mode <> fresh.access_mode THEN 'item.access_changed'
        WHEN past.archived AND NOT fresh.archived THEN 'item.unarchived'
        WHEN fresh.archived AND NOT past.archived THEN 'item.archived'
        WHEN past IS DISTINCT FROM fresh THEN 'item.updated'
    END AS type) AS told
    WHERE told.type IS NOT NULL
        AND (few OR NOT EXISTS (SELECT FROM after_rows AS above WHERE above.id = fresh.parent_item_id));
    {_INSERT}
    SELECT fresh.workspace_id,
        CASE WHEN fresh.deleted_at IS NULL THEN 'database.restored' ELSE 'database.deleted' END,
        clock_timestamp(), actor.kind, actor.user_id, fresh.id,
        jsonb_build_object('databaseId', fresh.target_id)
    FROM after_rows AS fresh JOIN before_rows AS past ON past.id = fresh.id
    CROSS JOIN workspace_actor() AS actor
    WHERE fresh.kind = 'database' AND fresh.target_id IS NOT NULL
        AND (fresh.deleted_at IS NULL) <> (past.deleted_at IS NULL)
    LIMIT {MOST_APART};
    RETURN NULL;
END
$body$"""

RECORDS = f"""CREATE FUNCTION log_records() RETURNS trigger LANGUAGE plpgsql AS $body$
BEGIN
    IF (SELECT count(*) FROM (SELECT FROM after_rows LIMIT {MOST_APART + 1}) AS few) <= {MOST_APART} THEN
        {_INSERT}
        SELECT one.workspace_id, 'record.' || one.kind, one.at, one.principal_type,
            CASE WHEN one.principal_type <> 'system' OR EXISTS
                (SELECT FROM app_user WHERE app_user.id = one.actor_user_id) THEN one.actor_user_id END,
            database.item_id,
            CASE WHEN one.run_id IS NULL
                THEN jsonb_build_object('databaseId', one.database_id, 'recordId', one.record_id)
                ELSE jsonb_build_object('databaseId', one.database_id, 'recordId', one.record_id, 'runId', one.run_id)
            END
        FROM after_rows AS one JOIN database ON database.id = one.database_id
        WHERE database.item_id IS NOT NULL AND database.workspace_id = one.workspace_id;
    ELSE
        {_INSERT}
        SELECT one.workspace_id, 'record.' || one.kind, max(one.at), one.principal_type, NULL,
            database.item_id,
            jsonb_build_object('databaseId', one.database_id, 'count', count(*))
        FROM after_rows AS one JOIN database ON database.id = one.database_id
        WHERE database.item_id IS NOT NULL AND database.workspace_id = one.workspace_id
        GROUP BY one.workspace_id, one.database_id, one.kind, one.principal_type, database.item_id;
    END IF;
    RETURN NULL;
END
$body$"""

DATABASE = """CREATE FUNCTION log_database() RETURNS trigger LANGUAGE plpgsql AS $body$
DECLARE
    type text := 'database.updated';
BEGIN
    IF TG_OP = 'INSERT' OR OLD.item_id IS NULL THEN
        type := 'database.created';
    END IF;
    PERFORM tell_workspace(
        NEW.workspace_id, type, NEW.item_id, jsonb_build_object('databaseId', NEW.id)
    );
    RETURN NULL;
END
$body$"""


def part_of_database(
    table: str, word: str, ids: str, columns: str, condition: str = "true"
) -> str:
    """The function that tells that parts of a database changed, and not only what we derive."""
    names = "workspace_id, database_id, id"
    shown = f"SELECT {names}, ({columns})::text FROM"
    source = {
        "INSERT": f"SELECT {names} FROM after_rows WHERE {condition}",
        "DELETE": f"SELECT {names} FROM before_rows WHERE {condition}",
        "UPDATE": f"SELECT {names} FROM ({shown} after_rows WHERE {condition}"
        f" EXCEPT {shown} before_rows) AS changed",
    }
    body = "\n".join(
        f"""    IF TG_OP = '{operation}' THEN
        {_INSERT}
        SELECT database.workspace_id, 'database.{word}', clock_timestamp(), actor.kind,
            actor.user_id, database.item_id, jsonb_build_object(
                'databaseId', database.id, '{ids}', jsonb_agg(part.id)
            )
        FROM ({rows}) AS part
        JOIN database ON database.id = part.database_id
            AND database.workspace_id = part.workspace_id
        JOIN item ON item.id = database.item_id AND item.deleted_at IS NULL
        CROSS JOIN workspace_actor() AS actor
        GROUP BY database.workspace_id, database.id, actor.kind, actor.user_id, database.item_id;
    END IF;"""
        for operation, rows in source.items()
    )
    return (
        f"CREATE FUNCTION log_{table}s() RETURNS trigger LANGUAGE plpgsql AS $body$\n"
        f"BEGIN\n{body}\n    RETURN NULL;\nEND\n$body$"
    )


PUBLISHED = """CREATE FUNCTION log_published() RETURNS trigger LANGUAGE plpgsql AS $body$
BEGIN
    PERFORM tell_workspace(
        NEW.workspace_id, 'automation.published', NEW.item_id,
        jsonb_build_object('automationId', NEW.id, 'versionId', NEW.published_version_id)
    );
    RETURN NULL;
END
$body$"""

RUN = f"""CREATE FUNCTION log_run() RETURNS trigger LANGUAGE plpgsql AS $body$
BEGIN
    {_INSERT}
    SELECT NEW.workspace_id, 'run.status', clock_timestamp(), 'system', NEW.created_by_user_id,
        automation.item_id, jsonb_build_object(
            'automationId', NEW.automation_id, 'runId', NEW.id, 'status', NEW.status,
            'source', NEW.source
        )
    FROM automation WHERE automation.id = NEW.automation_id;
    RETURN NULL;
END
$body$"""

ACTION_RUN = f"""CREATE FUNCTION log_action_run() RETURNS trigger LANGUAGE plpgsql AS $body$
BEGIN
    {_INSERT}
    SELECT NEW.workspace_id, 'run.status', clock_timestamp(), 'system', NULL,
        action.item_id, jsonb_build_object(
            'actionId', NEW.action_id, 'runId', NEW.id, 'status', NEW.status
        )
    FROM action WHERE action.id = NEW.action_id;
    RETURN NULL;
END
$body$"""

NOTIFICATION = """CREATE FUNCTION log_notification() RETURNS trigger LANGUAGE plpgsql AS $body$
BEGIN
    PERFORM tell_workspace(
        NEW.workspace_id, 'notification.created', NULL,
        jsonb_build_object('notificationId', NEW.id, 'kind', NEW.kind), NEW.user_id
    );
    RETURN NULL;
END
$body$"""

MEMBER = """CREATE FUNCTION log_member() RETURNS trigger LANGUAGE plpgsql AS $body$
BEGIN
    IF TG_OP = 'DELETE' THEN
        PERFORM tell_workspace(
            OLD.workspace_id, 'member.removed', NULL, jsonb_build_object('userId', OLD.user_id)
        );
    ELSE
        PERFORM tell_workspace(
            NEW.workspace_id,
            CASE TG_OP WHEN 'INSERT' THEN 'member.added' ELSE 'member.updated' END,
            NULL, jsonb_build_object('userId', NEW.user_id, 'role', NEW.role)
        );
    END IF;
    RETURN NULL;
END
$body$"""

WORKSPACE = """CREATE FUNCTION log_workspace() RETURNS trigger LANGUAGE plpgsql AS $body$
BEGIN
    PERFORM tell_workspace(
        NEW.id,
        CASE WHEN NEW.deleted_at IS NULL THEN 'workspace.updated' ELSE 'workspace.deleted' END,
        NULL, '{}'
    );
    RETURN NULL;
END
$body$"""

_NEW_ROWS = "REFERENCING NEW TABLE AS after_rows FOR EACH STATEMENT"
_OLD_ROWS = "REFERENCING OLD TABLE AS before_rows FOR EACH STATEMENT"
_BOTH = "REFERENCING OLD TABLE AS before_rows NEW TABLE AS after_rows FOR EACH STATEMENT"
_STATUS = "FOR EACH ROW WHEN (OLD.status IS DISTINCT FROM NEW.status)"
_PLACED = "FOR EACH ROW WHEN (NEW.item_id IS NOT NULL)"

TRIGGERS = {
    # name: (table, when, for what, function)
    "item_created": ("item", "AFTER INSERT", _NEW_ROWS, "log_items_created"),
    "item_changed": ("item", "AFTER UPDATE", _BOTH, "log_items_changed"),
    "record_changed": ("record_change", "AFTER INSERT", _NEW_ROWS, "log_records"),
    "database_created": ("database", "AFTER INSERT", _PLACED, "log_database"),
    "database_changed": (
        "database",
        "AFTER UPDATE OF item_id, key, label, description, settings, record_layout",
        _PLACED,
        "log_database",
    ),
    "field_created": ("field", "AFTER INSERT", _NEW_ROWS, "log_fields"),
    "field_changed": ("field", "AFTER UPDATE", _BOTH, "log_fields"),
    "field_removed": ("field", "AFTER DELETE", _OLD_ROWS, "log_fields"),
    "view_created": ("view", "AFTER INSERT", _NEW_ROWS, "log_views"),
    "view_changed": ("view", "AFTER UPDATE", _BOTH, "log_views"),
    "view_removed": ("view", "AFTER DELETE", _OLD_ROWS, "log_views"),
    "automation_published": (
        "automation",
        "AFTER UPDATE OF published_version_id",
        "FOR EACH ROW WHEN (NEW.published_version_id IS NOT NULL"
        " AND NEW.published_version_id IS DISTINCT FROM OLD.published_version_id)",
        "log_published",
    ),
    "automation_run_accepted": ("automation_run", "AFTER INSERT", "FOR EACH ROW", "log_run"),
    "automation_run_moved": ("automation_run", "AFTER UPDATE OF status", _STATUS, "log_run"),
    "action_run_accepted": ("action_run", "AFTER INSERT", "FOR EACH ROW", "log_action_run"),
    "action_run_moved": ("action_run", "AFTER UPDATE OF status", _STATUS, "log_action_run"),
    "notification_written": ("notification", "AFTER INSERT", "FOR EACH ROW", "log_notification"),
    "member_changed": (
        "workspace_member",
        "AFTER INSERT OR DELETE OR UPDATE OF role",
        "FOR EACH ROW",
        "log_member",
    ),
    "workspace_changed": (
        "workspace",
        "AFTER UPDATE OF name, slug, icon, deleted_at",
        "FOR EACH ROW",
        "log_workspace",
    ),
}

FUNCTIONS = (
    NUMBER,
    HEADS,
    ACTOR,
    TELL,
    ITEMS_CREATED,
    ITEMS_CHANGED,
    RECORDS,
    DATABASE,
    part_of_database(
        "field",
        "fields_changed",
        "fieldIds",
        "key, label, kind, required, default_value, options, settings, position",
    ),
    part_of_database(
        "view",
        "views_changed",
        "viewIds",
        "key, label, kind, placement, manifest, scope, locked, position",
        "scope <> 'personal'",
    ),
    PUBLISHED,
    RUN,
    ACTION_RUN,
    NOTIFICATION,
    MEMBER,
    WORKSPACE,
)


def upgrade() -> None:
    op.execute("ALTER TABLE workspace_event ALTER COLUMN seq DROP IDENTITY")
    op.alter_column("workspace_event", "seq", server_default=sa.text("0"))
    op.execute("CREATE SEQUENCE workspace_event_number OWNED BY workspace_event.seq")
    op.execute(
        "SELECT setval('workspace_event_number', max(seq)) FROM workspace_event HAVING count(*) > 0"
    )
    op.add_column("workspace_event", sa.Column("item_id", sa.Uuid(), nullable=True))
    op.drop_index("ix_workspace_event_at", table_name="workspace_event")
    op.drop_constraint(
        "fk_workspace_event_workspace_id_workspace", "workspace_event", type_="foreignkey"
    )
    op.create_table(
        "realtime_ticket",
        sa.Column("digest", postgresql.BYTEA(), nullable=False),
        sa.Column("workspace_id", sa.Uuid(), nullable=False),
        sa.Column("user_id", sa.Uuid(), nullable=False),
        sa.Column("expires_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("session_expires_at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("digest", name=op.f("pk_realtime_ticket")),
        prefixes=["UNLOGGED"],
    )
    for function in FUNCTIONS:
        op.execute(function)
    op.execute(
        "CREATE TRIGGER workspace_event_number BEFORE INSERT ON workspace_event"
        " FOR EACH ROW EXECUTE FUNCTION workspace_event_number()"
    )
    for name, (table, when, what, function) in TRIGGERS.items():
        op.execute(f"CREATE TRIGGER log_{name} {when} ON {table} {what} EXECUTE FUNCTION {function}()")


def downgrade() -> None:
    for name, (table, *_) in TRIGGERS.items():
        op.execute(f"DROP TRIGGER log_{name} ON {table}")
    op.execute("DROP TRIGGER workspace_event_number ON workspace_event")
    for function in reversed(FUNCTIONS):
        name = function.split("CREATE FUNCTION ", 1)[1].split("(", 1)[0]
        op.execute(f"DROP FUNCTION {name}")
    op.drop_table("realtime_ticket")
    op.create_foreign_key(
        "fk_workspace_event_workspace_id_workspace",
        "workspace_event",
        "workspace",
        ["workspace_id"],
        ["id"],
    )
    op.create_index("ix_workspace_event_at", "workspace_event", ["at"])
    op.drop_column("workspace_event", "item_id")
    op.execute("DROP SEQUENCE workspace_event_number")
    op.alter_column("workspace_event", "seq", server_default=None)
    op.execute("ALTER TABLE workspace_event ALTER COLUMN seq ADD GENERATED ALWAYS AS IDENTITY")
    op.execute(
        "SELECT setval(pg_get_serial_sequence('workspace_event', 'seq'), max(seq))"
        " FROM workspace_event HAVING count(*) > 0"
    )

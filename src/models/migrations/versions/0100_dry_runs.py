"""Triggers capture the rows of a dry run, which takes no number of the workspace log (ADR 0145)."""

from alembic import op

revision = "0100"
down_revision = "0099"
branch_labels = None
depends_on = None

CAPTURED = (
    # The table, what it belongs to and the column that names it, and the columns of its key.
    ("workspace", "", "", "id"),
    ("workspace_member", "", "", "user_id"),
    ("api_key", "", "", "id"),
    ("invitation", "", "", "id"),
    ("experiment", "", "", "id"),
    ("audience_segment", "", "", "key"),
    ("release_notice", "", "", "id"),
    ("notification_preference", "", "", "user_id"),
    ("home_layout", "", "", "user_id"),
    ("webhook_endpoint", "", "", "id"),
    ("push_device", "", "", "id"),
    ("notification", "item", "item_id", "id"),
    ("delivery", "", "", "id"),
    ("trigger_event", "", "", "id"),
    ("job", "", "", "id"),
    ("pause", "", "", "id"),
    ("outbox", "", "", "id"),
    ("item", "item", "id", "id"),
    ("item_grant", "item", "item_id", "item_id", "user_id"),
    ("file", "", "", "id"),
    ("surface", "surface", "id", "id"),
    ("block", "surface", "surface_id", "id"),
    ("surface_comment", "surface", "surface_id", "id"),
    ("share_link", "item", "workspace_item_id", "id"),
    ("database", "item", "item_id", "id"),
    ("field", "database", "database_id", "id"),
    ("view", "database", "database_id", "id"),
    ("record", "database", "database_id", "id"),
    ("record_link", "record", "record_id", "record_id", "field_id", "target_id"),
    ("record_template", "database", "database_id", "id"),
    ("record_comment", "record", "record_id", "id"),
    ("form", "item", "item_id", "id"),
    ("time_entry", "item", "item_id", "id"),
    ("connection", "", "", "id"),
    ("provider_switch", "", "", "provider"),
    ("data_source", "item", "item_id", "id"),
    ("data_source_run", "data_source", "data_source_id", "id"),
    ("mount", "item", "item_id", "id"),
    ("outbound_place", "", "", "id"),
    ("action", "item", "item_id", "id"),
    ("action_run", "action", "action_id", "id"),
    ("automation", "item", "item_id", "id"),
    ("automation_version", "automation", "automation_id", "id"),
    ("automation_run", "automation", "automation_id", "id"),
    ("debounced_change", "automation", "automation_id", "automation_id", "record_id"),
    ("circuit_breaker", "automation", "automation_id", "automation_id"),
    ("incident", "automation", "automation_id", "id"),
    ("run_operation", "", "", "id"),
    ("saved_run_filter", "", "", "id"),
    ("alert_rule", "", "", "id"),
    ("workspace_secret", "", "", "name"),
    ("change_set", "", "", "id"),
    ("legacy_import_run", "", "", "id"),
    ("model_settings", "", "", "workspace_id"),
)

CAPTURE = """
CREATE UNLOGGED TABLE dry_run_change (
    transaction_id BIGINT NOT NULL,
    position BIGINT GENERATED ALWAYS AS IDENTITY,
    source VARCHAR NOT NULL,
    subject VARCHAR NOT NULL,
    workspace_id UUID,
    place VARCHAR,
    place_id UUID,
    before JSONB,
    after JSONB,
    CONSTRAINT pk_dry_run_change PRIMARY KEY (transaction_id, position)
);

CREATE FUNCTION item_of_place(place text, named uuid) RETURNS uuid LANGUAGE sql STABLE AS $$
    SELECT CASE place
        WHEN 'item' THEN named
        WHEN 'database' THEN (SELECT item_id FROM database WHERE id = named)
        WHEN 'record' THEN (
            SELECT database.item_id FROM record
            JOIN database ON database.id = record.database_id WHERE record.id = named
        )
        WHEN 'surface' THEN (
            SELECT coalesce(surface.item_id, database.item_id) FROM surface
            LEFT JOIN database ON database.id = surface.database_id WHERE surface.id = named
        )
        WHEN 'automation' THEN (SELECT item_id FROM automation WHERE id = named)
        WHEN 'action' THEN (SELECT item_id FROM action WHERE id = named)
        WHEN 'data_source' THEN (SELECT item_id FROM data_source WHERE id = named)
    END
$$;

CREATE FUNCTION capture_dry_run() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    before jsonb;
    after jsonb;
    written jsonb;
BEGIN
    IF TG_OP <> 'INSERT' THEN
        before := to_jsonb(OLD);
        written := before;
    END IF;
    IF TG_OP <> 'DELETE' THEN
        after := to_jsonb(NEW);
        written := after;
    END IF;
    INSERT INTO dry_run_change
        (transaction_id, source, subject, workspace_id, place, place_id, before, after)
    VALUES (
        pg_current_xact_id()::text::bigint, TG_TABLE_NAME,
        CASE TG_NARGS
            WHEN 3 THEN written ->> TG_ARGV[2]
            ELSE concat_ws(
                '/', written ->> TG_ARGV[2], written ->> TG_ARGV[3], written ->> TG_ARGV[4]
            )
        END,
        (written ->> 'workspace_id')::uuid, TG_ARGV[0], (written ->> TG_ARGV[1])::uuid,
        before, after
    );
    RETURN NULL;
END
$$;
"""

TRIGGER = """
CREATE TRIGGER capture_dry_run AFTER INSERT OR UPDATE OR DELETE ON {table} FOR EACH ROW
    WHEN (current_setting('workspace.dry_run', true) = 'on')
    EXECUTE FUNCTION capture_dry_run({arguments});
"""

OF_DRY_RUNS = """\
    -- Nobody reads an event of a dry run: it takes no number that a reader of the log would miss.
    IF current_setting('workspace.dry_run', true) = 'on' THEN
        NEW.seq := -1 - floor(random() * 9e18)::bigint;
        RETURN NEW;
    END IF;
"""

NUMBER = """
CREATE OR REPLACE FUNCTION workspace_event_number() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
{of_dry_runs}    -- Once for each workspace a transaction tells of. Numbers it takes from here on are greater
    -- than the one in its lock, so a reader knows up to where the log is whole.
    IF current_setting('workspace.logged', true) IS DISTINCT FROM NEW.workspace_id::text THEN
        PERFORM set_config('workspace.logged', NEW.workspace_id::text, true);
        PERFORM pg_advisory_xact_lock_shared(
            hashtext(NEW.workspace_id::text),
            (
                coalesce(pg_sequence_last_value('workspace_event_number'::regclass), 0) & 2147483647
            )::integer
        );
        -- Whoever writes hears of it, and wakes the readers after the commit.
        RAISE NOTICE USING MESSAGE = 'workspace_event', DETAIL = NEW.workspace_id::text,
            ERRCODE = 'WS001';
    END IF;
    NEW.seq := nextval('workspace_event_number'::regclass);
    RETURN NEW;
END
$$;
"""


def upgrade() -> None:
    # The driver takes a statement as it is: SQLAlchemy would read `:` and `%` as parameters.
    cursor = op.get_bind().connection.cursor()
    cursor.execute(CAPTURE)
    for table, *arguments in CAPTURED:
        listed = ", ".join(f"'{argument}'" for argument in arguments)
        cursor.execute(TRIGGER.format(table=table, arguments=listed))
    cursor.execute(NUMBER.format(of_dry_runs=OF_DRY_RUNS))
    cursor.execute("ALTER TABLE request_log ADD COLUMN dry_run BOOLEAN DEFAULT false NOT NULL")


def downgrade() -> None:
    cursor = op.get_bind().connection.cursor()
    cursor.execute("ALTER TABLE request_log DROP COLUMN dry_run")
    cursor.execute(NUMBER.format(of_dry_runs=""))
    cursor.execute("DROP FUNCTION capture_dry_run CASCADE")
    cursor.execute("DROP FUNCTION item_of_place")
    cursor.execute("DROP TABLE dry_run_change")

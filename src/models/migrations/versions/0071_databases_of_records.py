"""Records belong to a database that is there: asked once for a statement, not for each record.

The foreign key stays declared. What enforced it on writers of records took a fifth of an import;
triggers do the same by the same locks (ADR 0085).
"""

from alembic import op

revision = "0071"
down_revision = "0070"
branch_labels = None
depends_on = None

KEY = "fk_record_workspace_id_database_id_database"

# A database that is being deleted is waited for, and one that is named here is kept until the end.
REQUIRED = f"""
CREATE FUNCTION require_databases() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    named record;
BEGIN
    FOR named IN SELECT DISTINCT workspace_id, database_id FROM after_rows LOOP
        PERFORM FROM database
        WHERE workspace_id = named.workspace_id AND id = named.database_id FOR KEY SHARE;
        IF NOT FOUND THEN
            RAISE foreign_key_violation USING
                MESSAGE = 'a record names a database that is not there',
                TABLE = 'record', CONSTRAINT = '{KEY}';
        END IF;
    END LOOP;
    RETURN NULL;
END
$$;
CREATE TRIGGER require_databases AFTER INSERT ON record
    REFERENCING NEW TABLE AS after_rows FOR EACH STATEMENT
    EXECUTE FUNCTION require_databases();
"""
KEPT = f"""
CREATE FUNCTION keep_in_database() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE foreign_key_violation USING
        MESSAGE = 'a record stays in its database', TABLE = 'record', CONSTRAINT = '{KEY}';
END
$$;
CREATE TRIGGER keep_in_database BEFORE UPDATE OF workspace_id, database_id ON record
    FOR EACH ROW WHEN
    ((OLD.workspace_id, OLD.database_id) IS DISTINCT FROM (NEW.workspace_id, NEW.database_id))
    EXECUTE FUNCTION keep_in_database();
"""
NEEDED = f"""
CREATE FUNCTION keep_needed_database() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF EXISTS (
        SELECT FROM record WHERE workspace_id = OLD.workspace_id AND database_id = OLD.id
    ) THEN
        RAISE foreign_key_violation USING
            MESSAGE = 'records name the database', TABLE = 'record', CONSTRAINT = '{KEY}';
    END IF;
    RETURN NULL;
END
$$;
CREATE TRIGGER keep_needed_database AFTER DELETE ON database
    FOR EACH ROW EXECUTE FUNCTION keep_needed_database();
CREATE TRIGGER keep_named_database AFTER UPDATE OF workspace_id, id ON database
    FOR EACH ROW WHEN ((OLD.workspace_id, OLD.id) IS DISTINCT FROM (NEW.workspace_id, NEW.id))
    EXECUTE FUNCTION keep_needed_database();
"""


def upgrade() -> None:
    for triggers in (REQUIRED, KEPT, NEEDED):
        op.execute(triggers)
    op.execute(f"ALTER TABLE record ALTER CONSTRAINT {KEY} NOT ENFORCED")


def downgrade() -> None:
    op.execute(f"ALTER TABLE record ALTER CONSTRAINT {KEY} ENFORCED")
    for name, table in (
        ("require_databases", "record"),
        ("keep_in_database", "record"),
        ("keep_needed_database", "database"),
        ("keep_named_database", "database"),
    ):
        op.execute(f"DROP TRIGGER {name} ON {table}")
    for name in ("require_databases", "keep_in_database", "keep_needed_database"):
        op.execute(f"DROP FUNCTION {name}()")

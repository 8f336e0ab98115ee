-- Records belong to a database that is there: asked once for a statement, not for each record. The
-- foreign key stays declared. What enforced it on writers of records took a fifth of an import; the
-- triggers do the same by the same locks (docs/adr/0085).

ALTER TABLE record ALTER CONSTRAINT fk_record_workspace_id_database_id_database NOT ENFORCED;

-- A database that is being deleted is waited for, and one that is named here is kept until the end.
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
                TABLE = 'record', CONSTRAINT = 'fk_record_workspace_id_database_id_database';
        END IF;
    END LOOP;
    RETURN NULL;
END
$$;
CREATE TRIGGER require_databases AFTER INSERT ON record
    REFERENCING NEW TABLE AS after_rows FOR EACH STATEMENT
    EXECUTE FUNCTION require_databases();

CREATE FUNCTION keep_in_database() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE foreign_key_violation USING
        MESSAGE = 'a record stays in its database', TABLE = 'record',
        CONSTRAINT = 'fk_record_workspace_id_database_id_database';
END
$$;
CREATE TRIGGER keep_in_database BEFORE UPDATE OF workspace_id, database_id ON record
    FOR EACH ROW WHEN
    ((OLD.workspace_id, OLD.database_id) IS DISTINCT FROM (NEW.workspace_id, NEW.database_id))
    EXECUTE FUNCTION keep_in_database();

CREATE FUNCTION keep_needed_database() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF EXISTS (
        SELECT FROM record WHERE workspace_id = OLD.workspace_id AND database_id = OLD.id
    ) THEN
        RAISE foreign_key_violation USING
            MESSAGE = 'records name the database', TABLE = 'record',
            CONSTRAINT = 'fk_record_workspace_id_database_id_database';
    END IF;
    RETURN NULL;
END
$$;
CREATE TRIGGER keep_needed_database AFTER DELETE ON database
    FOR EACH ROW EXECUTE FUNCTION keep_needed_database();
CREATE TRIGGER keep_named_database AFTER UPDATE OF workspace_id, id ON database
    FOR EACH ROW WHEN ((OLD.workspace_id, OLD.id) IS DISTINCT FROM (NEW.workspace_id, NEW.id))
    EXECUTE FUNCTION keep_needed_database();

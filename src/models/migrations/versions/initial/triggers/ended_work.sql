-- Work that ended is counted by kind and status, which metrics show (docs/adr/0136).

CREATE FUNCTION action_run_count_end() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO ended_work (kind, status, number) VALUES ('action-run', NEW.status, 1);
    RETURN NULL;
END
$$;
CREATE TRIGGER action_run_count_end AFTER UPDATE OF status, completed_at ON action_run
    FOR EACH ROW WHEN (
        NEW.completed_at IS NOT NULL AND OLD.completed_at IS DISTINCT FROM NEW.completed_at
        AND true
    )
    EXECUTE FUNCTION action_run_count_end();

CREATE FUNCTION automation_run_count_end() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO ended_work (kind, status, number) VALUES ('automation-run', NEW.status, 1);
    RETURN NULL;
END
$$;
CREATE TRIGGER automation_run_count_end AFTER UPDATE OF status, completed_at ON automation_run
    FOR EACH ROW WHEN (
        NEW.completed_at IS NOT NULL AND OLD.completed_at IS DISTINCT FROM NEW.completed_at
        AND true
    )
    EXECUTE FUNCTION automation_run_count_end();

CREATE FUNCTION data_source_run_count_end() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO ended_work (kind, status, number) VALUES (CASE WHEN
        (NEW.data_source_id IS NULL) THEN 'spreadsheet-import' ELSE 'data-source-refresh'
    END, NEW.status, 1);
    RETURN NULL;
END
$$;
CREATE TRIGGER data_source_run_count_end AFTER UPDATE OF status, completed_at ON data_source_run
    FOR EACH ROW WHEN (
        NEW.completed_at IS NOT NULL AND OLD.completed_at IS DISTINCT FROM NEW.completed_at
        AND true
    )
    EXECUTE FUNCTION data_source_run_count_end();

CREATE FUNCTION delivery_count_end() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO ended_work (kind, status, number) VALUES ('delivery', NEW.status, 1);
    RETURN NULL;
END
$$;
CREATE TRIGGER delivery_count_end AFTER UPDATE OF status, completed_at ON delivery
    FOR EACH ROW WHEN (
        NEW.completed_at IS NOT NULL AND OLD.completed_at IS DISTINCT FROM NEW.completed_at
        AND true
    )
    EXECUTE FUNCTION delivery_count_end();

CREATE FUNCTION job_count_end() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO ended_work (kind, status, number) VALUES (NEW.family, NEW.status, 1);
    RETURN NULL;
END
$$;
CREATE TRIGGER job_count_end AFTER UPDATE OF status, completed_at ON job
    FOR EACH ROW WHEN (
        NEW.completed_at IS NOT NULL AND OLD.completed_at IS DISTINCT FROM NEW.completed_at
        AND true
    )
    EXECUTE FUNCTION job_count_end();

CREATE FUNCTION legacy_import_run_count_end() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO ended_work (kind, status, number) VALUES ('legacy-import', NEW.status, 1);
    RETURN NULL;
END
$$;
CREATE TRIGGER legacy_import_run_count_end AFTER UPDATE OF status, completed_at ON legacy_import_run
    FOR EACH ROW WHEN (
        NEW.completed_at IS NOT NULL AND OLD.completed_at IS DISTINCT FROM NEW.completed_at
        AND true
    )
    EXECUTE FUNCTION legacy_import_run_count_end();

CREATE FUNCTION run_operation_count_end() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO ended_work (kind, status, number) VALUES ('run-operation', NEW.status, 1);
    RETURN NULL;
END
$$;
CREATE TRIGGER run_operation_count_end AFTER UPDATE OF status, completed_at ON run_operation
    FOR EACH ROW WHEN (
        NEW.completed_at IS NOT NULL AND OLD.completed_at IS DISTINCT FROM NEW.completed_at
        AND true
    )
    EXECUTE FUNCTION run_operation_count_end();

CREATE FUNCTION time_entry_count_end() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO ended_work (kind, status, number) VALUES ('timer-due', NEW.status, 1);
    RETURN NULL;
END
$$;
CREATE TRIGGER time_entry_count_end AFTER UPDATE OF status, closed_at ON time_entry
    FOR EACH ROW WHEN (
        NEW.closed_at IS NOT NULL AND OLD.closed_at IS DISTINCT FROM NEW.closed_at
        AND NEW.mode IN ('countdown', 'pomodoro')
    )
    EXECUTE FUNCTION time_entry_count_end();

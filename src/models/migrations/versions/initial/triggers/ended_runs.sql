-- What is noted of a run that ends: for statistics, for incidents, and for the circuit breaker of
-- its automation. Test runs count nowhere.

CREATE FUNCTION note_ended_run() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    -- A row that was put back may end again.
    INSERT INTO ended_run (run_id, workspace_id) VALUES (NEW.id, NEW.workspace_id)
        ON CONFLICT DO NOTHING;
    RETURN NULL;
END
$$;
CREATE TRIGGER note_ended_run AFTER UPDATE OF status ON automation_run
    FOR EACH ROW WHEN (
        NEW.status IN ('succeeded', 'failed', 'cancelled', 'timed_out')
        AND OLD.status IS DISTINCT FROM NEW.status
        AND NEW.source <> 'test' AND NEW.options -> 'test' IS DISTINCT FROM 'true'::jsonb
    )
    EXECUTE FUNCTION note_ended_run();

CREATE FUNCTION note_failed_run() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO ungrouped_failure (run_id, workspace_id) VALUES (NEW.id, NEW.workspace_id)
        ON CONFLICT DO NOTHING;
    RETURN NULL;
END
$$;
CREATE TRIGGER note_failed_run AFTER UPDATE OF status ON automation_run
    FOR EACH ROW WHEN (
        NEW.status IN ('failed', 'timed_out') AND OLD.status IS DISTINCT FROM NEW.status
        AND NEW.source <> 'test' AND NEW.options -> 'test' IS DISTINCT FROM 'true'::jsonb
    )
    EXECUTE FUNCTION note_failed_run();

CREATE FUNCTION note_run_for_breaker() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    UPDATE circuit_breaker SET
        failed_in_a_row = CASE WHEN NEW.status = 'succeeded' THEN 0 ELSE failed_in_a_row END,
        trial_status = CASE WHEN trial_run_id = NEW.id THEN NEW.status ELSE trial_status END,
        due_at = CASE WHEN trial_run_id = NEW.id THEN now() ELSE due_at END
        WHERE automation_id = NEW.automation_id AND (
            trial_run_id = NEW.id
            OR (NEW.status = 'succeeded' AND state = 'closed' AND failed_in_a_row > 0)
        );
    RETURN NULL;
END
$$;
CREATE TRIGGER note_run_for_breaker AFTER UPDATE OF status ON automation_run
    FOR EACH ROW WHEN (
        NEW.status IN ('succeeded', 'failed', 'timed_out', 'cancelled')
        AND OLD.status IS DISTINCT FROM NEW.status
        AND NEW.source <> 'test' AND NEW.options -> 'test' IS DISTINCT FROM 'true'::jsonb
    )
    EXECUTE FUNCTION note_run_for_breaker();

-- A breaker that is half open tries the first run that rests under it.
CREATE FUNCTION wake_breaker() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    UPDATE circuit_breaker SET due_at = now() FROM pause
        WHERE pause.id = NEW.pause_id AND pause.cause = 'circuit_breaker'
            AND circuit_breaker.automation_id = pause.subject_id
            AND circuit_breaker.state = 'half_open' AND circuit_breaker.trial_run_id IS NULL
            AND circuit_breaker.due_at > now();
    RETURN NULL;
END
$$;
CREATE TRIGGER wake_breaker AFTER INSERT OR UPDATE OF pause_id ON resting_intent
    FOR EACH ROW EXECUTE FUNCTION wake_breaker();

-- The moves of a status that each table allows; any other is refused with check_violation.
-- Writing the same status again is no move; a status that stands on no left side is final.

CREATE FUNCTION action_run_status_transition() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NEW.status = OLD.status
        OR (OLD.status = 'started' AND NEW.status IN ('cancelled', 'failed', 'succeeded'))
    THEN
        RETURN NEW;
    END IF;
    RAISE EXCEPTION 'status of action_run cannot change from % to %', OLD.status, NEW.status
        USING ERRCODE = '23514', TABLE = 'action_run',
            CONSTRAINT = 'action_run_status_transition';
END
$$;
CREATE TRIGGER action_run_status_transition BEFORE UPDATE OF status ON action_run
    FOR EACH ROW EXECUTE FUNCTION action_run_status_transition();

CREATE FUNCTION action_step_status_transition() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NEW.status = OLD.status
        OR (OLD.status = 'pending' AND NEW.status IN (
            'cancelled', 'failed', 'running', 'skipped', 'succeeded'
        ))
        OR (OLD.status = 'running' AND NEW.status IN ('cancelled', 'failed', 'succeeded'))
    THEN
        RETURN NEW;
    END IF;
    RAISE EXCEPTION 'status of action_step cannot change from % to %', OLD.status, NEW.status
        USING ERRCODE = '23514', TABLE = 'action_step',
            CONSTRAINT = 'action_step_status_transition';
END
$$;
CREATE TRIGGER action_step_status_transition BEFORE UPDATE OF status ON action_step
    FOR EACH ROW EXECUTE FUNCTION action_step_status_transition();

CREATE FUNCTION automation_run_status_transition() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NEW.status = OLD.status
        OR (OLD.status = 'queued' AND NEW.status IN ('cancelled', 'failed', 'running', 'timed_out'))
        OR (OLD.status = 'running' AND NEW.status IN (
            'cancelled', 'failed', 'succeeded', 'timed_out', 'waiting'
        ))
        OR (OLD.status = 'waiting' AND NEW.status IN (
            'cancelled', 'failed', 'running', 'succeeded', 'timed_out'
        ))
    THEN
        RETURN NEW;
    END IF;
    RAISE EXCEPTION 'status of automation_run cannot change from % to %', OLD.status, NEW.status
        USING ERRCODE = '23514', TABLE = 'automation_run',
            CONSTRAINT = 'automation_run_status_transition';
END
$$;
CREATE TRIGGER automation_run_status_transition BEFORE UPDATE OF status ON automation_run
    FOR EACH ROW EXECUTE FUNCTION automation_run_status_transition();

CREATE FUNCTION change_set_status_transition() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NEW.status = OLD.status
        OR (OLD.status = 'applying' AND NEW.status IN (
            'applied', 'awaiting_approval', 'failed', 'partially_applied'
        ))
        OR (OLD.status = 'awaiting_approval' AND NEW.status IN ('applying', 'expired', 'rejected'))
        OR (OLD.status = 'planned' AND NEW.status IN ('applying', 'expired', 'rejected'))
    THEN
        RETURN NEW;
    END IF;
    RAISE EXCEPTION 'status of change_set cannot change from % to %', OLD.status, NEW.status
        USING ERRCODE = '23514', TABLE = 'change_set',
            CONSTRAINT = 'change_set_status_transition';
END
$$;
CREATE TRIGGER change_set_status_transition BEFORE UPDATE OF status ON change_set
    FOR EACH ROW EXECUTE FUNCTION change_set_status_transition();

CREATE FUNCTION data_source_run_status_transition() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NEW.status = OLD.status
        OR (OLD.status = 'queued' AND NEW.status IN ('cancelled', 'failed', 'running'))
        OR (OLD.status = 'running' AND NEW.status IN ('cancelled', 'failed', 'succeeded'))
    THEN
        RETURN NEW;
    END IF;
    RAISE EXCEPTION 'status of data_source_run cannot change from % to %', OLD.status, NEW.status
        USING ERRCODE = '23514', TABLE = 'data_source_run',
            CONSTRAINT = 'data_source_run_status_transition';
END
$$;
CREATE TRIGGER data_source_run_status_transition BEFORE UPDATE OF status ON data_source_run
    FOR EACH ROW EXECUTE FUNCTION data_source_run_status_transition();

CREATE FUNCTION delivery_status_transition() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NEW.status = OLD.status
        OR (OLD.status = 'pending' AND NEW.status IN (
            'cancelled', 'delivered', 'failed', 'undeliverable'
        ))
    THEN
        RETURN NEW;
    END IF;
    RAISE EXCEPTION 'status of delivery cannot change from % to %', OLD.status, NEW.status
        USING ERRCODE = '23514', TABLE = 'delivery',
            CONSTRAINT = 'delivery_status_transition';
END
$$;
CREATE TRIGGER delivery_status_transition BEFORE UPDATE OF status ON delivery
    FOR EACH ROW EXECUTE FUNCTION delivery_status_transition();

CREATE FUNCTION experiment_status_transition() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NEW.status = OLD.status
        OR (OLD.status = 'completed' AND NEW.status IN ('archived'))
        OR (OLD.status = 'draft' AND NEW.status IN ('archived', 'scheduled'))
        OR (OLD.status = 'paused' AND NEW.status IN ('archived', 'completed', 'running'))
        OR (OLD.status = 'running' AND NEW.status IN ('archived', 'completed', 'paused'))
        OR (OLD.status = 'scheduled' AND NEW.status IN (
            'archived', 'completed', 'paused', 'running'
        ))
    THEN
        RETURN NEW;
    END IF;
    RAISE EXCEPTION 'status of experiment cannot change from % to %', OLD.status, NEW.status
        USING ERRCODE = '23514', TABLE = 'experiment',
            CONSTRAINT = 'experiment_status_transition';
END
$$;
CREATE TRIGGER experiment_status_transition BEFORE UPDATE OF status ON experiment
    FOR EACH ROW EXECUTE FUNCTION experiment_status_transition();

CREATE FUNCTION job_status_transition() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NEW.status = OLD.status
        OR (OLD.status = 'queued' AND NEW.status IN ('cancelled', 'failed', 'running'))
        OR (OLD.status = 'running' AND NEW.status IN ('cancelled', 'failed', 'succeeded'))
    THEN
        RETURN NEW;
    END IF;
    RAISE EXCEPTION 'status of job cannot change from % to %', OLD.status, NEW.status
        USING ERRCODE = '23514', TABLE = 'job',
            CONSTRAINT = 'job_status_transition';
END
$$;
CREATE TRIGGER job_status_transition BEFORE UPDATE OF status ON job
    FOR EACH ROW EXECUTE FUNCTION job_status_transition();

CREATE FUNCTION legacy_import_run_status_transition() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NEW.status = OLD.status
        OR (OLD.status = 'approved' AND NEW.status IN ('cancelled', 'failed', 'importing'))
        OR (OLD.status = 'awaiting_review' AND NEW.status IN (
            'approved', 'cancelled', 'dry_running', 'failed'
        ))
        OR (OLD.status = 'cancelled' AND NEW.status IN ('rolling_back'))
        OR (OLD.status = 'cancelling' AND NEW.status IN ('cancelled', 'failed'))
        OR (OLD.status = 'completed' AND NEW.status IN ('rolling_back'))
        OR (OLD.status = 'completed_with_warnings' AND NEW.status IN ('importing', 'rolling_back'))
        OR (OLD.status = 'dry_running' AND NEW.status IN ('awaiting_review', 'cancelled', 'failed'))
        OR (OLD.status = 'failed' AND NEW.status IN ('importing', 'rolling_back'))
        OR (OLD.status = 'importing' AND NEW.status IN ('cancelling', 'failed', 'verifying'))
        OR (OLD.status = 'rollback_failed' AND NEW.status IN ('rolling_back'))
        OR (OLD.status = 'rolled_back' AND NEW.status IN ('rolling_back'))
        OR (OLD.status = 'rolling_back' AND NEW.status IN ('rollback_failed', 'rolled_back'))
        OR (OLD.status = 'uploaded' AND NEW.status IN ('cancelled', 'failed', 'validating'))
        OR (OLD.status = 'validating' AND NEW.status IN ('cancelled', 'dry_running', 'failed'))
        OR (OLD.status = 'verifying' AND NEW.status IN (
            'cancelling', 'completed', 'completed_with_warnings', 'failed', 'importing'
        ))
    THEN
        RETURN NEW;
    END IF;
    RAISE EXCEPTION 'status of legacy_import_run cannot change from % to %', OLD.status, NEW.status
        USING ERRCODE = '23514', TABLE = 'legacy_import_run',
            CONSTRAINT = 'legacy_import_run_status_transition';
END
$$;
CREATE TRIGGER legacy_import_run_status_transition BEFORE UPDATE OF status ON legacy_import_run
    FOR EACH ROW EXECUTE FUNCTION legacy_import_run_status_transition();

CREATE FUNCTION node_run_status_transition() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NEW.status = OLD.status
        OR (OLD.status = 'queued' AND NEW.status IN (
            'cancelled', 'failed', 'running', 'skipped', 'succeeded', 'waiting'
        ))
        OR (OLD.status = 'running' AND NEW.status IN (
            'cancelled', 'failed', 'succeeded', 'waiting'
        ))
        OR (OLD.status = 'waiting' AND NEW.status IN (
            'cancelled', 'failed', 'running', 'succeeded'
        ))
    THEN
        RETURN NEW;
    END IF;
    RAISE EXCEPTION 'status of node_run cannot change from % to %', OLD.status, NEW.status
        USING ERRCODE = '23514', TABLE = 'node_run',
            CONSTRAINT = 'node_run_status_transition';
END
$$;
CREATE TRIGGER node_run_status_transition BEFORE UPDATE OF status ON node_run
    FOR EACH ROW EXECUTE FUNCTION node_run_status_transition();

CREATE FUNCTION run_operation_status_transition() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NEW.status = OLD.status
        OR (OLD.status = 'queued' AND NEW.status IN ('cancelled', 'failed', 'paused', 'running'))
        OR (OLD.status = 'running' AND NEW.status IN (
            'cancelled', 'failed', 'paused', 'succeeded'
        ))
        OR (OLD.status = 'paused' AND NEW.status IN ('cancelled', 'queued'))
    THEN
        RETURN NEW;
    END IF;
    RAISE EXCEPTION 'status of run_operation cannot change from % to %', OLD.status, NEW.status
        USING ERRCODE = '23514', TABLE = 'run_operation',
            CONSTRAINT = 'run_operation_status_transition';
END
$$;
CREATE TRIGGER run_operation_status_transition BEFORE UPDATE OF status ON run_operation
    FOR EACH ROW EXECUTE FUNCTION run_operation_status_transition();

CREATE FUNCTION time_entry_status_transition() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NEW.status = OLD.status
        OR (OLD.status = 'active' AND NEW.status IN ('completed', 'discarded', 'paused'))
        OR (OLD.status = 'paused' AND NEW.status IN ('active', 'completed', 'discarded'))
    THEN
        RETURN NEW;
    END IF;
    RAISE EXCEPTION 'status of time_entry cannot change from % to %', OLD.status, NEW.status
        USING ERRCODE = '23514', TABLE = 'time_entry',
            CONSTRAINT = 'time_entry_status_transition';
END
$$;
CREATE TRIGGER time_entry_status_transition BEFORE UPDATE OF status ON time_entry
    FOR EACH ROW EXECUTE FUNCTION time_entry_status_transition();

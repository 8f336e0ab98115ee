-- What the models do not say of tables.

-- A sample of 3,000 rows tells how many there are, and that identities differ.
ALTER TABLE staged_row
    ALTER COLUMN run_id SET STATISTICS 10,
    ALTER COLUMN position SET STATISTICS 10,
    ALTER COLUMN identity SET STATISTICS 10;

-- Databases that earlier migrations made have the prefix of these names twice. All are to have the
-- same, so that a later migration can name them.
ALTER TABLE alert_firing
    RENAME CONSTRAINT ck_alert_firing_resolution TO ck_alert_firing_ck_alert_firing_resolution;
ALTER TABLE alert_rule
    RENAME CONSTRAINT ck_alert_rule_disabled_reason TO ck_alert_rule_ck_alert_rule_disabled_reason;
ALTER TABLE alert_rule
    RENAME CONSTRAINT ck_alert_rule_kind TO ck_alert_rule_ck_alert_rule_kind;
ALTER TABLE alert_rule
    RENAME CONSTRAINT ck_alert_rule_state TO ck_alert_rule_ck_alert_rule_state;
ALTER TABLE circuit_breaker
    RENAME CONSTRAINT ck_circuit_breaker_state TO ck_circuit_breaker_ck_circuit_breaker_state;
ALTER TABLE incident
    RENAME CONSTRAINT ck_incident_close_reason TO ck_incident_ck_incident_close_reason;
ALTER TABLE pause
    RENAME CONSTRAINT ck_pause_cause TO ck_pause_ck_pause_cause;
ALTER TABLE pause
    RENAME CONSTRAINT ck_pause_subject_kind TO ck_pause_ck_pause_subject_kind;
ALTER TABLE run_operation
    RENAME CONSTRAINT ck_run_operation_action TO ck_run_operation_ck_run_operation_action;
ALTER TABLE run_operation
    RENAME CONSTRAINT ck_run_operation_status TO ck_run_operation_ck_run_operation_status;
ALTER TABLE run_operation_result
    RENAME CONSTRAINT ck_run_operation_result_outcome
    TO ck_run_operation_result_ck_run_operation_result_outcome;

CREATE TABLE attribute_count (
    key VARCHAR NOT NULL,
    value VARCHAR NOT NULL,
    status VARCHAR NOT NULL,
    runs BIGINT NOT NULL,
    CONSTRAINT pk_attribute_count PRIMARY KEY (key, value, status)
);

CREATE TABLE ended_run (
    run_id UUID NOT NULL,
    workspace_id UUID NOT NULL,
    CONSTRAINT pk_ended_run PRIMARY KEY (run_id)
);
CREATE INDEX ix_ended_run_workspace_id ON ended_run (workspace_id);

CREATE TABLE ungrouped_failure (
    run_id UUID NOT NULL,
    workspace_id UUID NOT NULL,
    CONSTRAINT pk_ungrouped_failure PRIMARY KEY (run_id)
);
CREATE INDEX ix_ungrouped_failure_workspace_id ON ungrouped_failure (workspace_id);

CREATE TABLE automation_event (
    id UUID NOT NULL,
    workspace_id UUID NOT NULL,
    event_key VARCHAR NOT NULL,
    data JSONB NOT NULL,
    user_id UUID,
    created_at TIMESTAMP WITH TIME ZONE NOT NULL,
    CONSTRAINT pk_automation_event PRIMARY KEY (id),
    CONSTRAINT fk_automation_event_workspace_id_workspace FOREIGN KEY(workspace_id) REFERENCES workspace (id)
);
CREATE INDEX ix_automation_event_created_at ON automation_event (workspace_id, created_at);
CREATE INDEX ix_automation_event_event_key ON automation_event (workspace_id, event_key, id);

CREATE TABLE failure_statistic (
    workspace_id UUID NOT NULL,
    grain VARCHAR NOT NULL,
    start TIMESTAMP WITH TIME ZONE NOT NULL,
    automation_id UUID NOT NULL,
    node_id VARCHAR NOT NULL,
    error_code VARCHAR NOT NULL,
    runs BIGINT NOT NULL,
    CONSTRAINT pk_failure_statistic PRIMARY KEY (workspace_id, grain, start, automation_id, node_id, error_code),
    CONSTRAINT fk_failure_statistic_workspace_id_workspace FOREIGN KEY(workspace_id) REFERENCES workspace (id)
);
CREATE INDEX ix_failure_statistic_grain_start ON failure_statistic (grain, start);

CREATE TABLE run_operation (
    id UUID NOT NULL,
    workspace_id UUID NOT NULL,
    actor_user_id UUID NOT NULL,
    action VARCHAR NOT NULL,
    status VARCHAR NOT NULL,
    selection JSONB NOT NULL,
    parameters JSONB NOT NULL,
    rate FLOAT,
    undoes_id UUID,
    execution INTEGER NOT NULL,
    selected INTEGER NOT NULL,
    total INTEGER,
    treated INTEGER NOT NULL,
    succeeded INTEGER NOT NULL,
    skipped INTEGER NOT NULL,
    failed INTEGER NOT NULL,
    paced_until TIMESTAMP WITH TIME ZONE,
    error VARCHAR,
    created_at TIMESTAMP WITH TIME ZONE NOT NULL,
    dispatched_at TIMESTAMP WITH TIME ZONE,
    started_at TIMESTAMP WITH TIME ZONE,
    completed_at TIMESTAMP WITH TIME ZONE,
    CONSTRAINT pk_run_operation PRIMARY KEY (id),
    CONSTRAINT uq_run_operation_workspace_id_id UNIQUE (workspace_id, id),
    CONSTRAINT fk_run_operation_workspace_id_workspace FOREIGN KEY(workspace_id) REFERENCES workspace (id),
    CONSTRAINT ck_run_operation_action CHECK (action IN ('cancel', 'retry', 'resume')),
    CONSTRAINT ck_run_operation_status CHECK (status IN ('queued', 'running', 'paused', 'succeeded', 'failed', 'cancelled'))
);
CREATE INDEX ix_run_operation_dispatched ON run_operation (workspace_id) WHERE dispatched_at IS NOT NULL AND status IN ('queued', 'running');
CREATE INDEX ix_run_operation_open ON run_operation (id) WHERE status IN ('queued', 'running');
CREATE INDEX ix_run_operation_open_workspace_id ON run_operation (workspace_id) WHERE status IN ('queued', 'running');

CREATE TABLE run_statistic (
    workspace_id UUID NOT NULL,
    grain VARCHAR NOT NULL,
    start TIMESTAMP WITH TIME ZONE NOT NULL,
    automation_id UUID NOT NULL,
    status VARCHAR NOT NULL,
    duration SMALLINT NOT NULL,
    queueing SMALLINT NOT NULL,
    runs BIGINT NOT NULL,
    CONSTRAINT pk_run_statistic PRIMARY KEY (workspace_id, grain, start, automation_id, status, duration, queueing),
    CONSTRAINT fk_run_statistic_workspace_id_workspace FOREIGN KEY(workspace_id) REFERENCES workspace (id)
);
CREATE INDEX ix_run_statistic_grain_start ON run_statistic (grain, start);

CREATE TABLE workspace_secret (
    workspace_id UUID NOT NULL,
    name VARCHAR NOT NULL,
    sealed_value BYTEA NOT NULL,
    created_at TIMESTAMP WITH TIME ZONE NOT NULL,
    updated_at TIMESTAMP WITH TIME ZONE NOT NULL,
    CONSTRAINT pk_workspace_secret PRIMARY KEY (workspace_id, name),
    CONSTRAINT fk_workspace_secret_workspace_id_workspace FOREIGN KEY(workspace_id) REFERENCES workspace (id)
);

CREATE TABLE action (
    id UUID NOT NULL,
    workspace_id UUID NOT NULL,
    item_id UUID NOT NULL,
    key VARCHAR NOT NULL,
    kind VARCHAR NOT NULL,
    config JSONB NOT NULL,
    enabled BOOLEAN NOT NULL,
    created_at TIMESTAMP WITH TIME ZONE NOT NULL,
    updated_at TIMESTAMP WITH TIME ZONE NOT NULL,
    CONSTRAINT pk_action PRIMARY KEY (id),
    CONSTRAINT uq_action_workspace_id_id UNIQUE (workspace_id, id),
    CONSTRAINT uq_action_workspace_id_key UNIQUE (workspace_id, key),
    CONSTRAINT fk_action_workspace_id_item_id_item FOREIGN KEY(workspace_id, item_id) REFERENCES item (workspace_id, id),
    CONSTRAINT ck_action_kind CHECK (kind IN ('refresh_data_source', 'run_automation', 'create_record', 'update_record', 'delete_record', 'query_records', 'http_request', 'send_notification', 'send_email', 'send_webhook', 'import_resource', 'transform', 'sequence')),
    CONSTRAINT uq_action_item_id UNIQUE (item_id)
);
CREATE INDEX ix_action_workspace_id_created_at_id ON action (workspace_id, created_at, id);

CREATE TABLE automation (
    id UUID NOT NULL,
    workspace_id UUID NOT NULL,
    item_id UUID NOT NULL,
    key VARCHAR NOT NULL,
    label VARCHAR NOT NULL,
    enabled BOOLEAN NOT NULL,
    draft_version_id UUID,
    published_version_id UUID,
    last_version INTEGER NOT NULL,
    webhook_token VARCHAR NOT NULL,
    sealed_webhook_secret BYTEA NOT NULL,
    sealed_previous_webhook_secret BYTEA,
    previous_webhook_secret_until TIMESTAMP WITH TIME ZONE,
    canary JSONB,
    next_run_at TIMESTAMP WITH TIME ZONE,
    skipped_fires INTEGER DEFAULT 0 NOT NULL,
    missed_fires INTEGER DEFAULT 0 NOT NULL,
    created_at TIMESTAMP WITH TIME ZONE NOT NULL,
    updated_at TIMESTAMP WITH TIME ZONE NOT NULL,
    CONSTRAINT pk_automation PRIMARY KEY (id),
    CONSTRAINT uq_automation_workspace_id_id UNIQUE (workspace_id, id),
    CONSTRAINT uq_automation_workspace_id_key UNIQUE (workspace_id, key),
    CONSTRAINT fk_automation_workspace_id_item_id_item FOREIGN KEY(workspace_id, item_id) REFERENCES item (workspace_id, id),
    CONSTRAINT uq_automation_webhook_token UNIQUE (webhook_token)
);
CREATE INDEX ix_automation_canary ON automation (id) WHERE canary IS NOT NULL;
CREATE INDEX ix_automation_workspace_id_created_at_id ON automation (workspace_id, created_at, id);

CREATE TABLE run_operation_result (
    operation_id UUID NOT NULL,
    position INTEGER NOT NULL,
    workspace_id UUID NOT NULL,
    run_id UUID NOT NULL,
    outcome VARCHAR,
    reason VARCHAR,
    new_run_id UUID,
    CONSTRAINT pk_run_operation_result PRIMARY KEY (operation_id, position),
    CONSTRAINT fk_run_operation_result_workspace_id_operation_id_run_operation FOREIGN KEY(workspace_id, operation_id) REFERENCES run_operation (workspace_id, id),
    CONSTRAINT uq_run_operation_result_operation_id_run_id UNIQUE (operation_id, run_id),
    CONSTRAINT ck_run_operation_result_outcome CHECK (outcome IN ('succeeded', 'skipped', 'failed'))
);
CREATE INDEX ix_run_operation_result_outcome ON run_operation_result (operation_id, outcome, position) WHERE outcome IN ('skipped', 'failed');

CREATE TABLE action_run (
    id UUID NOT NULL,
    workspace_id UUID NOT NULL,
    action_id UUID NOT NULL,
    kind VARCHAR NOT NULL,
    config JSONB NOT NULL,
    status VARCHAR NOT NULL,
    input JSONB NOT NULL,
    result JSONB,
    error VARCHAR,
    error_code VARCHAR,
    automation_run_id UUID,
    node_id VARCHAR,
    scope_key VARCHAR,
    chain UUID[] DEFAULT '{}' NOT NULL,
    created_by_user_id UUID,
    dispatched_at TIMESTAMP WITH TIME ZONE,
    started_at TIMESTAMP WITH TIME ZONE NOT NULL,
    completed_at TIMESTAMP WITH TIME ZONE,
    CONSTRAINT pk_action_run PRIMARY KEY (id),
    CONSTRAINT uq_action_run_workspace_id_id UNIQUE (workspace_id, id),
    CONSTRAINT fk_action_run_workspace_id_action_id_action FOREIGN KEY(workspace_id, action_id) REFERENCES action (workspace_id, id),
    CONSTRAINT ck_action_run_status CHECK (status IN ('started', 'succeeded', 'failed', 'cancelled'))
);
CREATE INDEX ix_action_run_action_id_started_at_id ON action_run (action_id, started_at, id);
CREATE INDEX ix_action_run_completed_at ON action_run (completed_at);
CREATE INDEX ix_action_run_dispatched ON action_run (workspace_id) WHERE dispatched_at IS NOT NULL AND status IN ('started');
CREATE INDEX ix_action_run_open ON action_run (id) WHERE status IN ('started');
CREATE INDEX ix_action_run_open_automation_run_id ON action_run (automation_run_id) WHERE status = 'started' AND automation_run_id IS NOT NULL;
CREATE INDEX ix_action_run_open_workspace_id ON action_run (workspace_id) WHERE status IN ('started');

CREATE TABLE alert_rule (
    id UUID NOT NULL,
    workspace_id UUID NOT NULL,
    label VARCHAR NOT NULL,
    kind VARCHAR NOT NULL,
    condition JSONB NOT NULL,
    automation_id UUID,
    connection_id UUID,
    recipient_user_ids UUID[] NOT NULL,
    repeat_minutes INTEGER,
    enabled BOOLEAN NOT NULL,
    disabled_reason VARCHAR,
    state VARCHAR NOT NULL,
    problem VARCHAR,
    saved_by_user_id UUID NOT NULL,
    watched_since TIMESTAMP WITH TIME ZONE NOT NULL,
    pending_since TIMESTAMP WITH TIME ZONE,
    due_at TIMESTAMP WITH TIME ZONE NOT NULL,
    checked_at TIMESTAMP WITH TIME ZONE,
    told_at TIMESTAMP WITH TIME ZONE,
    created_at TIMESTAMP WITH TIME ZONE NOT NULL,
    updated_at TIMESTAMP WITH TIME ZONE NOT NULL,
    CONSTRAINT pk_alert_rule PRIMARY KEY (id),
    CONSTRAINT uq_alert_rule_workspace_id_id UNIQUE (workspace_id, id),
    CONSTRAINT fk_alert_rule_workspace_id_workspace FOREIGN KEY(workspace_id) REFERENCES workspace (id),
    CONSTRAINT fk_alert_rule_saved_by_user_id_app_user FOREIGN KEY(saved_by_user_id) REFERENCES app_user (id),
    CONSTRAINT fk_alert_rule_workspace_id_automation_id_automation FOREIGN KEY(workspace_id, automation_id) REFERENCES automation (workspace_id, id) ON DELETE CASCADE,
    CONSTRAINT fk_alert_rule_workspace_id_connection_id_connection FOREIGN KEY(workspace_id, connection_id) REFERENCES connection (workspace_id, id) ON DELETE CASCADE,
    CONSTRAINT ck_alert_rule_kind CHECK (kind IN ('failures', 'silence', 'duration', 'queue_age', 'worker_gone', 'connection_failing')),
    CONSTRAINT ck_alert_rule_state CHECK (state IN ('ok', 'firing')),
    CONSTRAINT ck_alert_rule_disabled_reason CHECK (disabled_reason IN ('manual', 'saver_left', 'rights_lost'))
);
CREATE INDEX ix_alert_rule_automation_id ON alert_rule (automation_id) WHERE automation_id IS NOT NULL;
CREATE INDEX ix_alert_rule_connection_id ON alert_rule (connection_id) WHERE connection_id IS NOT NULL;
CREATE INDEX ix_alert_rule_due ON alert_rule (due_at) WHERE enabled;
CREATE INDEX ix_alert_rule_workspace_id ON alert_rule (workspace_id, label, id);

CREATE TABLE automation_graph (
    automation_id UUID NOT NULL,
    checksum VARCHAR NOT NULL,
    workspace_id UUID NOT NULL,
    trigger_config JSONB NOT NULL,
    graph JSONB NOT NULL,
    plan JSONB,
    CONSTRAINT pk_automation_graph PRIMARY KEY (automation_id, checksum),
    CONSTRAINT fk_automation_graph_workspace_id_automation_id_automation FOREIGN KEY(workspace_id, automation_id) REFERENCES automation (workspace_id, id)
);

CREATE TABLE automation_run (
    id UUID NOT NULL,
    workspace_id UUID NOT NULL,
    automation_id UUID NOT NULL,
    automation_version_id UUID NOT NULL,
    graph_checksum VARCHAR NOT NULL,
    status VARCHAR NOT NULL,
    source VARCHAR NOT NULL,
    trigger_payload JSONB NOT NULL,
    options JSONB NOT NULL,
    attributes JSONB,
    output JSONB,
    error VARCHAR,
    start_node_id VARCHAR,
    replay_of_run_id UUID,
    parent_run_id UUID,
    chain UUID[] DEFAULT '{}' NOT NULL,
    concurrency_key VARCHAR,
    admitted_at TIMESTAMP WITH TIME ZONE,
    created_by_user_id UUID,
    created_at TIMESTAMP WITH TIME ZONE NOT NULL,
    started_at TIMESTAMP WITH TIME ZONE,
    completed_at TIMESTAMP WITH TIME ZONE,
    CONSTRAINT pk_automation_run PRIMARY KEY (id),
    CONSTRAINT uq_automation_run_workspace_id_id UNIQUE (workspace_id, id),
    CONSTRAINT fk_automation_run_workspace_id_automation_id_automation FOREIGN KEY(workspace_id, automation_id) REFERENCES automation (workspace_id, id)
);
CREATE INDEX ix_automation_run_attributes ON automation_run USING gin (attributes jsonb_path_ops) WHERE attributes IS NOT NULL;
CREATE INDEX ix_automation_run_automation_id_created_at ON automation_run (automation_id, created_at, id);
CREATE INDEX ix_automation_run_ended ON automation_run (workspace_id, status, source, created_at, id) WHERE status IN ('succeeded', 'failed', 'cancelled', 'timed_out');
CREATE INDEX ix_automation_run_ended_of_automation ON automation_run (automation_id, status, source, created_at, id) WHERE status IN ('succeeded', 'failed', 'cancelled', 'timed_out');
CREATE INDEX ix_automation_run_failed ON automation_run (workspace_id, completed_at) WHERE status IN ('failed', 'timed_out');
CREATE INDEX ix_automation_run_holding ON automation_run (automation_id, concurrency_key, created_at, id) WHERE concurrency_key IS NOT NULL AND admitted_at IS NOT NULL AND status IN ('queued', 'running', 'waiting');
CREATE INDEX ix_automation_run_open ON automation_run (workspace_id, status, id) WHERE status IN ('queued', 'running', 'waiting');
CREATE INDEX ix_automation_run_parent ON automation_run (parent_run_id) WHERE parent_run_id IS NOT NULL;
CREATE INDEX ix_automation_run_replay_of_run_id ON automation_run (replay_of_run_id) WHERE replay_of_run_id IS NOT NULL;
CREATE INDEX ix_automation_run_waiting ON automation_run (automation_id, concurrency_key, created_at, id) WHERE concurrency_key IS NOT NULL AND admitted_at IS NULL AND status IN ('queued', 'running', 'waiting');
CREATE INDEX ix_automation_run_workspace_id_created_at ON automation_run (workspace_id, created_at, id);

CREATE TABLE circuit_breaker (
    automation_id UUID NOT NULL,
    workspace_id UUID NOT NULL,
    failures INTEGER NOT NULL,
    pause_seconds INTEGER NOT NULL,
    state VARCHAR NOT NULL,
    failed_in_a_row INTEGER NOT NULL,
    opened_at TIMESTAMP WITH TIME ZONE,
    due_at TIMESTAMP WITH TIME ZONE,
    trial_run_id UUID,
    trial_status VARCHAR,
    CONSTRAINT pk_circuit_breaker PRIMARY KEY (automation_id),
    CONSTRAINT fk_circuit_breaker_workspace_id_automation_id_automation FOREIGN KEY(workspace_id, automation_id) REFERENCES automation (workspace_id, id),
    CONSTRAINT ck_circuit_breaker_state CHECK (state IN ('closed', 'open', 'half_open'))
);
CREATE INDEX ix_circuit_breaker_due_at ON circuit_breaker (due_at) WHERE due_at IS NOT NULL;

CREATE TABLE debounced_change (
    automation_id UUID NOT NULL,
    record_id UUID NOT NULL,
    workspace_id UUID NOT NULL,
    first_event_id UUID NOT NULL,
    first_event BIGINT NOT NULL,
    last_event BIGINT NOT NULL,
    change JSONB NOT NULL,
    chain UUID[] DEFAULT '{}' NOT NULL,
    attempts INTEGER NOT NULL,
    due_at TIMESTAMP WITH TIME ZONE NOT NULL,
    CONSTRAINT pk_debounced_change PRIMARY KEY (automation_id, record_id),
    CONSTRAINT fk_debounced_change_workspace_id_automation_id_automation FOREIGN KEY(workspace_id, automation_id) REFERENCES automation (workspace_id, id)
);
CREATE INDEX ix_debounced_change_due_at ON debounced_change (due_at);

CREATE TABLE incident (
    id UUID NOT NULL,
    workspace_id UUID NOT NULL,
    automation_id UUID NOT NULL,
    fingerprint BYTEA NOT NULL,
    node_id VARCHAR,
    error_code VARCHAR,
    message VARCHAR NOT NULL,
    runs BIGINT NOT NULL,
    runs_before BIGINT NOT NULL,
    openings INTEGER NOT NULL,
    first_failed_at TIMESTAMP WITH TIME ZONE NOT NULL,
    last_failed_at TIMESTAMP WITH TIME ZONE NOT NULL,
    last_run_id UUID NOT NULL,
    last_version_id UUID NOT NULL,
    opened_at TIMESTAMP WITH TIME ZONE NOT NULL,
    watched_since TIMESTAMP WITH TIME ZONE NOT NULL,
    checked_at TIMESTAMP WITH TIME ZONE NOT NULL,
    closed_at TIMESTAMP WITH TIME ZONE,
    close_reason VARCHAR,
    closed_by_user_id UUID,
    assignee_user_id UUID,
    muted BOOLEAN NOT NULL,
    note VARCHAR NOT NULL,
    CONSTRAINT pk_incident PRIMARY KEY (id),
    CONSTRAINT uq_incident_workspace_id_id UNIQUE (workspace_id, id),
    CONSTRAINT uq_incident_automation_id_fingerprint UNIQUE (automation_id, fingerprint),
    CONSTRAINT fk_incident_workspace_id_automation_id_automation FOREIGN KEY(workspace_id, automation_id) REFERENCES automation (workspace_id, id),
    CONSTRAINT fk_incident_assignee_user_id_app_user FOREIGN KEY(assignee_user_id) REFERENCES app_user (id),
    CONSTRAINT fk_incident_closed_by_user_id_app_user FOREIGN KEY(closed_by_user_id) REFERENCES app_user (id),
    CONSTRAINT ck_incident_close_reason CHECK (close_reason IN ('person', 'retried', 'recovered'))
);
CREATE INDEX ix_incident_all ON incident (workspace_id, opened_at, id);
CREATE INDEX ix_incident_checked ON incident (checked_at) WHERE closed_at IS NULL;
CREATE INDEX ix_incident_closed ON incident (closed_at) WHERE closed_at IS NOT NULL;
CREATE INDEX ix_incident_open ON incident (workspace_id, opened_at, id) WHERE closed_at IS NULL;

CREATE TABLE saved_run_filter (
    id UUID NOT NULL,
    workspace_id UUID NOT NULL,
    owner_user_id UUID,
    automation_id UUID,
    label VARCHAR NOT NULL,
    query JSONB NOT NULL,
    created_at TIMESTAMP WITH TIME ZONE NOT NULL,
    updated_at TIMESTAMP WITH TIME ZONE NOT NULL,
    CONSTRAINT pk_saved_run_filter PRIMARY KEY (id),
    CONSTRAINT fk_saved_run_filter_workspace_id_workspace FOREIGN KEY(workspace_id) REFERENCES workspace (id),
    CONSTRAINT fk_saved_run_filter_workspace_id_owner_user_id_workspace_member FOREIGN KEY(workspace_id, owner_user_id) REFERENCES workspace_member (workspace_id, user_id) ON DELETE CASCADE,
    CONSTRAINT fk_saved_run_filter_workspace_id_automation_id_automation FOREIGN KEY(workspace_id, automation_id) REFERENCES automation (workspace_id, id) ON DELETE CASCADE
);
CREATE INDEX ix_saved_run_filter_automation_id ON saved_run_filter (automation_id) WHERE automation_id IS NOT NULL;
CREATE INDEX ix_saved_run_filter_workspace_id ON saved_run_filter (workspace_id, owner_user_id);

CREATE TABLE webhook_receipt (
    automation_id UUID NOT NULL,
    key_hash BYTEA NOT NULL,
    workspace_id UUID NOT NULL,
    run_id UUID NOT NULL,
    expires_at TIMESTAMP WITH TIME ZONE NOT NULL,
    CONSTRAINT pk_webhook_receipt PRIMARY KEY (automation_id, key_hash),
    CONSTRAINT fk_webhook_receipt_workspace_id_automation_id_automation FOREIGN KEY(workspace_id, automation_id) REFERENCES automation (workspace_id, id)
);
CREATE INDEX ix_webhook_receipt_expires_at ON webhook_receipt (expires_at);

CREATE TABLE action_step (
    run_id UUID NOT NULL,
    step_id VARCHAR NOT NULL,
    workspace_id UUID NOT NULL,
    position INTEGER NOT NULL,
    kind VARCHAR NOT NULL,
    status VARCHAR NOT NULL,
    attempt INTEGER NOT NULL,
    result JSONB,
    error VARCHAR,
    error_code VARCHAR,
    started_at TIMESTAMP WITH TIME ZONE,
    completed_at TIMESTAMP WITH TIME ZONE,
    CONSTRAINT pk_action_step PRIMARY KEY (run_id, step_id),
    CONSTRAINT fk_action_step_workspace_id_run_id_action_run FOREIGN KEY(workspace_id, run_id) REFERENCES action_run (workspace_id, id),
    CONSTRAINT ck_action_step_status CHECK (status IN ('pending', 'running', 'succeeded', 'failed', 'skipped', 'cancelled'))
);

CREATE TABLE alert_firing (
    id UUID NOT NULL,
    workspace_id UUID NOT NULL,
    alert_rule_id UUID NOT NULL,
    message VARCHAR NOT NULL,
    value INTEGER,
    run_id UUID,
    fired_at TIMESTAMP WITH TIME ZONE NOT NULL,
    resolved_at TIMESTAMP WITH TIME ZONE,
    resolution VARCHAR,
    CONSTRAINT pk_alert_firing PRIMARY KEY (id),
    CONSTRAINT fk_alert_firing_workspace_id_alert_rule_id_alert_rule FOREIGN KEY(workspace_id, alert_rule_id) REFERENCES alert_rule (workspace_id, id) ON DELETE CASCADE,
    CONSTRAINT ck_alert_firing_resolution CHECK (resolution IN ('over', 'changed', 'disabled'))
);
CREATE INDEX ix_alert_firing_alert_rule_id ON alert_firing (alert_rule_id, fired_at, id);
CREATE UNIQUE INDEX ix_alert_firing_open ON alert_firing (alert_rule_id) WHERE resolved_at IS NULL;
CREATE INDEX ix_alert_firing_resolved ON alert_firing (resolved_at) WHERE resolved_at IS NOT NULL;

CREATE TABLE automation_version (
    id UUID NOT NULL,
    workspace_id UUID NOT NULL,
    automation_id UUID NOT NULL,
    version INTEGER NOT NULL,
    status VARCHAR NOT NULL,
    trigger VARCHAR NOT NULL,
    checksum VARCHAR NOT NULL,
    note VARCHAR,
    created_by_user_id UUID,
    created_at TIMESTAMP WITH TIME ZONE NOT NULL,
    published_at TIMESTAMP WITH TIME ZONE,
    restored_from_version_id UUID,
    CONSTRAINT pk_automation_version PRIMARY KEY (id),
    CONSTRAINT fk_automation_version_automation_id_checksum_automation_graph FOREIGN KEY(automation_id, checksum) REFERENCES automation_graph (automation_id, checksum),
    CONSTRAINT uq_automation_version_automation_id_version UNIQUE (automation_id, version)
);
CREATE INDEX ix_automation_version_scheduled ON automation_version (automation_id) WHERE trigger = 'schedule' AND published_at IS NOT NULL;
CREATE UNIQUE INDEX uq_automation_version_draft ON automation_version (automation_id) WHERE status = 'draft';
CREATE UNIQUE INDEX uq_automation_version_published ON automation_version (automation_id) WHERE status = 'published';

CREATE TABLE incident_record (
    incident_id UUID NOT NULL,
    record_id UUID NOT NULL,
    workspace_id UUID NOT NULL,
    runs BIGINT NOT NULL,
    last_failed_at TIMESTAMP WITH TIME ZONE NOT NULL,
    last_run_id UUID NOT NULL,
    CONSTRAINT pk_incident_record PRIMARY KEY (incident_id, record_id),
    CONSTRAINT fk_incident_record_workspace_id_incident_id_incident FOREIGN KEY(workspace_id, incident_id) REFERENCES incident (workspace_id, id)
);
CREATE INDEX ix_incident_record_failed ON incident_record (incident_id, last_failed_at, record_id);
CREATE INDEX ix_incident_record_workspace_id_record_id ON incident_record (workspace_id, record_id);

CREATE TABLE incident_run (
    run_id UUID NOT NULL,
    workspace_id UUID NOT NULL,
    incident_id UUID NOT NULL,
    failed_at TIMESTAMP WITH TIME ZONE NOT NULL,
    CONSTRAINT pk_incident_run PRIMARY KEY (run_id),
    CONSTRAINT fk_incident_run_workspace_id_incident_id_incident FOREIGN KEY(workspace_id, incident_id) REFERENCES incident (workspace_id, id)
);
CREATE INDEX ix_incident_run_failed_at ON incident_run (failed_at);
CREATE INDEX ix_incident_run_incident_id ON incident_run (incident_id, failed_at, run_id);

CREATE TABLE incident_version (
    incident_id UUID NOT NULL,
    automation_version_id UUID NOT NULL,
    workspace_id UUID NOT NULL,
    runs BIGINT NOT NULL,
    CONSTRAINT pk_incident_version PRIMARY KEY (incident_id, automation_version_id),
    CONSTRAINT fk_incident_version_workspace_id_incident_id_incident FOREIGN KEY(workspace_id, incident_id) REFERENCES incident (workspace_id, id)
);

CREATE TABLE node_run (
    run_id UUID NOT NULL,
    node_id VARCHAR NOT NULL,
    scope_key VARCHAR NOT NULL,
    workspace_id UUID NOT NULL,
    node_kind VARCHAR NOT NULL,
    status VARCHAR NOT NULL,
    attempt INTEGER NOT NULL,
    outcome VARCHAR,
    case_key VARCHAR,
    input JSONB,
    output JSONB,
    error VARCHAR,
    error_code VARCHAR,
    due_at TIMESTAMP WITH TIME ZONE,
    attempt_started_at TIMESTAMP WITH TIME ZONE,
    started_at TIMESTAMP WITH TIME ZONE,
    completed_at TIMESTAMP WITH TIME ZONE,
    CONSTRAINT pk_node_run PRIMARY KEY (run_id, node_id, scope_key),
    CONSTRAINT fk_node_run_workspace_id_run_id_automation_run FOREIGN KEY(workspace_id, run_id) REFERENCES automation_run (workspace_id, id)
);
CREATE INDEX ix_node_run_failed ON node_run (run_id, node_id, error_code) WHERE status = 'failed';

CREATE TABLE run_wait (
    run_id UUID NOT NULL,
    node_id VARCHAR NOT NULL,
    scope_key VARCHAR NOT NULL,
    workspace_id UUID NOT NULL,
    kind VARCHAR NOT NULL,
    workflow_id VARCHAR,
    event_key VARCHAR,
    terms JSONB NOT NULL,
    responses JSONB NOT NULL,
    outcome VARCHAR,
    output JSONB,
    event_id UUID,
    created_at TIMESTAMP WITH TIME ZONE NOT NULL,
    resolved_at TIMESTAMP WITH TIME ZONE,
    CONSTRAINT pk_run_wait PRIMARY KEY (run_id, node_id, scope_key),
    CONSTRAINT fk_run_wait_workspace_id_run_id_automation_run FOREIGN KEY(workspace_id, run_id) REFERENCES automation_run (workspace_id, id),
    CONSTRAINT ck_run_wait_kind CHECK (kind IN ('approval', 'wait_event')),
    CONSTRAINT ck_run_wait_outcome CHECK (outcome IN ('approved', 'rejected', 'always', 'timeout')),
    CONSTRAINT ck_run_wait_resolved CHECK ((outcome IS NULL) = (resolved_at IS NULL))
);
CREATE INDEX ix_run_wait_event_key ON run_wait (workspace_id, event_key) WHERE event_key IS NOT NULL AND outcome IS NULL;
CREATE INDEX ix_run_wait_pending_approval ON run_wait (workspace_id, created_at) WHERE kind = 'approval' AND outcome IS NULL;

CREATE TABLE suspended_execution (
    execution_key VARCHAR NOT NULL,
    run_id UUID NOT NULL,
    workspace_id UUID NOT NULL,
    child_keys TEXT[] NOT NULL,
    CONSTRAINT pk_suspended_execution PRIMARY KEY (execution_key),
    CONSTRAINT fk_suspended_execution_workspace_id_run_id_automation_run FOREIGN KEY(workspace_id, run_id) REFERENCES automation_run (workspace_id, id)
);
CREATE INDEX ix_suspended_execution_run_id ON suspended_execution (run_id);

CREATE TABLE node_run_attempt (
    run_id UUID NOT NULL,
    node_id VARCHAR NOT NULL,
    scope_key VARCHAR NOT NULL,
    attempt INTEGER NOT NULL,
    workspace_id UUID NOT NULL,
    error VARCHAR NOT NULL,
    error_code VARCHAR NOT NULL,
    started_at TIMESTAMP WITH TIME ZONE NOT NULL,
    completed_at TIMESTAMP WITH TIME ZONE NOT NULL,
    CONSTRAINT pk_node_run_attempt PRIMARY KEY (run_id, node_id, scope_key, attempt),
    CONSTRAINT fk_node_run_attempt_run_id_node_id_scope_key_node_run FOREIGN KEY(run_id, node_id, scope_key) REFERENCES node_run (run_id, node_id, scope_key)
);

ALTER TABLE automation_subscription ADD CONSTRAINT fk_automation_subscription_workspace_id_automation_id_a_d91e FOREIGN KEY(workspace_id, automation_id) REFERENCES automation (workspace_id, id);

CREATE UNLOGGED TABLE realtime_presence (
    process_id UUID NOT NULL,
    workspace_id UUID NOT NULL,
    user_id UUID NOT NULL,
    seen_at TIMESTAMP WITH TIME ZONE NOT NULL,
    CONSTRAINT pk_realtime_presence PRIMARY KEY (process_id, workspace_id, user_id)
);
CREATE INDEX ix_realtime_presence_workspace_id ON realtime_presence (workspace_id);

CREATE UNLOGGED TABLE realtime_ticket (
    digest BYTEA NOT NULL,
    workspace_id UUID NOT NULL,
    user_id UUID NOT NULL,
    expires_at TIMESTAMP WITH TIME ZONE NOT NULL,
    session_expires_at TIMESTAMP WITH TIME ZONE NOT NULL,
    CONSTRAINT pk_realtime_ticket PRIMARY KEY (digest)
);

CREATE TABLE trigger_event (
    id BIGINT GENERATED ALWAYS AS IDENTITY,
    event_id UUID NOT NULL,
    workspace_id UUID NOT NULL,
    kind VARCHAR NOT NULL,
    subject_id UUID NOT NULL,
    payload JSONB NOT NULL,
    chain UUID[] DEFAULT '{}' NOT NULL,
    attempts INTEGER NOT NULL,
    created_at TIMESTAMP WITH TIME ZONE NOT NULL,
    due_at TIMESTAMP WITH TIME ZONE NOT NULL,
    CONSTRAINT pk_trigger_event PRIMARY KEY (id),
    CONSTRAINT uq_trigger_event_event_id UNIQUE (event_id)
);
CREATE INDEX ix_trigger_event_workspace_id_id ON trigger_event (workspace_id, id);

CREATE TABLE workspace_event (
    seq BIGINT DEFAULT 0 NOT NULL,
    workspace_id UUID NOT NULL,
    type VARCHAR NOT NULL,
    at TIMESTAMP WITH TIME ZONE NOT NULL,
    actor_type VARCHAR NOT NULL,
    actor_user_id UUID,
    audience_user_id UUID,
    item_id UUID,
    data JSONB NOT NULL,
    CONSTRAINT pk_workspace_event PRIMARY KEY (seq)
);
CREATE INDEX ix_workspace_event_workspace_id_seq ON workspace_event (workspace_id, seq);

CREATE TABLE notification_preference (
    user_id UUID NOT NULL,
    choices JSONB NOT NULL,
    updated_at TIMESTAMP WITH TIME ZONE NOT NULL,
    CONSTRAINT pk_notification_preference PRIMARY KEY (user_id),
    CONSTRAINT fk_notification_preference_user_id_app_user FOREIGN KEY(user_id) REFERENCES app_user (id)
);

CREATE TABLE push_device (
    id UUID NOT NULL,
    user_id UUID NOT NULL,
    installation_id VARCHAR NOT NULL,
    platform VARCHAR NOT NULL,
    provider VARCHAR NOT NULL,
    token_digest BYTEA NOT NULL,
    sealed_token BYTEA NOT NULL,
    app_version VARCHAR,
    locale VARCHAR,
    registered_at TIMESTAMP WITH TIME ZONE NOT NULL,
    CONSTRAINT pk_push_device PRIMARY KEY (id),
    CONSTRAINT fk_push_device_user_id_app_user FOREIGN KEY(user_id) REFERENCES app_user (id),
    CONSTRAINT ck_push_device_platform CHECK (platform IN ('ios', 'android', 'web')),
    CONSTRAINT ck_push_device_provider CHECK (provider IN ('apns', 'fcm', 'webpush'))
);
CREATE INDEX ix_push_device_user_id ON push_device (user_id, registered_at, id);
CREATE UNIQUE INDEX uq_push_device_installation_id ON push_device (installation_id);
CREATE UNIQUE INDEX uq_push_device_token_digest ON push_device (token_digest);

CREATE TABLE delivery (
    id UUID NOT NULL,
    workspace_id UUID NOT NULL,
    channel VARCHAR NOT NULL,
    subject_id UUID NOT NULL,
    target_id UUID NOT NULL,
    input JSONB NOT NULL,
    status VARCHAR NOT NULL,
    attempts INTEGER NOT NULL,
    next_attempt_at TIMESTAMP WITH TIME ZONE,
    answer_status INTEGER,
    error VARCHAR,
    error_code VARCHAR,
    executing BOOLEAN NOT NULL,
    executions INTEGER NOT NULL,
    expires_at TIMESTAMP WITH TIME ZONE NOT NULL,
    created_at TIMESTAMP WITH TIME ZONE NOT NULL,
    completed_at TIMESTAMP WITH TIME ZONE,
    CONSTRAINT pk_delivery PRIMARY KEY (id),
    CONSTRAINT fk_delivery_workspace_id_workspace FOREIGN KEY(workspace_id) REFERENCES workspace (id),
    CONSTRAINT ck_delivery_channel CHECK (channel IN ('push', 'mail', 'webhook')),
    CONSTRAINT ck_delivery_status CHECK (status IN ('pending', 'delivered', 'undeliverable', 'failed', 'cancelled'))
);
CREATE INDEX ix_delivery_completed_at ON delivery (completed_at);
CREATE INDEX ix_delivery_created_at ON delivery (workspace_id, channel, created_at);
CREATE INDEX ix_delivery_ended ON delivery (workspace_id, target_id, status, created_at, id) WHERE status NOT IN ('pending');
CREATE INDEX ix_delivery_executing ON delivery (workspace_id, channel, target_id) WHERE status IN ('pending') AND executing;
CREATE INDEX ix_delivery_expires_at ON delivery (expires_at) WHERE status IN ('pending') AND NOT executing;
CREATE INDEX ix_delivery_open ON delivery (id) WHERE status IN ('pending');
CREATE INDEX ix_delivery_open_target_id ON delivery (target_id) WHERE status IN ('pending');
CREATE INDEX ix_delivery_target_id ON delivery (workspace_id, target_id, created_at, id);
CREATE INDEX ix_delivery_waiting ON delivery (workspace_id, channel, target_id, created_at, id) WHERE status IN ('pending') AND NOT executing;

CREATE TABLE delivery_line (
    workspace_id UUID NOT NULL,
    channel VARCHAR NOT NULL,
    target_id UUID NOT NULL,
    failures INTEGER NOT NULL,
    opened INTEGER NOT NULL,
    retry_at TIMESTAMP WITH TIME ZONE,
    since TIMESTAMP WITH TIME ZONE,
    succeeded_at TIMESTAMP WITH TIME ZONE,
    CONSTRAINT pk_delivery_line PRIMARY KEY (workspace_id, channel, target_id),
    CONSTRAINT fk_delivery_line_workspace_id_workspace FOREIGN KEY(workspace_id) REFERENCES workspace (id),
    CONSTRAINT ck_delivery_line_channel CHECK (channel IN ('push', 'mail', 'webhook'))
);

CREATE TABLE job (
    id UUID NOT NULL,
    workspace_id UUID NOT NULL,
    family VARCHAR NOT NULL,
    subject_id UUID NOT NULL,
    actor_user_id UUID NOT NULL,
    status VARCHAR NOT NULL,
    input JSONB NOT NULL,
    progress JSONB NOT NULL,
    result JSONB,
    error VARCHAR,
    error_code VARCHAR,
    created_at TIMESTAMP WITH TIME ZONE NOT NULL,
    dispatched_at TIMESTAMP WITH TIME ZONE,
    started_at TIMESTAMP WITH TIME ZONE,
    completed_at TIMESTAMP WITH TIME ZONE,
    CONSTRAINT pk_job PRIMARY KEY (id),
    CONSTRAINT uq_job_workspace_id_id UNIQUE (workspace_id, id),
    CONSTRAINT fk_job_workspace_id_workspace FOREIGN KEY(workspace_id) REFERENCES workspace (id),
    CONSTRAINT ck_job_status CHECK (status IN ('queued', 'running', 'succeeded', 'failed', 'cancelled'))
);
CREATE INDEX ix_job_dispatched ON job (workspace_id, family) WHERE dispatched_at IS NOT NULL AND status IN ('queued', 'running');
CREATE INDEX ix_job_open ON job (id) WHERE status IN ('queued', 'running');
CREATE INDEX ix_job_open_line ON job (workspace_id, family) WHERE status IN ('queued', 'running');
CREATE UNIQUE INDEX ix_job_open_workspace_export ON job (workspace_id) WHERE family = 'workspace-export' AND status IN ('queued', 'running');
CREATE INDEX ix_job_workspace_id_family_subject_id ON job (workspace_id, family, subject_id);

CREATE TABLE notification (
    id UUID NOT NULL,
    workspace_id UUID NOT NULL,
    user_id UUID NOT NULL,
    kind VARCHAR NOT NULL,
    title VARCHAR NOT NULL,
    body VARCHAR NOT NULL,
    item_id UUID,
    record_id UUID,
    run_id UUID,
    actor_user_id UUID,
    data JSONB NOT NULL,
    read_at TIMESTAMP WITH TIME ZONE,
    archived_at TIMESTAMP WITH TIME ZONE,
    created_at TIMESTAMP WITH TIME ZONE NOT NULL,
    CONSTRAINT pk_notification PRIMARY KEY (id),
    CONSTRAINT fk_notification_workspace_id_workspace FOREIGN KEY(workspace_id) REFERENCES workspace (id),
    CONSTRAINT fk_notification_user_id_app_user FOREIGN KEY(user_id) REFERENCES app_user (id),
    CONSTRAINT ck_notification_kind CHECK (kind IN ('mention', 'comment', 'assignment', 'approval_request', 'automation_failed', 'automation_loop', 'alert', 'data_source_failed', 'import_finished', 'legacy_import', 'share', 'timer_done', 'system'))
);
CREATE INDEX ix_notification_all ON notification (user_id, workspace_id, created_at, id);
CREATE INDEX ix_notification_kept ON notification (user_id, workspace_id, created_at, id) WHERE archived_at IS NULL;
CREATE INDEX ix_notification_unread ON notification (user_id, workspace_id, created_at, id) WHERE read_at IS NULL AND archived_at IS NULL;

CREATE TABLE webhook_endpoint (
    id UUID NOT NULL,
    workspace_id UUID NOT NULL,
    url VARCHAR NOT NULL,
    description VARCHAR,
    event_types TEXT[] NOT NULL,
    enabled BOOLEAN NOT NULL,
    disabled_at TIMESTAMP WITH TIME ZONE,
    disabled_reason VARCHAR,
    failing_since TIMESTAMP WITH TIME ZONE,
    sealed_secret BYTEA NOT NULL,
    sealed_previous_secret BYTEA,
    previous_secret_until TIMESTAMP WITH TIME ZONE,
    log_position BIGINT NOT NULL,
    created_by_user_id UUID NOT NULL,
    created_at TIMESTAMP WITH TIME ZONE NOT NULL,
    updated_at TIMESTAMP WITH TIME ZONE NOT NULL,
    CONSTRAINT pk_webhook_endpoint PRIMARY KEY (id),
    CONSTRAINT fk_webhook_endpoint_workspace_id_workspace FOREIGN KEY(workspace_id) REFERENCES workspace (id),
    CONSTRAINT fk_webhook_endpoint_created_by_user_id_app_user FOREIGN KEY(created_by_user_id) REFERENCES app_user (id),
    CONSTRAINT ck_webhook_endpoint_disabled_reason CHECK (disabled_reason IN ('manual', 'gone', 'failing'))
);
CREATE INDEX ix_webhook_endpoint_enabled ON webhook_endpoint (workspace_id) WHERE enabled;
CREATE INDEX ix_webhook_endpoint_workspace_id_created_at_id ON webhook_endpoint (workspace_id, created_at, id);

CREATE TABLE webhook_signing_secret (
    workspace_id UUID NOT NULL,
    sealed BYTEA NOT NULL,
    created_at TIMESTAMP WITH TIME ZONE NOT NULL,
    CONSTRAINT pk_webhook_signing_secret PRIMARY KEY (workspace_id),
    CONSTRAINT fk_webhook_signing_secret_workspace_id_workspace FOREIGN KEY(workspace_id) REFERENCES workspace (id)
);

CREATE TABLE automation_subscription (
    automation_id UUID NOT NULL,
    workspace_id UUID NOT NULL,
    kind VARCHAR NOT NULL,
    subject_id UUID,
    include_system BOOLEAN DEFAULT false NOT NULL,
    after_event BIGINT DEFAULT 0 NOT NULL,
    polled_until TIMESTAMP WITH TIME ZONE,
    next_poll_at TIMESTAMP WITH TIME ZONE,
    CONSTRAINT pk_automation_subscription PRIMARY KEY (automation_id)
);
CREATE INDEX ix_automation_subscription_next_poll_at ON automation_subscription (next_poll_at) WHERE next_poll_at IS NOT NULL;
CREATE INDEX ix_automation_subscription_subject ON automation_subscription (workspace_id, kind, subject_id);

CREATE TABLE idempotency_reply (
    id UUID NOT NULL,
    fingerprint BYTEA NOT NULL,
    request_hash BYTEA NOT NULL,
    workspace_id UUID,
    status INTEGER,
    reply BYTEA,
    created_at TIMESTAMP WITH TIME ZONE NOT NULL,
    expires_at TIMESTAMP WITH TIME ZONE NOT NULL,
    CONSTRAINT pk_idempotency_reply PRIMARY KEY (id),
    CONSTRAINT uq_idempotency_reply_fingerprint UNIQUE (fingerprint)
);
CREATE INDEX ix_idempotency_reply_expires_at ON idempotency_reply (expires_at);

CREATE TABLE pause (
    id UUID NOT NULL,
    workspace_id UUID NOT NULL,
    subject_kind VARCHAR NOT NULL,
    subject_id UUID NOT NULL,
    cause VARCHAR NOT NULL,
    reason VARCHAR NOT NULL,
    paused_by_user_id UUID,
    paused_at TIMESTAMP WITH TIME ZONE NOT NULL,
    resumed_at TIMESTAMP WITH TIME ZONE,
    rate INTEGER,
    due_at TIMESTAMP WITH TIME ZONE,
    CONSTRAINT pk_pause PRIMARY KEY (id),
    CONSTRAINT uq_pause_subject_id_cause UNIQUE (subject_id, cause),
    CONSTRAINT ck_pause_subject_kind CHECK (subject_kind IN ('automation', 'workspace')),
    CONSTRAINT ck_pause_cause CHECK (cause IN ('person', 'circuit_breaker'))
);
CREATE INDEX ix_pause_due_at ON pause (due_at) WHERE due_at IS NOT NULL;
CREATE INDEX ix_pause_workspace_id ON pause (workspace_id);

CREATE TABLE secret_key (
    id BYTEA NOT NULL,
    position INTEGER NOT NULL,
    since TIMESTAMP WITH TIME ZONE NOT NULL,
    CONSTRAINT pk_secret_key PRIMARY KEY (id),
    CONSTRAINT uq_secret_key_position UNIQUE (position)
);

CREATE TABLE work_suspect (
    id UUID NOT NULL,
    lost INTEGER NOT NULL,
    suspected_at TIMESTAMP WITH TIME ZONE NOT NULL,
    held_by VARCHAR,
    quarantined_at TIMESTAMP WITH TIME ZONE,
    CONSTRAINT pk_work_suspect PRIMARY KEY (id)
);
CREATE INDEX ix_work_suspect_suspected_at ON work_suspect (suspected_at);

CREATE TABLE resting_intent (
    work_id UUID NOT NULL,
    intent VARCHAR NOT NULL,
    pause_id UUID NOT NULL,
    workspace_id UUID NOT NULL,
    family VARCHAR NOT NULL,
    request JSONB NOT NULL,
    subject_ids UUID[] NOT NULL,
    accepted_at TIMESTAMP WITH TIME ZONE NOT NULL,
    CONSTRAINT pk_resting_intent PRIMARY KEY (work_id, intent),
    CONSTRAINT fk_resting_intent_pause_id_pause FOREIGN KEY(pause_id) REFERENCES pause (id) ON DELETE CASCADE
);
CREATE INDEX ix_resting_intent_pause_id_accepted_at ON resting_intent (pause_id, accepted_at, work_id, intent);
CREATE INDEX ix_resting_intent_workspace_id ON resting_intent (workspace_id);

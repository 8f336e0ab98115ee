CREATE TABLE idempotency_reply (
    id UUID NOT NULL,
    fingerprint BYTEA NOT NULL,
    request_hash BYTEA NOT NULL,
    status INTEGER,
    reply BYTEA,
    created_at TIMESTAMP WITH TIME ZONE NOT NULL,
    expires_at TIMESTAMP WITH TIME ZONE NOT NULL,
    CONSTRAINT pk_idempotency_reply PRIMARY KEY (id),
    CONSTRAINT uq_idempotency_reply_fingerprint UNIQUE (fingerprint)
);
CREATE INDEX ix_idempotency_reply_expires_at ON idempotency_reply (expires_at);

CREATE TABLE work_suspect (
    id UUID NOT NULL,
    lost INTEGER NOT NULL,
    suspected_at TIMESTAMP WITH TIME ZONE NOT NULL,
    held_by VARCHAR,
    quarantined_at TIMESTAMP WITH TIME ZONE,
    CONSTRAINT pk_work_suspect PRIMARY KEY (id)
);
CREATE INDEX ix_work_suspect_suspected_at ON work_suspect (suspected_at);

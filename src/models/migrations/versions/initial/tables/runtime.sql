CREATE TABLE outbox (
    id BIGINT GENERATED ALWAYS AS IDENTITY,
    workspace_id UUID NOT NULL,
    intent VARCHAR NOT NULL,
    family VARCHAR NOT NULL,
    subject_id UUID NOT NULL,
    request JSONB NOT NULL,
    created_at TIMESTAMP WITH TIME ZONE NOT NULL,
    claimed_until TIMESTAMP WITH TIME ZONE,
    attempts INTEGER NOT NULL,
    CONSTRAINT pk_outbox PRIMARY KEY (id)
);
CREATE INDEX ix_outbox_line ON outbox (workspace_id, intent, family, coalesce(request ->> 'weight', '1'), id);
CREATE INDEX ix_outbox_subject_id ON outbox (subject_id);

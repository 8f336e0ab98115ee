CREATE TABLE ended_work (
    id BIGINT GENERATED ALWAYS AS IDENTITY,
    kind VARCHAR NOT NULL,
    status VARCHAR NOT NULL,
    number BIGINT NOT NULL,
    CONSTRAINT pk_ended_work PRIMARY KEY (id)
);

CREATE TABLE import_id_map (
    run_id UUID NOT NULL,
    entry_id UUID NOT NULL,
    source_id UUID NOT NULL,
    source_kind VARCHAR NOT NULL,
    target_id UUID NOT NULL,
    CONSTRAINT pk_import_id_map PRIMARY KEY (entry_id, source_id, source_kind)
);
CREATE INDEX ix_import_id_map_entry_id_source_kind_target_id ON import_id_map (entry_id, source_kind, target_id);
CREATE INDEX ix_import_id_map_run_id ON import_id_map (run_id);

CREATE TABLE worker_process (
    id UUID NOT NULL,
    host VARCHAR NOT NULL,
    pid INTEGER NOT NULL,
    queues TEXT[] NOT NULL,
    started_at TIMESTAMP WITH TIME ZONE NOT NULL,
    seen_at TIMESTAMP WITH TIME ZONE NOT NULL,
    CONSTRAINT pk_worker_process PRIMARY KEY (id)
);

CREATE TABLE legacy_import_run (
    id UUID NOT NULL,
    bundle_object_key VARCHAR NOT NULL,
    bundle_checksum VARCHAR NOT NULL,
    uploaded BOOLEAN NOT NULL,
    status VARCHAR NOT NULL,
    mode VARCHAR NOT NULL,
    execution VARCHAR DEFAULT '' NOT NULL,
    executions INTEGER DEFAULT '0' NOT NULL,
    source_snapshot_timestamp VARCHAR,
    source_version VARCHAR,
    converter_version VARCHAR,
    source_counts JSONB DEFAULT '{}' NOT NULL,
    warnings TEXT[] DEFAULT '{}' NOT NULL,
    errors TEXT[] DEFAULT '{}' NOT NULL,
    approved_at TIMESTAMP WITH TIME ZONE,
    approved_by_user_id UUID,
    approval_note VARCHAR,
    canceled_by_user_id UUID,
    cancellation_reason VARCHAR,
    rollback_requested_by_user_id UUID,
    rollback_reason VARCHAR,
    rollback_force BOOLEAN DEFAULT false NOT NULL,
    created_by_user_id UUID NOT NULL,
    started_at TIMESTAMP WITH TIME ZONE,
    completed_at TIMESTAMP WITH TIME ZONE,
    created_at TIMESTAMP WITH TIME ZONE NOT NULL,
    updated_at TIMESTAMP WITH TIME ZONE NOT NULL,
    CONSTRAINT pk_legacy_import_run PRIMARY KEY (id),
    CONSTRAINT fk_legacy_import_run_created_by_user_id_app_user FOREIGN KEY(created_by_user_id) REFERENCES app_user (id),
    CONSTRAINT ck_legacy_import_run_status CHECK (status IN ('uploaded', 'validating', 'dry_running', 'awaiting_review', 'approved', 'importing', 'verifying', 'completed', 'completed_with_warnings', 'failed', 'cancelling', 'cancelled', 'rolling_back', 'rolled_back', 'rollback_failed')),
    CONSTRAINT ck_legacy_import_run_mode CHECK (mode IN ('dry_run', 'apply'))
);
CREATE INDEX ix_legacy_import_run_completed_at ON legacy_import_run (completed_at);
CREATE INDEX ix_legacy_import_run_created_at ON legacy_import_run (created_at, id);
CREATE INDEX ix_legacy_import_run_open ON legacy_import_run (id) WHERE status IN ('uploaded', 'validating', 'dry_running', 'awaiting_review', 'approved', 'importing', 'verifying', 'cancelling', 'rolling_back');

CREATE TABLE change_set (
    id UUID NOT NULL,
    workspace_id UUID NOT NULL,
    source VARCHAR NOT NULL,
    title VARCHAR NOT NULL,
    instruction VARCHAR,
    status VARCHAR NOT NULL,
    operations JSONB NOT NULL,
    outcomes JSONB NOT NULL,
    sealed_credentials BYTEA,
    names JSONB NOT NULL,
    rejected_reason VARCHAR,
    created_by_user_id UUID NOT NULL,
    expires_at TIMESTAMP WITH TIME ZONE NOT NULL,
    created_at TIMESTAMP WITH TIME ZONE NOT NULL,
    updated_at TIMESTAMP WITH TIME ZONE NOT NULL,
    completed_at TIMESTAMP WITH TIME ZONE,
    CONSTRAINT pk_change_set PRIMARY KEY (id),
    CONSTRAINT uq_change_set_workspace_id_id UNIQUE (workspace_id, id),
    CONSTRAINT fk_change_set_workspace_id_workspace FOREIGN KEY(workspace_id) REFERENCES workspace (id),
    CONSTRAINT ck_change_set_status CHECK (status IN ('planned', 'awaiting_approval', 'applying', 'applied', 'partially_applied', 'failed', 'rejected', 'expired')),
    CONSTRAINT ck_change_set_source CHECK (source IN ('model', 'rules', 'hand')),
    CONSTRAINT ck_change_set_closed_without_credentials CHECK (sealed_credentials IS NULL OR completed_at IS NULL)
);
CREATE INDEX ix_change_set_completed_at ON change_set (completed_at);
CREATE INDEX ix_change_set_expires_at ON change_set (expires_at) WHERE status IN ('planned', 'awaiting_approval');
CREATE INDEX ix_change_set_workspace_id_created_at_id ON change_set (workspace_id, created_at, id);

CREATE TABLE legacy_import_workspace (
    id UUID NOT NULL,
    run_id UUID NOT NULL,
    position INTEGER NOT NULL,
    source_workspace_id VARCHAR NOT NULL,
    source_name VARCHAR NOT NULL,
    source_counts JSONB DEFAULT '{}' NOT NULL,
    target_workspace_id UUID,
    creates BOOLEAN NOT NULL,
    selected BOOLEAN NOT NULL,
    stage VARCHAR NOT NULL,
    lifecycle_state VARCHAR NOT NULL,
    counts JSONB DEFAULT '{}' NOT NULL,
    warnings TEXT[] DEFAULT '{}' NOT NULL,
    errors TEXT[] DEFAULT '{}' NOT NULL,
    verification JSONB DEFAULT '{}' NOT NULL,
    progress JSONB DEFAULT '{}' NOT NULL,
    rollback_state VARCHAR NOT NULL,
    attempt INTEGER DEFAULT '0' NOT NULL,
    last_error VARCHAR,
    imported_at TIMESTAMP WITH TIME ZONE,
    created_at TIMESTAMP WITH TIME ZONE NOT NULL,
    updated_at TIMESTAMP WITH TIME ZONE NOT NULL,
    CONSTRAINT pk_legacy_import_workspace PRIMARY KEY (id),
    CONSTRAINT uq_legacy_import_workspace_run_id_source_workspace_id UNIQUE (run_id, source_workspace_id),
    CONSTRAINT fk_legacy_import_workspace_run_id_legacy_import_run FOREIGN KEY(run_id) REFERENCES legacy_import_run (id) ON DELETE CASCADE,
    CONSTRAINT ck_legacy_import_workspace_stage CHECK (stage IN ('queued', 'validating', 'dry_run', 'ready', 'blocked', 'creating', 'schema', 'records', 'relations', 'files', 'content', 'automations', 'verifying', 'done', 'failed', 'skipped', 'cancelled')),
    CONSTRAINT ck_legacy_import_workspace_lifecycle_state CHECK (lifecycle_state IN ('pending', 'hidden', 'live', 'removed')),
    CONSTRAINT ck_legacy_import_workspace_rollback_state CHECK (rollback_state IN ('none', 'requested', 'running', 'completed', 'partial', 'failed', 'expired'))
);

CREATE TABLE model_settings (
    workspace_id UUID NOT NULL,
    base_url VARCHAR NOT NULL,
    model VARCHAR NOT NULL,
    sealed_api_key BYTEA,
    enabled BOOLEAN NOT NULL,
    timeout_seconds INTEGER NOT NULL,
    updated_by_user_id UUID NOT NULL,
    updated_at TIMESTAMP WITH TIME ZONE NOT NULL,
    CONSTRAINT pk_model_settings PRIMARY KEY (workspace_id),
    CONSTRAINT fk_model_settings_workspace_id_workspace FOREIGN KEY(workspace_id) REFERENCES workspace (id)
);

CREATE TABLE usage_total (
    workspace_id UUID NOT NULL,
    counter VARCHAR NOT NULL,
    month TIMESTAMP WITH TIME ZONE NOT NULL,
    number BIGINT NOT NULL,
    counted_until TIMESTAMP WITH TIME ZONE NOT NULL,
    CONSTRAINT pk_usage_total PRIMARY KEY (workspace_id, counter),
    CONSTRAINT fk_usage_total_workspace_id_workspace FOREIGN KEY(workspace_id) REFERENCES workspace (id)
);
CREATE INDEX ix_usage_total_counted_until ON usage_total (counted_until);

CREATE TABLE share_link (
    id UUID NOT NULL,
    workspace_id UUID NOT NULL,
    workspace_item_id UUID NOT NULL,
    kind VARCHAR NOT NULL,
    digest BYTEA NOT NULL,
    digest_key BYTEA,
    expires_at TIMESTAMP WITH TIME ZONE,
    max_uses INTEGER,
    use_count INTEGER DEFAULT 0 NOT NULL,
    allow_download BOOLEAN NOT NULL,
    created_by_user_id UUID NOT NULL,
    created_at TIMESTAMP WITH TIME ZONE NOT NULL,
    revoked_at TIMESTAMP WITH TIME ZONE,
    CONSTRAINT pk_share_link PRIMARY KEY (id),
    CONSTRAINT uq_share_link_workspace_id_id UNIQUE (workspace_id, id),
    CONSTRAINT fk_share_link_workspace_id_workspace_item_id_item FOREIGN KEY(workspace_id, workspace_item_id) REFERENCES item (workspace_id, id) ON DELETE CASCADE,
    CONSTRAINT fk_share_link_created_by_user_id_app_user FOREIGN KEY(created_by_user_id) REFERENCES app_user (id),
    CONSTRAINT ck_share_link_use_count CHECK (use_count >= 0 AND use_count <= max_uses)
);
CREATE INDEX ix_share_link_workspace_id_workspace_item_id_created_at_id ON share_link (workspace_id, workspace_item_id, created_at, id);

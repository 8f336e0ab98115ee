CREATE TABLE source_columns (
    workspace_id UUID NOT NULL,
    source_id UUID NOT NULL,
    database_id UUID NOT NULL,
    columns JSONB NOT NULL,
    headers JSONB NOT NULL,
    config VARCHAR NOT NULL,
    json_path VARCHAR,
    CONSTRAINT pk_source_columns PRIMARY KEY (workspace_id, source_id)
);

CREATE TABLE source_row (
    workspace_id UUID NOT NULL,
    source_id UUID NOT NULL,
    identity BYTEA NOT NULL,
    record_id UUID NOT NULL,
    digest BYTEA NOT NULL,
    run_id UUID NOT NULL,
    removed BOOLEAN NOT NULL,
    position BIGINT,
    title VARCHAR,
    data JSONB,
    CONSTRAINT pk_source_row PRIMARY KEY (workspace_id, source_id, identity)
)
 WITH (fillfactor = 50);
CREATE INDEX ix_source_row_workspace_id_record_id ON source_row (workspace_id, record_id);

CREATE UNLOGGED TABLE staged_row (
    run_id UUID NOT NULL,
    position BIGINT NOT NULL,
    row_number BIGINT,
    identity BYTEA NOT NULL,
    digest BYTEA NOT NULL,
    title VARCHAR NOT NULL,
    data JSONB NOT NULL,
    record_id UUID,
    change VARCHAR,
    CONSTRAINT pk_staged_row PRIMARY KEY (run_id, position)
)
 WITH (fillfactor = 50);

CREATE TABLE connection (
    id UUID NOT NULL,
    workspace_id UUID NOT NULL,
    provider VARCHAR NOT NULL,
    label VARCHAR NOT NULL,
    config JSONB NOT NULL,
    sealed_credentials BYTEA NOT NULL,
    shared BOOLEAN NOT NULL,
    created_by_user_id UUID NOT NULL,
    created_at TIMESTAMP WITH TIME ZONE NOT NULL,
    updated_at TIMESTAMP WITH TIME ZONE NOT NULL,
    CONSTRAINT pk_connection PRIMARY KEY (id),
    CONSTRAINT uq_connection_workspace_id_id UNIQUE (workspace_id, id),
    CONSTRAINT fk_connection_workspace_id_workspace FOREIGN KEY(workspace_id) REFERENCES workspace (id),
    CONSTRAINT ck_connection_provider CHECK (provider IN ('demo', 'http', 'postgresql', 'mysql', 'sqlite', 'webdav', 's3', 'sftp', 'github', 'notion', 'airtable', 'google_drive'))
);
CREATE INDEX ix_connection_workspace_id_created_at_id ON connection (workspace_id, created_at, id);

CREATE TABLE oauth_authorization (
    id UUID NOT NULL,
    workspace_id UUID NOT NULL,
    user_id UUID NOT NULL,
    provider VARCHAR NOT NULL,
    connection_id UUID,
    label VARCHAR NOT NULL,
    shared BOOLEAN NOT NULL,
    state_digest BYTEA NOT NULL,
    sealed BYTEA NOT NULL,
    redirect_uri VARCHAR NOT NULL,
    created_at TIMESTAMP WITH TIME ZONE NOT NULL,
    expires_at TIMESTAMP WITH TIME ZONE NOT NULL,
    returned_at TIMESTAMP WITH TIME ZONE,
    CONSTRAINT pk_oauth_authorization PRIMARY KEY (id),
    CONSTRAINT fk_oauth_authorization_workspace_id_workspace FOREIGN KEY(workspace_id) REFERENCES workspace (id),
    CONSTRAINT uq_oauth_authorization_state_digest UNIQUE (state_digest)
);
CREATE INDEX ix_oauth_authorization_expires_at ON oauth_authorization (expires_at);

CREATE TABLE provider_switch (
    workspace_id UUID NOT NULL,
    provider VARCHAR NOT NULL,
    enabled BOOLEAN NOT NULL,
    updated_at TIMESTAMP WITH TIME ZONE NOT NULL,
    CONSTRAINT pk_provider_switch PRIMARY KEY (workspace_id, provider),
    CONSTRAINT fk_provider_switch_workspace_id_workspace FOREIGN KEY(workspace_id) REFERENCES workspace (id) ON DELETE CASCADE
);

CREATE TABLE failing_connection (
    connection_id UUID NOT NULL,
    workspace_id UUID NOT NULL,
    failures BIGINT NOT NULL,
    failing_since TIMESTAMP WITH TIME ZONE NOT NULL,
    failed_at TIMESTAMP WITH TIME ZONE NOT NULL,
    message VARCHAR NOT NULL,
    CONSTRAINT pk_failing_connection PRIMARY KEY (connection_id),
    CONSTRAINT fk_failing_connection_workspace_id_connection_id_connection FOREIGN KEY(workspace_id, connection_id) REFERENCES connection (workspace_id, id) ON DELETE CASCADE
);

CREATE TABLE imported_resource (
    id UUID NOT NULL,
    workspace_id UUID NOT NULL,
    connection_id UUID NOT NULL,
    root_id UUID NOT NULL,
    parent_id UUID,
    external_type VARCHAR NOT NULL,
    external_id VARCHAR NOT NULL,
    sheet_name VARCHAR,
    resource_name VARCHAR NOT NULL,
    mime_type VARCHAR,
    offered_revision VARCHAR,
    kind VARCHAR NOT NULL,
    item_id UUID,
    item_title VARCHAR,
    revision VARCHAR,
    digest VARCHAR,
    local_state VARCHAR,
    blocks JSONB,
    run_id UUID,
    seen_by UUID NOT NULL,
    pending BOOLEAN NOT NULL,
    created_at TIMESTAMP WITH TIME ZONE NOT NULL,
    updated_at TIMESTAMP WITH TIME ZONE NOT NULL,
    CONSTRAINT pk_imported_resource PRIMARY KEY (id),
    CONSTRAINT uq_imported_resource_workspace_id_id UNIQUE (workspace_id, id),
    CONSTRAINT fk_imported_resource_workspace_id_workspace FOREIGN KEY(workspace_id) REFERENCES workspace (id),
    CONSTRAINT fk_imported_resource_workspace_id_root_id_imported_resource FOREIGN KEY(workspace_id, root_id) REFERENCES imported_resource (workspace_id, id) ON DELETE CASCADE,
    CONSTRAINT fk_imported_resource_workspace_id_item_id_item FOREIGN KEY(workspace_id, item_id) REFERENCES item (workspace_id, id) ON DELETE CASCADE,
    CONSTRAINT ck_imported_resource_kind CHECK (kind IN ('folder', 'page', 'file', 'database'))
);
CREATE INDEX ix_imported_resource_item_id ON imported_resource (item_id);
CREATE INDEX ix_imported_resource_of_connection ON imported_resource (workspace_id, connection_id, external_id) WHERE root_id = id;
CREATE INDEX ix_imported_resource_pending ON imported_resource (root_id, id) WHERE pending;
CREATE UNIQUE INDEX uq_imported_resource_root_id_external_id ON imported_resource (root_id, external_id, sheet_name) NULLS NOT DISTINCT;

CREATE TABLE mount (
    id UUID NOT NULL,
    workspace_id UUID NOT NULL,
    item_id UUID NOT NULL,
    connection_id UUID,
    root_mount_id UUID,
    external_id VARCHAR NOT NULL,
    resource JSONB NOT NULL,
    recursive BOOLEAN NOT NULL,
    status VARCHAR NOT NULL,
    error VARCHAR,
    vanished_at TIMESTAMP WITH TIME ZONE,
    last_synced_at TIMESTAMP WITH TIME ZONE,
    seen_by UUID,
    pending BOOLEAN DEFAULT false NOT NULL,
    sync_job_id UUID,
    synced_revision VARCHAR,
    entries INTEGER DEFAULT 0 NOT NULL,
    truncated BOOLEAN DEFAULT false NOT NULL,
    next_run_at TIMESTAMP WITH TIME ZONE,
    skipped_fires INTEGER DEFAULT 0 NOT NULL,
    missed_fires INTEGER DEFAULT 0 NOT NULL,
    created_by_user_id UUID,
    created_at TIMESTAMP WITH TIME ZONE NOT NULL,
    updated_at TIMESTAMP WITH TIME ZONE NOT NULL,
    CONSTRAINT pk_mount PRIMARY KEY (id),
    CONSTRAINT uq_mount_workspace_id_id UNIQUE (workspace_id, id),
    CONSTRAINT fk_mount_workspace_id_item_id_item FOREIGN KEY(workspace_id, item_id) REFERENCES item (workspace_id, id),
    CONSTRAINT fk_mount_workspace_id_root_mount_id_mount FOREIGN KEY(workspace_id, root_mount_id) REFERENCES mount (workspace_id, id) ON DELETE CASCADE,
    CONSTRAINT ck_mount_status CHECK (status IN ('active', 'stale', 'error')),
    CONSTRAINT uq_mount_item_id UNIQUE (item_id)
);
CREATE INDEX ix_mount_pending ON mount (root_mount_id, id) WHERE pending;
CREATE INDEX ix_mount_resource ON mount (workspace_id, connection_id, external_id) WHERE root_mount_id IS NULL;
CREATE UNIQUE INDEX uq_mount_entry ON mount (root_mount_id, external_id) WHERE root_mount_id IS NOT NULL;

CREATE TABLE outbound_place (
    id UUID NOT NULL,
    workspace_id UUID NOT NULL,
    host VARCHAR,
    connection_id UUID,
    per_second FLOAT,
    at_once INTEGER,
    next_at TIMESTAMP WITH TIME ZONE,
    free_at TIMESTAMP WITH TIME ZONE,
    paused_until TIMESTAMP WITH TIME ZONE,
    paused_at TIMESTAMP WITH TIME ZONE,
    pause_reason VARCHAR,
    paused_by_user_id UUID,
    resumed_at TIMESTAMP WITH TIME ZONE,
    release_rate INTEGER,
    created_at TIMESTAMP WITH TIME ZONE NOT NULL,
    updated_at TIMESTAMP WITH TIME ZONE NOT NULL,
    CONSTRAINT pk_outbound_place PRIMARY KEY (id),
    CONSTRAINT fk_outbound_place_workspace_id_workspace FOREIGN KEY(workspace_id) REFERENCES workspace (id),
    CONSTRAINT fk_outbound_place_workspace_id_connection_id_connection FOREIGN KEY(workspace_id, connection_id) REFERENCES connection (workspace_id, id) ON DELETE CASCADE,
    CONSTRAINT ck_outbound_place_one_place CHECK ((host IS NULL) <> (connection_id IS NULL))
);
CREATE UNIQUE INDEX uq_outbound_place_connection_id ON outbound_place (workspace_id, connection_id) WHERE connection_id IS NOT NULL;
CREATE UNIQUE INDEX uq_outbound_place_host ON outbound_place (workspace_id, host) WHERE host IS NOT NULL;

CREATE UNLOGGED TABLE resource_mirror (
    workspace_id UUID NOT NULL,
    connection_id UUID NOT NULL,
    user_id UUID NOT NULL,
    digest BYTEA NOT NULL,
    revision VARCHAR,
    answer JSONB NOT NULL,
    expires_at TIMESTAMP WITH TIME ZONE NOT NULL,
    CONSTRAINT pk_resource_mirror PRIMARY KEY (workspace_id, connection_id, user_id, digest),
    CONSTRAINT fk_resource_mirror_workspace_id_connection_id_connection FOREIGN KEY(workspace_id, connection_id) REFERENCES connection (workspace_id, id) ON DELETE CASCADE
);
CREATE INDEX ix_resource_mirror_expires_at ON resource_mirror (expires_at);

CREATE TABLE data_source (
    id UUID NOT NULL,
    workspace_id UUID NOT NULL,
    item_id UUID NOT NULL,
    key VARCHAR NOT NULL,
    kind VARCHAR NOT NULL,
    config JSONB NOT NULL,
    fields JSONB NOT NULL,
    target_database_id UUID,
    key_fields JSONB NOT NULL,
    write_mode VARCHAR NOT NULL,
    removed_rows VARCHAR NOT NULL,
    removal_guard_percent INTEGER NOT NULL,
    schedule JSONB,
    next_run_at TIMESTAMP WITH TIME ZONE,
    skipped_fires INTEGER DEFAULT 0 NOT NULL,
    missed_fires INTEGER DEFAULT 0 NOT NULL,
    joined_fires INTEGER DEFAULT 0 NOT NULL,
    last_joined_at TIMESTAMP WITH TIME ZONE,
    enabled BOOLEAN NOT NULL,
    created_by_user_id UUID,
    created_at TIMESTAMP WITH TIME ZONE NOT NULL,
    updated_at TIMESTAMP WITH TIME ZONE NOT NULL,
    CONSTRAINT pk_data_source PRIMARY KEY (id),
    CONSTRAINT uq_data_source_workspace_id_id UNIQUE (workspace_id, id),
    CONSTRAINT uq_data_source_workspace_id_key UNIQUE (workspace_id, key),
    CONSTRAINT fk_data_source_workspace_id_item_id_item FOREIGN KEY(workspace_id, item_id) REFERENCES item (workspace_id, id),
    CONSTRAINT fk_data_source_workspace_id_target_database_id_database FOREIGN KEY(workspace_id, target_database_id) REFERENCES database (workspace_id, id),
    CONSTRAINT ck_data_source_kind CHECK (kind IN ('http_json', 'http_csv', 'http_xlsx', 'file', 'sql', 'connection')),
    CONSTRAINT uq_data_source_item_id UNIQUE (item_id)
);
CREATE INDEX ix_data_source_workspace_id_created_at_id ON data_source (workspace_id, created_at, id);
CREATE INDEX ix_data_source_workspace_id_target_database_id ON data_source (workspace_id, target_database_id);

CREATE TABLE outbound_call (
    call_key VARCHAR NOT NULL,
    place_id UUID NOT NULL,
    workspace_id UUID NOT NULL,
    work_id UUID NOT NULL,
    position BIGINT GENERATED ALWAYS AS IDENTITY,
    execution VARCHAR,
    entered_at TIMESTAMP WITH TIME ZONE NOT NULL,
    go_at TIMESTAMP WITH TIME ZONE,
    gone BOOLEAN NOT NULL,
    back_at TIMESTAMP WITH TIME ZONE,
    ends_at TIMESTAMP WITH TIME ZONE NOT NULL,
    CONSTRAINT pk_outbound_call PRIMARY KEY (call_key, place_id),
    CONSTRAINT fk_outbound_call_place_id_outbound_place FOREIGN KEY(place_id) REFERENCES outbound_place (id) ON DELETE CASCADE
);
CREATE INDEX ix_outbound_call_line ON outbound_call (place_id, position);
CREATE INDEX ix_outbound_call_work_id ON outbound_call (work_id);

CREATE TABLE data_source_run (
    id UUID NOT NULL,
    workspace_id UUID NOT NULL,
    data_source_id UUID,
    database_id UUID,
    status VARCHAR NOT NULL,
    trigger VARCHAR NOT NULL,
    actor_user_id UUID,
    client_mutation_id VARCHAR,
    retry_of_run_id UUID,
    chain UUID[] DEFAULT '{}' NOT NULL,
    plan JSONB NOT NULL,
    progress JSONB NOT NULL,
    stats JSONB NOT NULL,
    result JSONB,
    note VARCHAR,
    error VARCHAR,
    error_kind VARCHAR,
    created_at TIMESTAMP WITH TIME ZONE NOT NULL,
    dispatched_at TIMESTAMP WITH TIME ZONE,
    started_at TIMESTAMP WITH TIME ZONE,
    completed_at TIMESTAMP WITH TIME ZONE,
    reverted_at TIMESTAMP WITH TIME ZONE,
    CONSTRAINT pk_data_source_run PRIMARY KEY (id),
    CONSTRAINT uq_data_source_run_workspace_id_id UNIQUE (workspace_id, id),
    CONSTRAINT fk_data_source_run_workspace_id_workspace FOREIGN KEY(workspace_id) REFERENCES workspace (id),
    CONSTRAINT fk_data_source_run_workspace_id_data_source_id_data_source FOREIGN KEY(workspace_id, data_source_id) REFERENCES data_source (workspace_id, id),
    CONSTRAINT ck_data_source_run_status CHECK (status IN ('queued', 'running', 'succeeded', 'failed', 'cancelled')),
    CONSTRAINT ck_data_source_run_trigger CHECK (trigger IN ('manual', 'schedule', 'action', 'automation', 'import', 'retry'))
);
CREATE INDEX ix_data_source_run_completed_at ON data_source_run (completed_at);
CREATE INDEX ix_data_source_run_dispatched ON data_source_run (workspace_id) WHERE dispatched_at IS NOT NULL AND status IN ('queued', 'running');
CREATE INDEX ix_data_source_run_open ON data_source_run (id) WHERE status IN ('queued', 'running');
CREATE INDEX ix_data_source_run_open_workspace_id ON data_source_run (workspace_id) WHERE status IN ('queued', 'running');
CREATE INDEX ix_data_source_run_workspace_id_data_source_id_created_at ON data_source_run (workspace_id, data_source_id, created_at);
CREATE UNIQUE INDEX uq_data_source_run_client_mutation_id ON data_source_run (workspace_id, client_mutation_id) WHERE status NOT IN ('failed', 'cancelled');
CREATE UNIQUE INDEX uq_data_source_run_open_of_source ON data_source_run (data_source_id) WHERE status IN ('queued', 'running');

CREATE TABLE data_source_run_rejection (
    workspace_id UUID NOT NULL,
    run_id UUID NOT NULL,
    place INTEGER NOT NULL,
    row_number BIGINT NOT NULL,
    "column" VARCHAR,
    field_key VARCHAR,
    value VARCHAR,
    reason VARCHAR NOT NULL,
    CONSTRAINT pk_data_source_run_rejection PRIMARY KEY (workspace_id, run_id, place),
    CONSTRAINT fk_data_source_run_rejection_workspace_id_data_source_run FOREIGN KEY(workspace_id, run_id) REFERENCES data_source_run (workspace_id, id) ON DELETE CASCADE
);

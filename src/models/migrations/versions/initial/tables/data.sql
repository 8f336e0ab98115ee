CREATE TABLE record_change (
    id UUID DEFAULT uuidv7() NOT NULL,
    workspace_id UUID NOT NULL,
    database_id UUID NOT NULL,
    record_id UUID NOT NULL,
    kind VARCHAR NOT NULL,
    actor_user_id UUID,
    principal_type VARCHAR NOT NULL,
    run_id UUID,
    before JSONB,
    after JSONB,
    omitted_keys TEXT[],
    at TIMESTAMP WITH TIME ZONE NOT NULL,
    written_at TIMESTAMP WITH TIME ZONE,
    CONSTRAINT pk_record_change PRIMARY KEY (id),
    CONSTRAINT ck_record_change_kind CHECK (kind IN ('created', 'updated', 'archived', 'restored', 'deleted'))
);
CREATE INDEX ix_record_change_workspace_id_record_id_id ON record_change (workspace_id, record_id, id);

CREATE TABLE record_count (
    id BIGINT GENERATED ALWAYS AS IDENTITY,
    database_id UUID NOT NULL,
    number BIGINT NOT NULL,
    CONSTRAINT pk_record_count PRIMARY KEY (id)
);
CREATE INDEX ix_record_count_database_id ON record_count (database_id);

CREATE TABLE time_entry (
    id UUID NOT NULL,
    workspace_id UUID NOT NULL,
    user_id UUID NOT NULL,
    target_kind VARCHAR NOT NULL,
    target_id UUID NOT NULL,
    target_title_snapshot VARCHAR,
    item_id UUID,
    database_id UUID,
    field_id UUID,
    field_label_snapshot VARCHAR,
    source VARCHAR NOT NULL,
    mode VARCHAR NOT NULL,
    status VARCHAR NOT NULL,
    started_at TIMESTAMP WITH TIME ZONE NOT NULL,
    ended_at TIMESTAMP WITH TIME ZONE,
    paused_at TIMESTAMP WITH TIME ZONE,
    due_at TIMESTAMP WITH TIME ZONE,
    pauses TSTZMULTIRANGE DEFAULT '{}' NOT NULL,
    accumulated_paused_ms BIGINT NOT NULL,
    duration_ms BIGINT,
    counted_ms BIGINT,
    target_duration_ms BIGINT,
    summary VARCHAR,
    sound_id VARCHAR NOT NULL,
    completed_by VARCHAR,
    client_mutation_id VARCHAR,
    mutation_digest BYTEA,
    update_mutation_id VARCHAR,
    created_by_user_id UUID NOT NULL,
    updated_by_user_id UUID NOT NULL,
    created_at TIMESTAMP WITH TIME ZONE NOT NULL,
    updated_at TIMESTAMP WITH TIME ZONE NOT NULL,
    closed_at TIMESTAMP WITH TIME ZONE,
    deleted_at TIMESTAMP WITH TIME ZONE,
    CONSTRAINT pk_time_entry PRIMARY KEY (id),
    CONSTRAINT fk_time_entry_workspace_id_workspace FOREIGN KEY(workspace_id) REFERENCES workspace (id),
    CONSTRAINT fk_time_entry_user_id_app_user FOREIGN KEY(user_id) REFERENCES app_user (id),
    CONSTRAINT ck_time_entry_target_kind CHECK (target_kind IN ('database_record', 'item', 'workspace')),
    CONSTRAINT ck_time_entry_source CHECK (source IN ('timer', 'manual', 'import', 'automation')),
    CONSTRAINT ck_time_entry_mode CHECK (mode IN ('stopwatch', 'countdown', 'pomodoro', 'fixed')),
    CONSTRAINT ck_time_entry_status CHECK (status IN ('active', 'paused', 'completed', 'discarded')),
    CONSTRAINT ck_time_entry_sound_id CHECK (sound_id IN ('none', 'chime', 'bell', 'digital', 'gong', 'soft')),
    CONSTRAINT ck_time_entry_completed_by CHECK (completed_by IN ('user', 'timer', 'system', 'admin')),
    CONSTRAINT ck_time_entry_ends_after_start CHECK (ended_at >= started_at),
    CONSTRAINT ck_time_entry_not_negative CHECK (accumulated_paused_ms >= 0 AND duration_ms >= 0),
    CONSTRAINT ck_time_entry_times_of_status CHECK ((status = 'paused') = (paused_at IS NOT NULL) AND (status = 'completed') <= (ended_at IS NOT NULL AND duration_ms IS NOT NULL) AND (status IN ('completed', 'discarded')) = (closed_at IS NOT NULL))
);
CREATE INDEX ix_time_entry_discarded ON time_entry (closed_at, id) WHERE status = 'discarded';
CREATE INDEX ix_time_entry_open ON time_entry (id) WHERE status IN ('active', 'paused');
CREATE INDEX ix_time_entry_started_at ON time_entry (workspace_id, started_at, id);
CREATE INDEX ix_time_entry_target_id_field_id ON time_entry (workspace_id, target_id, field_id);
CREATE INDEX ix_time_entry_user_started_at ON time_entry (workspace_id, user_id, started_at, id);
CREATE UNIQUE INDEX uq_time_entry_active ON time_entry (workspace_id, user_id) WHERE status = 'active';
CREATE UNIQUE INDEX uq_time_entry_client_mutation_id ON time_entry (workspace_id, user_id, client_mutation_id) WHERE client_mutation_id IS NOT NULL;

CREATE TABLE database (
    id UUID NOT NULL,
    workspace_id UUID NOT NULL,
    item_id UUID,
    key VARCHAR NOT NULL,
    label VARCHAR NOT NULL,
    description VARCHAR,
    settings JSONB NOT NULL,
    record_layout JSONB NOT NULL,
    next_number BIGINT DEFAULT 1 NOT NULL,
    created_at TIMESTAMP WITH TIME ZONE NOT NULL,
    updated_at TIMESTAMP WITH TIME ZONE NOT NULL,
    CONSTRAINT pk_database PRIMARY KEY (id),
    CONSTRAINT uq_database_workspace_id_id UNIQUE (workspace_id, id),
    CONSTRAINT uq_database_workspace_id_key UNIQUE (workspace_id, key),
    CONSTRAINT fk_database_workspace_id_item_id_item FOREIGN KEY(workspace_id, item_id) REFERENCES item (workspace_id, id),
    CONSTRAINT uq_database_item_id UNIQUE (item_id)
);
CREATE INDEX ix_database_workspace_id_created_at_id ON database (workspace_id, created_at, id);

CREATE TABLE field_conversion_value (
    job_id UUID NOT NULL,
    record_id UUID NOT NULL,
    workspace_id UUID NOT NULL,
    value JSONB,
    record_updated_at TIMESTAMP WITH TIME ZONE NOT NULL,
    CONSTRAINT pk_field_conversion_value PRIMARY KEY (job_id, record_id),
    CONSTRAINT fk_field_conversion_value_workspace_id_job_id_job FOREIGN KEY(workspace_id, job_id) REFERENCES job (workspace_id, id) ON DELETE CASCADE
);

CREATE TABLE field (
    id UUID NOT NULL,
    workspace_id UUID NOT NULL,
    database_id UUID NOT NULL,
    key VARCHAR NOT NULL,
    label VARCHAR NOT NULL,
    kind VARCHAR NOT NULL,
    required BOOLEAN NOT NULL,
    default_value VARCHAR,
    options JSONB NOT NULL,
    settings JSONB NOT NULL,
    position FLOAT NOT NULL,
    index_id UUID,
    index_ready BOOLEAN DEFAULT false NOT NULL,
    created_at TIMESTAMP WITH TIME ZONE NOT NULL,
    updated_at TIMESTAMP WITH TIME ZONE NOT NULL,
    CONSTRAINT pk_field PRIMARY KEY (id),
    CONSTRAINT uq_field_workspace_id_database_id_key UNIQUE (workspace_id, database_id, key),
    CONSTRAINT fk_field_workspace_id_database_id_database FOREIGN KEY(workspace_id, database_id) REFERENCES database (workspace_id, id)
);

CREATE TABLE form (
    id UUID NOT NULL,
    workspace_id UUID NOT NULL,
    item_id UUID NOT NULL,
    database_id UUID NOT NULL,
    title VARCHAR,
    description VARCHAR,
    fields JSONB NOT NULL,
    submit_label VARCHAR NOT NULL,
    confirmation VARCHAR NOT NULL,
    public BOOLEAN NOT NULL,
    accepting BOOLEAN NOT NULL,
    closes_at TIMESTAMP WITH TIME ZONE,
    max_submissions INTEGER,
    submission_count INTEGER DEFAULT 0 NOT NULL,
    version INTEGER DEFAULT 1 NOT NULL,
    created_by_user_id UUID NOT NULL,
    created_at TIMESTAMP WITH TIME ZONE NOT NULL,
    updated_at TIMESTAMP WITH TIME ZONE NOT NULL,
    CONSTRAINT pk_form PRIMARY KEY (id),
    CONSTRAINT uq_form_workspace_id_id UNIQUE (workspace_id, id),
    CONSTRAINT fk_form_workspace_id_item_id_item FOREIGN KEY(workspace_id, item_id) REFERENCES item (workspace_id, id) ON DELETE CASCADE,
    CONSTRAINT fk_form_workspace_id_database_id_database FOREIGN KEY(workspace_id, database_id) REFERENCES database (workspace_id, id) ON DELETE CASCADE,
    CONSTRAINT fk_form_created_by_user_id_app_user FOREIGN KEY(created_by_user_id) REFERENCES app_user (id)
);
CREATE INDEX ix_form_workspace_id_database_id ON form (workspace_id, database_id);
CREATE UNIQUE INDEX uq_form_item_id ON form (item_id);

CREATE TABLE record (
    id UUID NOT NULL,
    workspace_id UUID NOT NULL,
    database_id UUID NOT NULL,
    content_surface_id UUID,
    title VARCHAR NOT NULL,
    data JSONB NOT NULL,
    computed JSONB DEFAULT '{}'::jsonb NOT NULL,
    number BIGINT,
    archived BOOLEAN NOT NULL,
    created_by_user_id UUID,
    updated_by_user_id UUID,
    created_at TIMESTAMP WITH TIME ZONE NOT NULL,
    updated_at TIMESTAMP WITH TIME ZONE NOT NULL,
    deleted_at TIMESTAMP WITH TIME ZONE,
    creation_principal_type VARCHAR,
    creation_run_id UUID,
    CONSTRAINT pk_record PRIMARY KEY (id),
    CONSTRAINT uq_record_workspace_id_id UNIQUE (workspace_id, id),
    CONSTRAINT fk_record_workspace_id_database_id_database FOREIGN KEY(workspace_id, database_id) REFERENCES database (workspace_id, id),
    CONSTRAINT ck_record_data_is_object CHECK (jsonb_typeof(data) = 'object'),
    CONSTRAINT ck_record_title_has_its_column CHECK (NOT data ? 'title')
)
 WITH (fillfactor = 85);
CREATE INDEX ix_record_trash ON record (deleted_at, id) WHERE deleted_at IS NOT NULL;
CREATE INDEX ix_record_workspace_id_database_id_archived_created_at_id ON record (workspace_id, database_id, archived, created_at, id) WHERE deleted_at IS NULL;
CREATE INDEX ix_record_workspace_id_database_id_id ON record (workspace_id, database_id, id);

CREATE TABLE removed_field (
    id UUID NOT NULL,
    workspace_id UUID NOT NULL,
    database_id UUID NOT NULL,
    key VARCHAR NOT NULL,
    removed_at TIMESTAMP WITH TIME ZONE NOT NULL,
    CONSTRAINT pk_removed_field PRIMARY KEY (id),
    CONSTRAINT uq_removed_field_workspace_id_database_id_key UNIQUE (workspace_id, database_id, key),
    CONSTRAINT fk_removed_field_workspace_id_database_id_database FOREIGN KEY(workspace_id, database_id) REFERENCES database (workspace_id, id)
);

CREATE TABLE form_submission (
    id UUID NOT NULL,
    workspace_id UUID NOT NULL,
    form_id UUID NOT NULL,
    record_id UUID NOT NULL,
    created_at TIMESTAMP WITH TIME ZONE NOT NULL,
    CONSTRAINT pk_form_submission PRIMARY KEY (id),
    CONSTRAINT fk_form_submission_workspace_id_form_id_form FOREIGN KEY(workspace_id, form_id) REFERENCES form (workspace_id, id) ON DELETE CASCADE,
    CONSTRAINT fk_form_submission_workspace_id_record_id_record FOREIGN KEY(workspace_id, record_id) REFERENCES record (workspace_id, id) ON DELETE CASCADE
);
CREATE INDEX ix_form_submission_workspace_id_form_id_created_at_id ON form_submission (workspace_id, form_id, created_at, id);
CREATE INDEX ix_form_submission_workspace_id_record_id ON form_submission (workspace_id, record_id);

CREATE TABLE record_comment (
    id UUID NOT NULL,
    workspace_id UUID NOT NULL,
    record_id UUID NOT NULL,
    parent_comment_id UUID,
    author_user_id UUID NOT NULL,
    body VARCHAR NOT NULL,
    mentions UUID[] NOT NULL,
    created_at TIMESTAMP WITH TIME ZONE NOT NULL,
    updated_at TIMESTAMP WITH TIME ZONE NOT NULL,
    resolved_at TIMESTAMP WITH TIME ZONE,
    deleted_at TIMESTAMP WITH TIME ZONE,
    CONSTRAINT pk_record_comment PRIMARY KEY (id),
    CONSTRAINT uq_record_comment_workspace_id_record_id_id UNIQUE (workspace_id, record_id, id),
    CONSTRAINT fk_record_comment_workspace_id_record_id_record FOREIGN KEY(workspace_id, record_id) REFERENCES record (workspace_id, id) ON DELETE CASCADE,
    CONSTRAINT fk_record_comment_parent FOREIGN KEY(workspace_id, record_id, parent_comment_id) REFERENCES record_comment (workspace_id, record_id, id) ON DELETE CASCADE,
    CONSTRAINT ck_record_comment_not_its_own_parent CHECK (parent_comment_id <> id)
);

CREATE TABLE record_index (
    workspace_id UUID NOT NULL,
    record_id UUID NOT NULL,
    index_id UUID NOT NULL,
    number NUMERIC,
    text TEXT COLLATE "C",
    folded TEXT COLLATE "C",
    CONSTRAINT pk_record_index PRIMARY KEY (workspace_id, record_id, index_id),
    CONSTRAINT fk_record_index_workspace_id_record_id_record FOREIGN KEY(workspace_id, record_id) REFERENCES record (workspace_id, id) ON DELETE CASCADE
);
CREATE INDEX ix_record_index_blank ON record_index (workspace_id, index_id, record_id) WHERE number IS NULL AND text IS NULL;
CREATE INDEX ix_record_index_folded ON record_index (workspace_id, index_id, folded, record_id) WHERE folded IS NOT NULL;
CREATE INDEX ix_record_index_number ON record_index (workspace_id, index_id, number, record_id) WHERE number IS NOT NULL;
CREATE INDEX ix_record_index_text ON record_index (workspace_id, index_id, text, record_id) WHERE text IS NOT NULL;

CREATE TABLE record_link (
    workspace_id UUID NOT NULL,
    record_id UUID NOT NULL,
    field_id UUID NOT NULL,
    target_id UUID NOT NULL,
    position BIGINT NOT NULL,
    target_position BIGINT NOT NULL,
    CONSTRAINT pk_record_link PRIMARY KEY (workspace_id, record_id, field_id, target_id),
    CONSTRAINT fk_record_link_field_id_field FOREIGN KEY(field_id) REFERENCES field (id) ON DELETE CASCADE,
    CONSTRAINT fk_record_link_workspace_id_record_id_record FOREIGN KEY(workspace_id, record_id) REFERENCES record (workspace_id, id) ON DELETE CASCADE,
    CONSTRAINT fk_record_link_workspace_id_target_id_record FOREIGN KEY(workspace_id, target_id) REFERENCES record (workspace_id, id) ON DELETE CASCADE
);
CREATE INDEX ix_record_link_field_id ON record_link (field_id);
CREATE INDEX ix_record_link_workspace_id_target_id_field_id ON record_link (workspace_id, target_id, field_id);

CREATE TABLE view (
    id UUID NOT NULL,
    workspace_id UUID NOT NULL,
    database_id UUID NOT NULL,
    item_id UUID,
    key VARCHAR NOT NULL,
    label VARCHAR NOT NULL,
    kind VARCHAR NOT NULL,
    placement VARCHAR NOT NULL,
    manifest JSONB NOT NULL,
    relation_field_id UUID,
    owner_user_id UUID,
    scope VARCHAR NOT NULL,
    locked BOOLEAN NOT NULL,
    definition_version INTEGER NOT NULL,
    position FLOAT NOT NULL,
    created_at TIMESTAMP WITH TIME ZONE NOT NULL,
    updated_at TIMESTAMP WITH TIME ZONE NOT NULL,
    CONSTRAINT pk_view PRIMARY KEY (id),
    CONSTRAINT uq_view_workspace_id_id UNIQUE (workspace_id, id),
    CONSTRAINT uq_view_workspace_id_database_id_key UNIQUE (workspace_id, database_id, key),
    CONSTRAINT fk_view_workspace_id_database_id_database FOREIGN KEY(workspace_id, database_id) REFERENCES database (workspace_id, id),
    CONSTRAINT fk_view_workspace_id_item_id_item FOREIGN KEY(workspace_id, item_id) REFERENCES item (workspace_id, id),
    CONSTRAINT fk_view_relation_field_id_field FOREIGN KEY(relation_field_id) REFERENCES field (id) ON DELETE SET NULL,
    CONSTRAINT fk_view_owner_user_id_app_user FOREIGN KEY(owner_user_id) REFERENCES app_user (id),
    CONSTRAINT ck_view_kind CHECK (kind IN ('table', 'board', 'list', 'gallery', 'calendar', 'timeline', 'chart', 'form')),
    CONSTRAINT ck_view_placement CHECK (placement IN ('database', 'relation', 'item', 'dashboard')),
    CONSTRAINT ck_view_scope CHECK (scope IN ('shared', 'personal')),
    CONSTRAINT ck_view_owner CHECK ((scope = 'personal') = (owner_user_id IS NOT NULL)),
    CONSTRAINT ck_view_item CHECK ((placement = 'item') = (item_id IS NOT NULL))
);
CREATE INDEX ix_view_relation_field_id ON view (relation_field_id) WHERE relation_field_id IS NOT NULL;

CREATE TABLE record_template (
    id UUID NOT NULL,
    workspace_id UUID NOT NULL,
    database_id UUID NOT NULL,
    label VARCHAR NOT NULL,
    description VARCHAR,
    icon VARCHAR,
    data JSONB NOT NULL,
    relations JSONB NOT NULL,
    content_surface_id UUID NOT NULL,
    is_default BOOLEAN NOT NULL,
    created_at TIMESTAMP WITH TIME ZONE NOT NULL,
    updated_at TIMESTAMP WITH TIME ZONE NOT NULL,
    CONSTRAINT pk_record_template PRIMARY KEY (id),
    CONSTRAINT uq_record_template_workspace_id_id UNIQUE (workspace_id, id),
    CONSTRAINT fk_record_template_workspace_id_database_id_database FOREIGN KEY(workspace_id, database_id) REFERENCES database (workspace_id, id),
    CONSTRAINT fk_record_template_workspace_id_content_surface_id_surface FOREIGN KEY(workspace_id, content_surface_id) REFERENCES surface (workspace_id, id),
    CONSTRAINT ck_record_template_data_is_object CHECK (jsonb_typeof(data) = 'object'),
    CONSTRAINT ck_record_template_relations_is_object CHECK (jsonb_typeof(relations) = 'object')
);
CREATE INDEX ix_record_template_label ON record_template (workspace_id, database_id, label, id);
CREATE UNIQUE INDEX uq_record_template_default ON record_template (workspace_id, database_id) WHERE is_default;

ALTER TABLE surface ADD CONSTRAINT fk_surface_workspace_id_database_id_database FOREIGN KEY(workspace_id, database_id) REFERENCES database (workspace_id, id) ON DELETE CASCADE;

ALTER TABLE surface ADD CONSTRAINT fk_surface_workspace_id_record_id_record FOREIGN KEY(workspace_id, record_id) REFERENCES record (workspace_id, id) ON DELETE CASCADE;

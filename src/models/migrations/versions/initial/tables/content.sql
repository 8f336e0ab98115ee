CREATE TABLE file (
    id UUID NOT NULL,
    workspace_id UUID NOT NULL,
    name VARCHAR NOT NULL,
    mime_type VARCHAR NOT NULL,
    byte_size BIGINT NOT NULL,
    sha256 BYTEA NOT NULL,
    object_key VARCHAR NOT NULL,
    created_by_user_id UUID NOT NULL,
    private BOOLEAN DEFAULT false NOT NULL,
    created_at TIMESTAMP WITH TIME ZONE NOT NULL,
    deleted_at TIMESTAMP WITH TIME ZONE,
    CONSTRAINT pk_file PRIMARY KEY (id),
    CONSTRAINT uq_file_workspace_id_id UNIQUE (workspace_id, id),
    CONSTRAINT fk_file_workspace_id_workspace FOREIGN KEY(workspace_id) REFERENCES workspace (id),
    CONSTRAINT fk_file_created_by_user_id_app_user FOREIGN KEY(created_by_user_id) REFERENCES app_user (id),
    CONSTRAINT ck_file_byte_size CHECK (byte_size >= 0),
    CONSTRAINT ck_file_sha256 CHECK (octet_length(sha256) = 32)
);
CREATE INDEX ix_file_deleted_at ON file (deleted_at) WHERE deleted_at IS NOT NULL;
CREATE INDEX ix_file_object_key ON file (object_key);
CREATE INDEX ix_file_private ON file (created_at) WHERE private;
CREATE INDEX ix_file_workspace_id_created_at_id ON file (workspace_id, created_at, id) WHERE deleted_at IS NULL;

CREATE TABLE item (
    id UUID NOT NULL,
    workspace_id UUID NOT NULL,
    parent_item_id UUID,
    kind VARCHAR NOT NULL,
    target_id UUID,
    title VARCHAR NOT NULL,
    icon VARCHAR,
    color VARCHAR,
    position FLOAT NOT NULL,
    archived BOOLEAN DEFAULT false NOT NULL,
    access_mode VARCHAR DEFAULT 'open' NOT NULL,
    metadata JSONB DEFAULT '{}'::jsonb NOT NULL,
    created_at TIMESTAMP WITH TIME ZONE NOT NULL,
    updated_at TIMESTAMP WITH TIME ZONE NOT NULL,
    deleted_at TIMESTAMP WITH TIME ZONE,
    deleted_with UUID,
    CONSTRAINT pk_item PRIMARY KEY (id),
    CONSTRAINT uq_item_workspace_id_id UNIQUE (workspace_id, id),
    CONSTRAINT fk_item_workspace_id_workspace FOREIGN KEY(workspace_id) REFERENCES workspace (id),
    CONSTRAINT fk_item_workspace_id_parent_item_id_item FOREIGN KEY(workspace_id, parent_item_id) REFERENCES item (workspace_id, id),
    CONSTRAINT ck_item_kind CHECK (kind IN ('folder', 'page', 'note', 'dashboard', 'canvas', 'view', 'form', 'database', 'file', 'data_source', 'action', 'automation', 'external_resource')),
    CONSTRAINT ck_item_access_mode CHECK (access_mode IN ('open', 'restricted')),
    CONSTRAINT ck_item_not_its_own_parent CHECK (parent_item_id <> id)
);
CREATE INDEX ix_item_closed ON item (workspace_id, id) WHERE deleted_at IS NOT NULL OR access_mode = 'restricted';
CREATE INDEX ix_item_trash ON item (deleted_at, id) WHERE deleted_at IS NOT NULL;
CREATE INDEX ix_item_workspace_id_deleted_with ON item (workspace_id, deleted_with) WHERE deleted_with IS NOT NULL;
CREATE INDEX ix_item_workspace_id_parent_item_id_position_id ON item (workspace_id, parent_item_id, position, id);
CREATE INDEX ix_item_workspace_id_target_id ON item (workspace_id, target_id) WHERE target_id IS NOT NULL;

CREATE TABLE item_grant (
    workspace_id UUID NOT NULL,
    item_id UUID NOT NULL,
    user_id UUID NOT NULL,
    level INTEGER NOT NULL,
    created_at TIMESTAMP WITH TIME ZONE NOT NULL,
    updated_at TIMESTAMP WITH TIME ZONE NOT NULL,
    CONSTRAINT pk_item_grant PRIMARY KEY (workspace_id, item_id, user_id),
    CONSTRAINT fk_item_grant_workspace_id_item_id_item FOREIGN KEY(workspace_id, item_id) REFERENCES item (workspace_id, id) ON DELETE CASCADE,
    CONSTRAINT fk_item_grant_workspace_id_user_id_workspace_member FOREIGN KEY(workspace_id, user_id) REFERENCES workspace_member (workspace_id, user_id) ON DELETE CASCADE,
    CONSTRAINT ck_item_grant_level CHECK (level BETWEEN 1 AND 5)
);
CREATE INDEX ix_item_grant_workspace_id_user_id ON item_grant (workspace_id, user_id);

CREATE TABLE surface (
    id UUID NOT NULL,
    workspace_id UUID NOT NULL,
    item_id UUID,
    database_id UUID,
    record_id UUID,
    kind VARCHAR NOT NULL,
    version INTEGER DEFAULT 1 NOT NULL,
    settings JSONB DEFAULT '{}'::jsonb NOT NULL,
    created_at TIMESTAMP WITH TIME ZONE NOT NULL,
    updated_at TIMESTAMP WITH TIME ZONE NOT NULL,
    CONSTRAINT pk_surface PRIMARY KEY (id),
    CONSTRAINT uq_surface_workspace_id_id UNIQUE (workspace_id, id),
    CONSTRAINT fk_surface_workspace_id_item_id_item FOREIGN KEY(workspace_id, item_id) REFERENCES item (workspace_id, id) ON DELETE CASCADE,
    CONSTRAINT ck_surface_kind CHECK (kind IN ('page', 'note', 'canvas', 'dashboard', 'form', 'record')),
    CONSTRAINT ck_surface_placed_once CHECK (num_nonnulls(item_id, database_id) = 1 AND (kind = 'record') = (item_id IS NULL) AND (record_id IS NULL OR database_id IS NOT NULL))
);
CREATE INDEX ix_surface_workspace_id_database_id ON surface (workspace_id, database_id);
CREATE UNIQUE INDEX uq_surface_item_id ON surface (item_id);
CREATE UNIQUE INDEX uq_surface_record_id ON surface (record_id);

CREATE TABLE block (
    surface_id UUID NOT NULL,
    id UUID NOT NULL,
    workspace_id UUID NOT NULL,
    parent_block_id UUID,
    kind VARCHAR NOT NULL,
    position FLOAT NOT NULL,
    content JSONB NOT NULL,
    x FLOAT,
    y FLOAT,
    w FLOAT,
    h FLOAT,
    byte_size INTEGER NOT NULL,
    created_at TIMESTAMP WITH TIME ZONE NOT NULL,
    updated_at TIMESTAMP WITH TIME ZONE NOT NULL,
    CONSTRAINT pk_block PRIMARY KEY (surface_id, id),
    CONSTRAINT fk_block_workspace_id_surface_id_surface FOREIGN KEY(workspace_id, surface_id) REFERENCES surface (workspace_id, id) ON DELETE CASCADE,
    CONSTRAINT fk_block_surface_id_parent_block_id_block FOREIGN KEY(surface_id, parent_block_id) REFERENCES block (surface_id, id) ON DELETE CASCADE,
    CONSTRAINT ck_block_not_its_own_parent CHECK (parent_block_id <> id)
);
CREATE INDEX ix_block_surface_id_parent_block_id_position_id ON block (surface_id, parent_block_id, position, id);

CREATE TABLE surface_comment (
    id UUID NOT NULL,
    workspace_id UUID NOT NULL,
    surface_id UUID NOT NULL,
    block_id UUID,
    parent_comment_id UUID,
    author_user_id UUID NOT NULL,
    body VARCHAR NOT NULL,
    resolved_at TIMESTAMP WITH TIME ZONE,
    resolved_by_user_id UUID,
    created_at TIMESTAMP WITH TIME ZONE NOT NULL,
    updated_at TIMESTAMP WITH TIME ZONE NOT NULL,
    CONSTRAINT pk_surface_comment PRIMARY KEY (id),
    CONSTRAINT uq_surface_comment_surface_id_id UNIQUE (surface_id, id),
    CONSTRAINT fk_surface_comment_workspace_id_surface_id_surface FOREIGN KEY(workspace_id, surface_id) REFERENCES surface (workspace_id, id) ON DELETE CASCADE,
    CONSTRAINT fk_surface_comment_surface_id_parent_comment_id_surface_comment FOREIGN KEY(surface_id, parent_comment_id) REFERENCES surface_comment (surface_id, id) ON DELETE CASCADE
);
CREATE INDEX ix_surface_comment_surface_id_created_at_id ON surface_comment (surface_id, created_at, id);
CREATE INDEX ix_surface_comment_surface_id_parent_comment_id ON surface_comment (surface_id, parent_comment_id);

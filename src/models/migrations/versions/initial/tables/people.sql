CREATE TABLE app_user (
    id UUID NOT NULL,
    issuer VARCHAR NOT NULL,
    subject VARCHAR NOT NULL,
    email VARCHAR,
    name VARCHAR,
    platform_admin BOOLEAN DEFAULT false NOT NULL,
    created_at TIMESTAMP WITH TIME ZONE NOT NULL,
    updated_at TIMESTAMP WITH TIME ZONE NOT NULL,
    CONSTRAINT pk_app_user PRIMARY KEY (id),
    CONSTRAINT uq_app_user_issuer_subject UNIQUE (issuer, subject)
);
CREATE INDEX ix_app_user_email ON app_user (lower(email));

CREATE TABLE request_log (
    id UUID NOT NULL,
    workspace_id UUID,
    principal_type VARCHAR NOT NULL,
    principal_id UUID NOT NULL,
    api_key_id UUID,
    method VARCHAR NOT NULL,
    path VARCHAR NOT NULL,
    status INTEGER NOT NULL,
    idempotency_key VARCHAR,
    error VARCHAR,
    duration_ms FLOAT NOT NULL,
    created_at TIMESTAMP WITH TIME ZONE NOT NULL,
    CONSTRAINT pk_request_log PRIMARY KEY (id)
);
CREATE INDEX ix_request_log_changes ON request_log (workspace_id, created_at, id) WHERE method NOT IN ('GET', 'HEAD', 'OPTIONS');
CREATE INDEX ix_request_log_created_at ON request_log (created_at);
CREATE INDEX ix_request_log_workspace_id_created_at_id ON request_log (workspace_id, created_at, id);

CREATE TABLE audience_segment (
    key VARCHAR NOT NULL,
    label VARCHAR NOT NULL,
    description VARCHAR,
    rule JSONB NOT NULL,
    created_by_user_id UUID NOT NULL,
    created_at TIMESTAMP WITH TIME ZONE NOT NULL,
    CONSTRAINT pk_audience_segment PRIMARY KEY (key),
    CONSTRAINT fk_audience_segment_created_by_user_id_app_user FOREIGN KEY(created_by_user_id) REFERENCES app_user (id)
);

CREATE TABLE browser_session (
    digest BYTEA NOT NULL,
    user_id UUID NOT NULL,
    created_at TIMESTAMP WITH TIME ZONE NOT NULL,
    last_used_at TIMESTAMP WITH TIME ZONE NOT NULL,
    expires_at TIMESTAMP WITH TIME ZONE NOT NULL,
    CONSTRAINT pk_browser_session PRIMARY KEY (digest),
    CONSTRAINT fk_browser_session_user_id_app_user FOREIGN KEY(user_id) REFERENCES app_user (id) ON DELETE CASCADE
);
CREATE INDEX ix_browser_session_last_used_at ON browser_session (last_used_at);
CREATE INDEX ix_browser_session_user_id ON browser_session (user_id);

CREATE TABLE experiment (
    id UUID NOT NULL,
    name VARCHAR NOT NULL,
    hypothesis VARCHAR,
    target_type VARCHAR NOT NULL,
    target_key VARCHAR,
    flag_key VARCHAR,
    audience VARCHAR NOT NULL,
    assignment_unit VARCHAR NOT NULL,
    primary_metric VARCHAR,
    guardrail_metric VARCHAR,
    status VARCHAR NOT NULL,
    allocation FLOAT NOT NULL,
    started_at TIMESTAMP WITH TIME ZONE,
    ends_at TIMESTAMP WITH TIME ZONE,
    winner VARCHAR,
    variants JSONB NOT NULL,
    created_by_user_id UUID NOT NULL,
    created_at TIMESTAMP WITH TIME ZONE NOT NULL,
    updated_at TIMESTAMP WITH TIME ZONE NOT NULL,
    CONSTRAINT pk_experiment PRIMARY KEY (id),
    CONSTRAINT fk_experiment_created_by_user_id_app_user FOREIGN KEY(created_by_user_id) REFERENCES app_user (id),
    CONSTRAINT ck_experiment_target_type CHECK (target_type IN ('flag', 'starter_template', 'onboarding', 'release_notice', 'automation_version')),
    CONSTRAINT ck_experiment_assignment_unit CHECK (assignment_unit IN ('workspace', 'user', 'device')),
    CONSTRAINT ck_experiment_status CHECK (status IN ('draft', 'scheduled', 'running', 'paused', 'completed', 'archived'))
);
CREATE INDEX ix_experiment_assigning ON experiment (id) WHERE status IN ('scheduled', 'running');
CREATE INDEX ix_experiment_created_at_id ON experiment (created_at, id);
CREATE UNIQUE INDEX uq_experiment_flag_key ON experiment (flag_key) WHERE status <> 'archived';
CREATE UNIQUE INDEX uq_experiment_target ON experiment (target_type, target_key) WHERE status <> 'archived';

CREATE TABLE release_notice (
    id UUID NOT NULL,
    number BIGINT GENERATED ALWAYS AS IDENTITY,
    channel VARCHAR NOT NULL,
    title VARCHAR NOT NULL,
    body VARCHAR NOT NULL,
    url VARCHAR,
    published_by_user_id UUID NOT NULL,
    published_at TIMESTAMP WITH TIME ZONE NOT NULL,
    CONSTRAINT pk_release_notice PRIMARY KEY (id),
    CONSTRAINT fk_release_notice_published_by_user_id_app_user FOREIGN KEY(published_by_user_id) REFERENCES app_user (id),
    CONSTRAINT ck_release_notice_channel CHECK (channel IN ('web', 'mobile'))
);
CREATE UNIQUE INDEX uq_release_notice_channel_number ON release_notice (channel, number);

CREATE TABLE sign_in_link (
    digest BYTEA NOT NULL,
    user_id UUID NOT NULL,
    expires_at TIMESTAMP WITH TIME ZONE NOT NULL,
    CONSTRAINT pk_sign_in_link PRIMARY KEY (digest),
    CONSTRAINT fk_sign_in_link_user_id_app_user FOREIGN KEY(user_id) REFERENCES app_user (id) ON DELETE CASCADE
);
CREATE INDEX ix_sign_in_link_expires_at ON sign_in_link (expires_at);
CREATE INDEX ix_sign_in_link_user_id ON sign_in_link (user_id);

CREATE TABLE workspace (
    id UUID NOT NULL,
    name VARCHAR NOT NULL,
    slug VARCHAR NOT NULL,
    icon VARCHAR,
    plan VARCHAR DEFAULT 'free' NOT NULL,
    created_by_user_id UUID NOT NULL,
    created_at TIMESTAMP WITH TIME ZONE NOT NULL,
    updated_at TIMESTAMP WITH TIME ZONE NOT NULL,
    deleted_at TIMESTAMP WITH TIME ZONE,
    CONSTRAINT pk_workspace PRIMARY KEY (id),
    CONSTRAINT fk_workspace_created_by_user_id_app_user FOREIGN KEY(created_by_user_id) REFERENCES app_user (id),
    CONSTRAINT ck_workspace_plan CHECK (plan IN ('free', 'team', 'business', 'enterprise'))
);
CREATE UNIQUE INDEX uq_workspace_slug ON workspace (slug) WHERE deleted_at IS NULL;

CREATE TABLE api_key (
    id UUID NOT NULL,
    workspace_id UUID NOT NULL,
    name VARCHAR NOT NULL,
    prefix VARCHAR NOT NULL,
    digest BYTEA NOT NULL,
    digest_key BYTEA,
    scopes TEXT[] NOT NULL,
    bound_user_id UUID NOT NULL,
    created_by_user_id UUID NOT NULL,
    last_used_at TIMESTAMP WITH TIME ZONE,
    expires_at TIMESTAMP WITH TIME ZONE,
    revoked_at TIMESTAMP WITH TIME ZONE,
    created_at TIMESTAMP WITH TIME ZONE NOT NULL,
    updated_at TIMESTAMP WITH TIME ZONE NOT NULL,
    CONSTRAINT pk_api_key PRIMARY KEY (id),
    CONSTRAINT uq_api_key_digest UNIQUE (digest),
    CONSTRAINT uq_api_key_workspace_id_id UNIQUE (workspace_id, id),
    CONSTRAINT fk_api_key_workspace_id_workspace FOREIGN KEY(workspace_id) REFERENCES workspace (id),
    CONSTRAINT fk_api_key_bound_user_id_app_user FOREIGN KEY(bound_user_id) REFERENCES app_user (id),
    CONSTRAINT fk_api_key_created_by_user_id_app_user FOREIGN KEY(created_by_user_id) REFERENCES app_user (id)
);
CREATE INDEX ix_api_key_workspace_id_created_at_id ON api_key (workspace_id, created_at, id);

CREATE TABLE experiment_unit (
    experiment_id UUID NOT NULL,
    unit BYTEA NOT NULL,
    variant VARCHAR NOT NULL,
    exposed_at TIMESTAMP WITH TIME ZONE NOT NULL,
    converted_at TIMESTAMP WITH TIME ZONE,
    failed_at TIMESTAMP WITH TIME ZONE,
    CONSTRAINT pk_experiment_unit PRIMARY KEY (experiment_id, unit),
    CONSTRAINT fk_experiment_unit_experiment_id_experiment FOREIGN KEY(experiment_id) REFERENCES experiment (id) ON DELETE CASCADE
);
CREATE INDEX ix_experiment_unit_experiment_id_variant ON experiment_unit (experiment_id, variant);

CREATE TABLE invitation (
    id UUID NOT NULL,
    workspace_id UUID NOT NULL,
    email VARCHAR NOT NULL,
    role VARCHAR NOT NULL,
    digest BYTEA NOT NULL,
    invited_by_user_id UUID NOT NULL,
    created_at TIMESTAMP WITH TIME ZONE NOT NULL,
    expires_at TIMESTAMP WITH TIME ZONE NOT NULL,
    accepted_at TIMESTAMP WITH TIME ZONE,
    revoked_at TIMESTAMP WITH TIME ZONE,
    CONSTRAINT pk_invitation PRIMARY KEY (id),
    CONSTRAINT uq_invitation_digest UNIQUE (digest),
    CONSTRAINT uq_invitation_workspace_id_id UNIQUE (workspace_id, id),
    CONSTRAINT fk_invitation_workspace_id_workspace FOREIGN KEY(workspace_id) REFERENCES workspace (id),
    CONSTRAINT fk_invitation_invited_by_user_id_app_user FOREIGN KEY(invited_by_user_id) REFERENCES app_user (id),
    CONSTRAINT ck_invitation_role CHECK (role IN ('owner', 'admin', 'editor', 'commenter', 'viewer', 'guest'))
);
CREATE INDEX ix_invitation_workspace_id_created_at_id ON invitation (workspace_id, created_at, id);
CREATE UNIQUE INDEX uq_invitation_workspace_id_email_open ON invitation (workspace_id, email) WHERE accepted_at IS NULL AND revoked_at IS NULL;

CREATE TABLE oauth_client_choice (
    user_id UUID NOT NULL,
    oauth_client_id VARCHAR NOT NULL,
    workspace_id UUID NOT NULL,
    updated_at TIMESTAMP WITH TIME ZONE NOT NULL,
    CONSTRAINT pk_oauth_client_choice PRIMARY KEY (user_id, oauth_client_id),
    CONSTRAINT fk_oauth_client_choice_user_id_app_user FOREIGN KEY(user_id) REFERENCES app_user (id) ON DELETE CASCADE,
    CONSTRAINT fk_oauth_client_choice_workspace_id_workspace FOREIGN KEY(workspace_id) REFERENCES workspace (id) ON DELETE CASCADE
);
CREATE INDEX ix_oauth_client_choice_workspace_id ON oauth_client_choice (workspace_id);

CREATE TABLE release_watermark (
    user_id UUID NOT NULL,
    channel VARCHAR NOT NULL,
    release_id UUID NOT NULL,
    number BIGINT NOT NULL,
    updated_at TIMESTAMP WITH TIME ZONE NOT NULL,
    CONSTRAINT pk_release_watermark PRIMARY KEY (user_id, channel),
    CONSTRAINT fk_release_watermark_user_id_app_user FOREIGN KEY(user_id) REFERENCES app_user (id),
    CONSTRAINT fk_release_watermark_release_id_release_notice FOREIGN KEY(release_id) REFERENCES release_notice (id),
    CONSTRAINT ck_release_watermark_channel CHECK (channel IN ('web', 'mobile'))
);
CREATE INDEX ix_release_watermark_release_id ON release_watermark (release_id);

CREATE TABLE workspace_member (
    workspace_id UUID NOT NULL,
    user_id UUID NOT NULL,
    role VARCHAR NOT NULL,
    created_at TIMESTAMP WITH TIME ZONE NOT NULL,
    CONSTRAINT pk_workspace_member PRIMARY KEY (workspace_id, user_id),
    CONSTRAINT fk_workspace_member_workspace_id_workspace FOREIGN KEY(workspace_id) REFERENCES workspace (id),
    CONSTRAINT fk_workspace_member_user_id_app_user FOREIGN KEY(user_id) REFERENCES app_user (id),
    CONSTRAINT ck_workspace_member_role CHECK (role IN ('owner', 'admin', 'editor', 'commenter', 'viewer', 'guest'))
);
CREATE INDEX ix_workspace_member_user_id ON workspace_member (user_id);

CREATE TABLE home_layout (
    workspace_id UUID NOT NULL,
    user_id UUID NOT NULL,
    widgets JSONB NOT NULL,
    updated_at TIMESTAMP WITH TIME ZONE NOT NULL,
    CONSTRAINT pk_home_layout PRIMARY KEY (workspace_id, user_id),
    CONSTRAINT fk_home_layout_workspace_id_user_id_workspace_member FOREIGN KEY(workspace_id, user_id) REFERENCES workspace_member (workspace_id, user_id) ON DELETE CASCADE
);

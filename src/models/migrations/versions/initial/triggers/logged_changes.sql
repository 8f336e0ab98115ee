-- The changes that the log of a workspace tells of, whoever makes them.

CREATE FUNCTION log_workspace() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM append_workspace_event(
        NEW.id,
        CASE WHEN NEW.deleted_at IS NULL THEN 'workspace.updated' ELSE 'workspace.deleted' END,
        NULL, '{}'
    );
    RETURN NULL;
END
$$;
CREATE TRIGGER log_workspace_changed AFTER UPDATE OF name, slug, icon, deleted_at ON workspace
    FOR EACH ROW EXECUTE FUNCTION log_workspace();

CREATE FUNCTION log_member() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'DELETE' THEN
        PERFORM append_workspace_event(
            OLD.workspace_id, 'member.removed', NULL, jsonb_build_object('userId', OLD.user_id)
        );
    ELSE
        PERFORM append_workspace_event(
            NEW.workspace_id,
            CASE TG_OP WHEN 'INSERT' THEN 'member.added' ELSE 'member.updated' END,
            NULL, jsonb_build_object('userId', NEW.user_id, 'role', NEW.role)
        );
    END IF;
    RETURN NULL;
END
$$;
CREATE TRIGGER log_member_changed AFTER INSERT OR DELETE OR UPDATE OF role ON workspace_member
    FOR EACH ROW EXECUTE FUNCTION log_member();

CREATE FUNCTION log_notification() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM append_workspace_event(
        NEW.workspace_id, 'notification.created', NULL,
        jsonb_build_object('notificationId', NEW.id, 'kind', NEW.kind), NEW.user_id
    );
    RETURN NULL;
END
$$;
CREATE TRIGGER log_notification_written AFTER INSERT ON notification
    FOR EACH ROW EXECUTE FUNCTION log_notification();

CREATE FUNCTION log_items_created() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO workspace_event
        (workspace_id, type, at, actor_type, actor_user_id, item_id, data)
    SELECT one.workspace_id, 'item.created', clock_timestamp(), actor.kind, actor.user_id, one.id,
        jsonb_strip_nulls(jsonb_build_object(
            'itemId', one.id, 'kind', one.kind, 'parentItemId', one.parent_item_id
        ))
    FROM after_rows AS one CROSS JOIN workspace_actor() AS actor
    WHERE one.deleted_at IS NULL AND (
        -- Of very many, those at the top stand for what is below them.
        (SELECT count(*) FROM (SELECT FROM after_rows LIMIT 501) AS few) <= 500
        OR NOT EXISTS (SELECT FROM after_rows AS above WHERE above.id = one.parent_item_id)
    );
    RETURN NULL;
END
$$;
CREATE TRIGGER log_item_created AFTER INSERT ON item
    REFERENCING NEW TABLE AS after_rows FOR EACH STATEMENT
    EXECUTE FUNCTION log_items_created();

CREATE FUNCTION log_items_changed() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    few boolean := (SELECT count(*) FROM (SELECT FROM after_rows LIMIT 501) AS few) <= 500;
BEGIN
    INSERT INTO workspace_event
        (workspace_id, type, at, actor_type, actor_user_id, item_id, data)
    SELECT fresh.workspace_id, told.type, clock_timestamp(), actor.kind, actor.user_id, fresh.id,
        jsonb_strip_nulls(jsonb_build_object(
            'itemId', fresh.id, 'kind', fresh.kind, 'parentItemId', fresh.parent_item_id
        ))
    FROM after_rows AS fresh JOIN before_rows AS past ON past.id = fresh.id
    CROSS JOIN workspace_actor() AS actor
    CROSS JOIN LATERAL (SELECT CASE
        WHEN past.deleted_at IS NULL AND fresh.deleted_at IS NOT NULL THEN 'item.deleted'
        WHEN past.deleted_at IS NOT NULL AND fresh.deleted_at IS NULL THEN 'item.restored'
        WHEN fresh.deleted_at IS NOT NULL THEN NULL
        WHEN past.parent_item_id IS DISTINCT FROM fresh.parent_item_id THEN 'item.moved'
        WHEN past.access_mode <> fresh.access_mode THEN 'item.access_changed'
        WHEN past.archived AND NOT fresh.archived THEN 'item.unarchived'
        WHEN fresh.archived AND NOT past.archived THEN 'item.archived'
        WHEN past IS DISTINCT FROM fresh THEN 'item.updated'
    END AS type) AS told
    WHERE told.type IS NOT NULL
        AND (
            few
            OR NOT EXISTS (SELECT FROM after_rows AS above WHERE above.id = fresh.parent_item_id)
        );
    INSERT INTO workspace_event
        (workspace_id, type, at, actor_type, actor_user_id, item_id, data)
    SELECT fresh.workspace_id,
        CASE WHEN fresh.deleted_at IS NULL THEN 'database.restored' ELSE 'database.deleted' END,
        clock_timestamp(), actor.kind, actor.user_id, fresh.id,
        jsonb_build_object('databaseId', fresh.target_id)
    FROM after_rows AS fresh JOIN before_rows AS past ON past.id = fresh.id
    CROSS JOIN workspace_actor() AS actor
    WHERE fresh.kind = 'database' AND fresh.target_id IS NOT NULL
        AND (fresh.deleted_at IS NULL) <> (past.deleted_at IS NULL)
    LIMIT 500;
    RETURN NULL;
END
$$;
CREATE TRIGGER log_item_changed AFTER UPDATE ON item
    REFERENCING OLD TABLE AS before_rows NEW TABLE AS after_rows FOR EACH STATEMENT
    EXECUTE FUNCTION log_items_changed();

CREATE FUNCTION log_database() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    type text := 'database.updated';
BEGIN
    IF TG_OP = 'INSERT' OR OLD.item_id IS NULL THEN
        type := 'database.created';
    END IF;
    IF NOT EXISTS (SELECT FROM item WHERE id = NEW.item_id AND deleted_at IS NOT NULL) THEN
        PERFORM append_workspace_event(
            NEW.workspace_id, type, NEW.item_id, jsonb_build_object('databaseId', NEW.id)
        );
    END IF;
    RETURN NULL;
END
$$;
CREATE TRIGGER log_database_changed
    AFTER UPDATE OF item_id, key, label, description, settings, record_layout ON database
    FOR EACH ROW WHEN (NEW.item_id IS NOT NULL) EXECUTE FUNCTION log_database();
CREATE TRIGGER log_database_created AFTER INSERT ON database
    FOR EACH ROW WHEN (NEW.item_id IS NOT NULL) EXECUTE FUNCTION log_database();

CREATE FUNCTION log_fields() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'INSERT' THEN
        INSERT INTO workspace_event
            (workspace_id, type, at, actor_type, actor_user_id, item_id, data)
        SELECT database.workspace_id, 'database.fields_changed', clock_timestamp(), actor.kind,
            actor.user_id, database.item_id, jsonb_build_object(
                'databaseId', database.id, 'fieldIds', jsonb_agg(part.id)
            )
        FROM (SELECT workspace_id, database_id, id FROM after_rows) AS part
        JOIN database ON database.id = part.database_id
            AND database.workspace_id = part.workspace_id
        JOIN item ON item.id = database.item_id AND item.deleted_at IS NULL
        CROSS JOIN workspace_actor() AS actor
        GROUP BY database.workspace_id, database.id, actor.kind, actor.user_id, database.item_id;
    END IF;
    IF TG_OP = 'DELETE' THEN
        INSERT INTO workspace_event
            (workspace_id, type, at, actor_type, actor_user_id, item_id, data)
        SELECT database.workspace_id, 'database.fields_changed', clock_timestamp(), actor.kind,
            actor.user_id, database.item_id, jsonb_build_object(
                'databaseId', database.id, 'fieldIds', jsonb_agg(part.id)
            )
        FROM (SELECT workspace_id, database_id, id FROM before_rows) AS part
        JOIN database ON database.id = part.database_id
            AND database.workspace_id = part.workspace_id
        JOIN item ON item.id = database.item_id AND item.deleted_at IS NULL
        CROSS JOIN workspace_actor() AS actor
        GROUP BY database.workspace_id, database.id, actor.kind, actor.user_id, database.item_id;
    END IF;
    IF TG_OP = 'UPDATE' THEN
        INSERT INTO workspace_event
            (workspace_id, type, at, actor_type, actor_user_id, item_id, data)
        SELECT database.workspace_id, 'database.fields_changed', clock_timestamp(), actor.kind,
            actor.user_id, database.item_id, jsonb_build_object(
                'databaseId', database.id, 'fieldIds', jsonb_agg(part.id)
            )
        FROM (
            SELECT workspace_id, database_id, id FROM (
                SELECT workspace_id, database_id, id, (
                    key, label, kind, required, default_value, options, settings, position
                )::text
                FROM after_rows
                EXCEPT
                SELECT workspace_id, database_id, id, (
                    key, label, kind, required, default_value, options, settings, position
                )::text
                FROM before_rows
            ) AS changed
        ) AS part
        JOIN database ON database.id = part.database_id
            AND database.workspace_id = part.workspace_id
        JOIN item ON item.id = database.item_id AND item.deleted_at IS NULL
        CROSS JOIN workspace_actor() AS actor
        GROUP BY database.workspace_id, database.id, actor.kind, actor.user_id, database.item_id;
    END IF;
    RETURN NULL;
END
$$;
CREATE TRIGGER log_field_changed AFTER UPDATE ON field
    REFERENCING OLD TABLE AS before_rows NEW TABLE AS after_rows FOR EACH STATEMENT
    EXECUTE FUNCTION log_fields();
CREATE TRIGGER log_field_created AFTER INSERT ON field
    REFERENCING NEW TABLE AS after_rows FOR EACH STATEMENT
    EXECUTE FUNCTION log_fields();
CREATE TRIGGER log_field_removed AFTER DELETE ON field
    REFERENCING OLD TABLE AS before_rows FOR EACH STATEMENT
    EXECUTE FUNCTION log_fields();

CREATE FUNCTION log_views() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'INSERT' THEN
        INSERT INTO workspace_event
            (workspace_id, type, at, actor_type, actor_user_id, item_id, data)
        SELECT database.workspace_id, 'database.views_changed', clock_timestamp(), actor.kind,
            actor.user_id, database.item_id, jsonb_build_object(
                'databaseId', database.id, 'viewIds', jsonb_agg(part.id)
            )
        FROM (
            SELECT workspace_id, database_id, id FROM after_rows WHERE scope <> 'personal'
        ) AS part
        JOIN database ON database.id = part.database_id
            AND database.workspace_id = part.workspace_id
        JOIN item ON item.id = database.item_id AND item.deleted_at IS NULL
        CROSS JOIN workspace_actor() AS actor
        GROUP BY database.workspace_id, database.id, actor.kind, actor.user_id, database.item_id;
    END IF;
    IF TG_OP = 'DELETE' THEN
        INSERT INTO workspace_event
            (workspace_id, type, at, actor_type, actor_user_id, item_id, data)
        SELECT database.workspace_id, 'database.views_changed', clock_timestamp(), actor.kind,
            actor.user_id, database.item_id, jsonb_build_object(
                'databaseId', database.id, 'viewIds', jsonb_agg(part.id)
            )
        FROM (
            SELECT workspace_id, database_id, id FROM before_rows WHERE scope <> 'personal'
        ) AS part
        JOIN database ON database.id = part.database_id
            AND database.workspace_id = part.workspace_id
        JOIN item ON item.id = database.item_id AND item.deleted_at IS NULL
        CROSS JOIN workspace_actor() AS actor
        GROUP BY database.workspace_id, database.id, actor.kind, actor.user_id, database.item_id;
    END IF;
    IF TG_OP = 'UPDATE' THEN
        INSERT INTO workspace_event
            (workspace_id, type, at, actor_type, actor_user_id, item_id, data)
        SELECT database.workspace_id, 'database.views_changed', clock_timestamp(), actor.kind,
            actor.user_id, database.item_id, jsonb_build_object(
                'databaseId', database.id, 'viewIds', jsonb_agg(part.id)
            )
        FROM (
            SELECT workspace_id, database_id, id FROM (
                SELECT workspace_id, database_id, id, (
                    key, label, kind, placement, manifest, scope, locked, position
                )::text
                FROM after_rows WHERE scope <> 'personal'
                EXCEPT
                SELECT workspace_id, database_id, id, (
                    key, label, kind, placement, manifest, scope, locked, position
                )::text
                FROM before_rows
            ) AS changed
        ) AS part
        JOIN database ON database.id = part.database_id
            AND database.workspace_id = part.workspace_id
        JOIN item ON item.id = database.item_id AND item.deleted_at IS NULL
        CROSS JOIN workspace_actor() AS actor
        GROUP BY database.workspace_id, database.id, actor.kind, actor.user_id, database.item_id;
    END IF;
    RETURN NULL;
END
$$;
CREATE TRIGGER log_view_changed AFTER UPDATE ON view
    REFERENCING OLD TABLE AS before_rows NEW TABLE AS after_rows FOR EACH STATEMENT
    EXECUTE FUNCTION log_views();
CREATE TRIGGER log_view_created AFTER INSERT ON view
    REFERENCING NEW TABLE AS after_rows FOR EACH STATEMENT
    EXECUTE FUNCTION log_views();
CREATE TRIGGER log_view_removed AFTER DELETE ON view
    REFERENCING OLD TABLE AS before_rows FOR EACH STATEMENT
    EXECUTE FUNCTION log_views();

CREATE FUNCTION log_records() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    number integer := (SELECT count(*) FROM (
        SELECT FROM (SELECT * FROM after_rows WHERE written_at IS NULL) AS one LIMIT 501
    ) AS few);
BEGIN
    -- What a transaction writes by several statements is counted by the first event.
    IF current_setting('workspace.counted', true) <> '' THEN
        WITH more AS (
            SELECT database_id, kind, actor_user_id, run_id, count(*) AS count
            FROM (SELECT * FROM after_rows WHERE written_at IS NULL) AS one
            GROUP BY database_id, kind, actor_user_id, run_id
        )
        UPDATE workspace_event AS told
        SET data = jsonb_set(
            told.data, '{count}', to_jsonb((told.data ->> 'count')::bigint + more.count)
        )
        FROM more
        WHERE (SELECT count(*) FROM more) = 1
            AND told.seq = current_setting('workspace.counted')::bigint
            AND told.type = 'record.' || more.kind
            AND told.data ->> 'databaseId' = more.database_id::text
            AND told.data ->> 'runId' IS NOT DISTINCT FROM more.run_id::text
            AND told.actor_user_id IS NOT DISTINCT FROM more.actor_user_id;
        IF FOUND THEN
            RETURN NULL;
        END IF;
    END IF;
    IF number <= 50 THEN
        INSERT INTO workspace_event
            (workspace_id, type, at, actor_type, actor_user_id, item_id, data)
        SELECT one.workspace_id, 'record.' || one.kind, one.at, one.principal_type,
            CASE
                WHEN one.principal_type <> 'system'
                    OR EXISTS (SELECT FROM app_user WHERE app_user.id = one.actor_user_id)
                THEN one.actor_user_id
            END,
            database.item_id, jsonb_strip_nulls(jsonb_build_object(
                'databaseId', one.database_id, 'recordId', one.record_id, 'runId', one.run_id
            ))
        FROM (SELECT * FROM after_rows WHERE written_at IS NULL) AS one
        JOIN database ON database.id = one.database_id
        WHERE database.item_id IS NOT NULL AND database.workspace_id = one.workspace_id;
    ELSE
        INSERT INTO workspace_event
            (workspace_id, type, at, actor_type, actor_user_id, item_id, data)
        SELECT one.workspace_id, 'record.' || one.kind, one.at, one.principal_type,
            CASE
                WHEN one.principal_type <> 'system'
                    OR EXISTS (SELECT FROM app_user WHERE app_user.id = one.actor_user_id)
                THEN one.actor_user_id
            END,
            database.item_id, jsonb_strip_nulls(jsonb_build_object(
                'databaseId', one.database_id, 'count', one.count, 'runId', one.run_id,
                'recordIds', one.ids
            ))
        FROM (
            SELECT workspace_id, database_id, kind, principal_type, actor_user_id, run_id,
                max(at) AS at, count(*) AS count,
                CASE WHEN number <= 500 THEN jsonb_agg(record_id) END AS ids
            FROM (SELECT * FROM after_rows WHERE written_at IS NULL) AS one
            GROUP BY workspace_id, database_id, kind, principal_type, actor_user_id, run_id
        ) AS one JOIN database ON database.id = one.database_id
        WHERE database.item_id IS NOT NULL AND database.workspace_id = one.workspace_id;
        IF number > 500 AND FOUND THEN
            PERFORM set_config(
                'workspace.counted', currval('workspace_event_number')::text, true
            );
        END IF;
    END IF;
    RETURN NULL;
END
$$;
CREATE TRIGGER log_record_changed AFTER INSERT ON record_change
    REFERENCING NEW TABLE AS after_rows FOR EACH STATEMENT
    EXECUTE FUNCTION log_records();

CREATE FUNCTION log_created_records() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    number integer := (SELECT count(*) FROM (
        SELECT FROM (
            SELECT workspace_id, database_id, id AS record_id, 'created' AS kind,
                creation_principal_type AS principal_type, created_by_user_id AS actor_user_id,
                creation_run_id AS run_id, created_at AS at
            FROM after_rows WHERE creation_principal_type IS NOT NULL
        ) AS one LIMIT 501
    ) AS few);
BEGIN
    -- What a transaction writes by several statements is counted by the first event.
    IF current_setting('workspace.counted', true) <> '' THEN
        WITH more AS (
            SELECT database_id, kind, actor_user_id, run_id, count(*) AS count
            FROM (
                SELECT workspace_id, database_id, id AS record_id, 'created' AS kind,
                    creation_principal_type AS principal_type, created_by_user_id AS actor_user_id,
                    creation_run_id AS run_id, created_at AS at
                FROM after_rows WHERE creation_principal_type IS NOT NULL
            ) AS one GROUP BY database_id, kind, actor_user_id, run_id
        )
        UPDATE workspace_event AS told
        SET data = jsonb_set(
            told.data, '{count}', to_jsonb((told.data ->> 'count')::bigint + more.count)
        )
        FROM more
        WHERE (SELECT count(*) FROM more) = 1
            AND told.seq = current_setting('workspace.counted')::bigint
            AND told.type = 'record.' || more.kind
            AND told.data ->> 'databaseId' = more.database_id::text
            AND told.data ->> 'runId' IS NOT DISTINCT FROM more.run_id::text
            AND told.actor_user_id IS NOT DISTINCT FROM more.actor_user_id;
        IF FOUND THEN
            RETURN NULL;
        END IF;
    END IF;
    IF number <= 50 THEN
        INSERT INTO workspace_event
            (workspace_id, type, at, actor_type, actor_user_id, item_id, data)
        SELECT one.workspace_id, 'record.' || one.kind, one.at, one.principal_type,
            CASE
                WHEN one.principal_type <> 'system'
                    OR EXISTS (SELECT FROM app_user WHERE app_user.id = one.actor_user_id)
                THEN one.actor_user_id
            END,
            database.item_id, jsonb_strip_nulls(jsonb_build_object(
                'databaseId', one.database_id, 'recordId', one.record_id, 'runId', one.run_id
            ))
        FROM (
            SELECT workspace_id, database_id, id AS record_id, 'created' AS kind,
                creation_principal_type AS principal_type, created_by_user_id AS actor_user_id,
                creation_run_id AS run_id, created_at AS at
            FROM after_rows WHERE creation_principal_type IS NOT NULL
        ) AS one JOIN database ON database.id = one.database_id
        WHERE database.item_id IS NOT NULL AND database.workspace_id = one.workspace_id;
    ELSE
        INSERT INTO workspace_event
            (workspace_id, type, at, actor_type, actor_user_id, item_id, data)
        SELECT one.workspace_id, 'record.' || one.kind, one.at, one.principal_type,
            CASE
                WHEN one.principal_type <> 'system'
                    OR EXISTS (SELECT FROM app_user WHERE app_user.id = one.actor_user_id)
                THEN one.actor_user_id
            END,
            database.item_id, jsonb_strip_nulls(jsonb_build_object(
                'databaseId', one.database_id, 'count', one.count, 'runId', one.run_id,
                'recordIds', one.ids
            ))
        FROM (
            SELECT workspace_id, database_id, kind, principal_type, actor_user_id, run_id,
                max(at) AS at, count(*) AS count,
                CASE WHEN number <= 500 THEN jsonb_agg(record_id) END AS ids
            FROM (
                SELECT workspace_id, database_id, id AS record_id, 'created' AS kind,
                    creation_principal_type AS principal_type, created_by_user_id AS actor_user_id,
                    creation_run_id AS run_id, created_at AS at
                FROM after_rows WHERE creation_principal_type IS NOT NULL
            ) AS one
            GROUP BY workspace_id, database_id, kind, principal_type, actor_user_id, run_id
        ) AS one JOIN database ON database.id = one.database_id
        WHERE database.item_id IS NOT NULL AND database.workspace_id = one.workspace_id;
        IF number > 500 AND FOUND THEN
            PERFORM set_config(
                'workspace.counted', currval('workspace_event_number')::text, true
            );
        END IF;
    END IF;
    RETURN NULL;
END
$$;
CREATE TRIGGER log_record_created AFTER INSERT ON record
    REFERENCING NEW TABLE AS after_rows FOR EACH STATEMENT
    EXECUTE FUNCTION log_created_records();

CREATE FUNCTION log_published() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM append_workspace_event(
        NEW.workspace_id, 'automation.published', NEW.item_id,
        jsonb_build_object('automationId', NEW.id, 'versionId', NEW.published_version_id)
    );
    RETURN NULL;
END
$$;
CREATE TRIGGER log_automation_published AFTER UPDATE OF published_version_id ON automation
    FOR EACH ROW WHEN (
        NEW.published_version_id IS NOT NULL
        AND NEW.published_version_id IS DISTINCT FROM OLD.published_version_id
    )
    EXECUTE FUNCTION log_published();

CREATE FUNCTION log_run() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO workspace_event
        (workspace_id, type, at, actor_type, actor_user_id, item_id, data)
    SELECT NEW.workspace_id, 'run.status', clock_timestamp(), 'system', NEW.created_by_user_id,
        automation.item_id, jsonb_build_object(
            'automationId', NEW.automation_id, 'runId', NEW.id, 'status', NEW.status,
            'source', NEW.source
        )
    FROM automation WHERE automation.id = NEW.automation_id;
    RETURN NULL;
END
$$;
CREATE TRIGGER log_automation_run_accepted AFTER INSERT ON automation_run
    FOR EACH ROW EXECUTE FUNCTION log_run();
CREATE TRIGGER log_automation_run_moved AFTER UPDATE OF status ON automation_run
    FOR EACH ROW WHEN (OLD.status IS DISTINCT FROM NEW.status)
    EXECUTE FUNCTION log_run();

CREATE FUNCTION log_action_run() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO workspace_event
        (workspace_id, type, at, actor_type, actor_user_id, item_id, data)
    SELECT NEW.workspace_id, 'run.status', clock_timestamp(), 'system', NULL,
        action.item_id, jsonb_build_object(
            'actionId', NEW.action_id, 'runId', NEW.id, 'status', NEW.status
        )
    FROM action WHERE action.id = NEW.action_id;
    RETURN NULL;
END
$$;
CREATE TRIGGER log_action_run_accepted AFTER INSERT ON action_run
    FOR EACH ROW EXECUTE FUNCTION log_action_run();
CREATE TRIGGER log_action_run_moved AFTER UPDATE OF status ON action_run
    FOR EACH ROW WHEN (OLD.status IS DISTINCT FROM NEW.status)
    EXECUTE FUNCTION log_action_run();

CREATE FUNCTION log_import_stage() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF EXISTS (SELECT FROM workspace WHERE id = NEW.target_workspace_id) THEN
        PERFORM append_workspace_event(
            NEW.target_workspace_id, 'import.stage', NULL, jsonb_build_object(
                'importRunId', NEW.run_id, 'entryId', NEW.id, 'stage', NEW.stage
            )
        );
    END IF;
    RETURN NULL;
END
$$;
CREATE TRIGGER log_import_stage AFTER UPDATE OF stage ON legacy_import_workspace
    FOR EACH ROW WHEN (NEW.target_workspace_id IS NOT NULL AND NEW.stage <> OLD.stage)
    EXECUTE FUNCTION log_import_stage();

-- The log of a workspace: who acts, how an event is appended and numbered, and up to where the log
-- is whole (docs/adr/0046).

-- The statement that authenticates tells the transaction who acts.
CREATE FUNCTION workspace_actor(OUT kind text, OUT user_id uuid) LANGUAGE plpgsql AS $$
DECLARE
    told text := coalesce(nullif(current_setting('workspace.actor', true), ''), 'system:');
BEGIN
    kind := split_part(told, ':', 1);
    user_id := nullif(split_part(told, ':', 2), '')::uuid;
END
$$;

CREATE FUNCTION append_workspace_event(
    workspace_id uuid, type text, item_id uuid, data jsonb, audience_user_id uuid DEFAULT NULL
) RETURNS void LANGUAGE sql AS $$
    INSERT INTO workspace_event
        (workspace_id, type, at, actor_type, actor_user_id, item_id, audience_user_id, data)
    SELECT workspace_id, type, clock_timestamp(), kind, user_id, item_id, audience_user_id, data
    FROM workspace_actor()
$$;

CREATE SEQUENCE workspace_event_number OWNED BY workspace_event.seq;

CREATE FUNCTION workspace_event_number() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    -- Once for each workspace a transaction tells of. Numbers it takes from here on are greater
    -- than the one in its lock, so a reader knows up to where the log is whole.
    IF current_setting('workspace.logged', true) IS DISTINCT FROM NEW.workspace_id::text THEN
        PERFORM set_config('workspace.logged', NEW.workspace_id::text, true);
        PERFORM pg_advisory_xact_lock_shared(
            hashtext(NEW.workspace_id::text),
            (
                coalesce(pg_sequence_last_value('workspace_event_number'::regclass), 0) & 2147483647
            )::integer
        );
        -- Whoever writes hears of it, and wakes the readers after the commit.
        RAISE NOTICE USING MESSAGE = 'workspace_event', DETAIL = NEW.workspace_id::text,
            ERRCODE = 'WS001';
    END IF;
    NEW.seq := nextval('workspace_event_number'::regclass);
    RETURN NEW;
END
$$;
CREATE TRIGGER workspace_event_number BEFORE INSERT ON workspace_event
    FOR EACH ROW EXECUTE FUNCTION workspace_event_number();

-- For each workspace, the last number below which nothing can still come.
CREATE FUNCTION workspace_event_heads(workspace_ids uuid[])
RETURNS TABLE (workspace_id uuid, head bigint) LANGUAGE plpgsql AS $$
DECLARE
    last bigint := coalesce(pg_sequence_last_value('workspace_event_number'::regclass), 0);
BEGIN
    -- The locks are looked at after the number was read: who is not among them has committed, or
    -- takes greater numbers.
    RETURN QUERY
    SELECT place.id, least(last, min(last - held.behind))
    FROM unnest(workspace_ids) AS place (id)
    LEFT JOIN (
        SELECT classid::bigint AS place, (last - objid::bigint) & 2147483647 AS behind
        FROM pg_locks
        WHERE locktype = 'advisory' AND objsubid = 2
            AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
    ) AS held ON held.place = hashtext(place.id::text)::bigint & 4294967295
        -- Half of the circle is ahead: that writer began after the number was read.
        AND held.behind < 1073741824
    GROUP BY place.id;
END
$$;

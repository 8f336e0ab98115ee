-- The number of records of a database is a sum: each statement that changes it adds a row, so that
-- writers of one database wait for nobody.

CREATE FUNCTION count_records() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'INSERT' THEN
        INSERT INTO record_count (database_id, number)
        SELECT database_id, count(*) FROM after_rows WHERE deleted_at IS NULL
        GROUP BY database_id;
    ELSIF TG_OP = 'DELETE' THEN
        INSERT INTO record_count (database_id, number)
        SELECT database_id, -count(*) FROM before_rows WHERE deleted_at IS NULL
        GROUP BY database_id;
    ELSE
        INSERT INTO record_count (database_id, number)
        SELECT database_id, sum(change) FROM (
            SELECT database_id, 1 AS change FROM after_rows WHERE deleted_at IS NULL
            UNION ALL
            SELECT database_id, -1 FROM before_rows WHERE deleted_at IS NULL
        ) AS changed
        GROUP BY database_id HAVING sum(change) <> 0;
    END IF;
    RETURN NULL;
END
$$;
CREATE TRIGGER count_deleted AFTER DELETE ON record
    REFERENCING OLD TABLE AS before_rows FOR EACH STATEMENT
    EXECUTE FUNCTION count_records();
CREATE TRIGGER count_inserted AFTER INSERT ON record
    REFERENCING NEW TABLE AS after_rows FOR EACH STATEMENT
    EXECUTE FUNCTION count_records();
CREATE TRIGGER count_updated AFTER UPDATE ON record
    REFERENCING OLD TABLE AS before_rows NEW TABLE AS after_rows FOR EACH STATEMENT
    EXECUTE FUNCTION count_records();

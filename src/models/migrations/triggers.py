"""The database's own refusal of status changes that the transition tables do not allow (I3)."""

import re
from collections.abc import Collection, Mapping

_NAME = re.compile(r"[a-z][a-z0-9_]*")


def create_status_trigger(table: str, transitions: Mapping[str, Collection[str]]) -> list[str]:
    """Statements for a `BEFORE UPDATE OF status` trigger on `table`.

    `transitions` maps each status to those that may follow it; a status that maps to nothing is
    final. Any other change raises SQLSTATE 23514 (check_violation). Writing the same status again
    is no change.
    """
    function = f"{_name(table)}_status_transition"
    allowed = " OR ".join(
        f"(OLD.status = '{_name(before)}' AND NEW.status IN ({_listed(after)}))"
        for before, after in sorted(transitions.items())
        if after
    )
    create = f"CREATE TRIGGER {function} BEFORE UPDATE OF status ON {table}"
    return [
        f"""CREATE FUNCTION {function}() RETURNS trigger LANGUAGE plpgsql AS $body$
BEGIN
    IF NEW.status = OLD.status OR {allowed or "false"} THEN
        RETURN NEW;
    END IF;
    RAISE EXCEPTION 'status of {table} cannot change from % to %', OLD.status, NEW.status
        USING ERRCODE = '23514', TABLE = '{table}', CONSTRAINT = '{function}';
END
$body$""",
        f"{create} FOR EACH ROW EXECUTE FUNCTION {function}()",
    ]


def drop_status_trigger(table: str) -> list[str]:
    """Statements that undo `create_status_trigger`."""
    function = f"{_name(table)}_status_transition"
    return [
        f"DROP TRIGGER IF EXISTS {function} ON {table}",
        f"DROP FUNCTION IF EXISTS {function}()",
    ]


def _listed(statuses: Collection[str]) -> str:
    return ", ".join(f"'{_name(status)}'" for status in sorted(statuses))


def _name(text: str) -> str:
    """The name itself, proved to need no quoting."""
    if not _NAME.fullmatch(text):
        raise ValueError(f"{text!r} is not a plain lower-case name.")
    return text

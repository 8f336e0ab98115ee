"""The trigger by which PostgreSQL itself refuses what a transition table does not allow."""

from models.core.lifecycle.commands import WorkTable
from runtime.schema import listed


def creating(kind: WorkTable) -> str:
    """The statements that make the trigger of a table of durable work."""
    table = kind.table.name
    name = _name(kind)
    moves = "".join(
        f"\n        OR (OLD.status = '{status}' AND NEW.status IN (\n"
        f"            {listed(sorted(following))}\n"
        "        ))"
        for status, following in kind.lifecycle.moves.items()
        if following
    )
    return f"""
CREATE FUNCTION {name}() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NEW.status = OLD.status{moves}
    THEN
        RETURN NEW;
    END IF;
    RAISE EXCEPTION 'status of {table} cannot change from % to %', OLD.status, NEW.status
        USING ERRCODE = '23514', TABLE = '{table}',
            CONSTRAINT = '{name}';
END
$$;
CREATE TRIGGER {name} BEFORE UPDATE OF status ON {table}
    FOR EACH ROW EXECUTE FUNCTION {name}();
"""


def dropping(kind: WorkTable) -> str:
    """The statement after which nothing is left of it, once the table is gone."""
    return f"DROP FUNCTION {_name(kind)}()"


def _name(kind: WorkTable) -> str:
    return f"{kind.table.name}_status_transition"

"""Triggers of durable work: one refuses what no transition table allows, one counts ends."""

from typing import Any

from sqlalchemy import ColumnElement
from sqlalchemy.dialects import postgresql

from models.core.lifecycle.commands import WorkTable
from runtime.postgresql.schema import listed


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


def counting(kind: WorkTable) -> str:
    """The statements that make the trigger which counts the ends of a table's work (ADR 0136)."""
    table, end = kind.table.name, kind.ended_column
    workflow_kind, executed = (
        _of_new_row(kind, one) for one in (kind.workflow_kind_of_row, kind.executed)
    )
    return f"""
CREATE FUNCTION {table}_count_end() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO ended_work (kind, status, number) VALUES ({workflow_kind}, NEW.status, 1);
    RETURN NULL;
END
$$;
CREATE TRIGGER {table}_count_end AFTER UPDATE OF status, {end} ON {table} FOR EACH ROW
    WHEN (NEW.{end} IS NOT NULL AND OLD.{end} IS DISTINCT FROM NEW.{end} AND {executed})
    EXECUTE FUNCTION {table}_count_end();
"""  # noqa: S608  # of our own tables


def _of_new_row(kind: WorkTable, expression: ColumnElement[Any]) -> str:
    """An expression over the columns of a table, in a trigger."""
    options = {"literal_binds": True}
    dialect = postgresql.dialect()  # type: ignore[no-untyped-call]
    compiled = str(expression.compile(dialect=dialect, compile_kwargs=options))
    return compiled.replace(f"{kind.table.name}.", "NEW.")


def dropping(kind: WorkTable) -> str:
    """The statement after which nothing is left of them, once the table is gone."""
    counting = (
        f"; DROP FUNCTION {kind.table.name}_count_end()" if kind.workflow_kind is not None else ""
    )
    return f"DROP FUNCTION {_name(kind)}(){counting}"


def _name(kind: WorkTable) -> str:
    return f"{kind.table.name}_status_transition"

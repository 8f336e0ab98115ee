"""Write the next migration from the difference between the tables and the schema's history.

`python -m models.migrations.autogenerate "what changes"`; `--initial` writes the tables of the
initial migration anew.
"""

import argparse
from collections.abc import Iterable, Iterator
from pathlib import Path

from alembic import command
from alembic.autogenerate.api import AutogenContext
from alembic.autogenerate.render import renderers
from alembic.operations.ops import CreateTableOp, ExecuteSQLOp, MigrationScript
from alembic.script import ScriptDirectory
from sqlalchemy import ForeignKeyConstraint, Table, create_engine
from sqlalchemy.dialects import postgresql
from sqlalchemy.schema import AddConstraint, CreateIndex, CreateTable, ExecutableDDLElement
from sqlmodel import SQLModel

from models.core.lifecycle.commands import WORK
from models.migrations import status_triggers
from models.migrations.runner import SCRIPTS, configuration
from models.migrations.throwaway import throwaway_server
from models.tables import metadata
from runtime.database import driver_url
from runtime.postgresql.schema import table_of

DOMAINS = (
    "runtime",
    "core",
    "people",
    "messages",
    "content",
    "data",
    "sources",
    "automation",
    "workspace",
)
"""From the lowest to the highest."""


class Statements(ExecuteSQLOp):
    """Statements that a migration shows line by line."""


@renderers.dispatch_for(Statements)
def _shown(_context: AutogenContext, statements: Statements) -> str:
    return f'op.execute("""{statements.sqltext}""")'


def next_migration(message: str) -> Path:
    """The file of the revision after the newest one."""
    config = configuration()
    head = ScriptDirectory.from_config(config).get_current_head() or "0000"
    with throwaway_server() as url:
        engine = create_engine(driver_url(url))
        with engine.connect() as connection:
            config.attributes["connection"] = connection
            command.upgrade(config, "head")
            connection.commit()
            script = command.revision(
                config,
                message,
                autogenerate=True,
                rev_id=f"{int(head) + 1:04d}",
                process_revision_directives=complete,
            )
            connection.rollback()
        engine.dispose()
    if script is None or isinstance(script, list):
        raise RuntimeError("Alembic wrote no single migration.")
    path = Path(script.path)
    lines = path.read_text().splitlines(keepends=True)
    path.write_text("".join(line for line in lines if "# ###" not in line))
    return path


def complete(_context: object, _revision: object, scripts: list[MigrationScript]) -> None:
    """Add the triggers of new durable work, and leave out what only the code says of a table."""
    for script in scripts:
        upgrades, downgrades = script.upgrade_ops, script.downgrade_ops
        assert upgrades is not None
        assert downgrades is not None
        for table in [one for one in upgrades.ops if isinstance(one, CreateTableOp)]:
            kind = table.info.pop(WORK, None)
            table.info.clear()
            if kind is not None:
                upgrades.ops.append(Statements(status_triggers.creating(kind)))
                if kind.workflow_kind is not None:
                    upgrades.ops.append(Statements(status_triggers.counting(kind)))
                downgrades.ops.append(Statements(status_triggers.dropping(kind)))


def write_initial_tables() -> None:
    """Write a file of statements for each domain, to be run in the order of DOMAINS."""
    scripts = ScriptDirectory.from_config(configuration())
    if scripts.get_heads() != scripts.get_bases():
        raise RuntimeError("Remove the migrations after the initial one, which is to hold them.")
    missing = [constraint for table in metadata.sorted_tables for constraint in _keys(table)]
    created_tables: set[Table] = set()
    for domain in DOMAINS:
        paragraphs = []
        for table in _tables_of(domain):
            created_tables.add(table)
            keys = [key for key in _keys(table) if key.referred_table in created_tables]
            missing = [key for key in missing if key not in keys]
            indexes = sorted(table.indexes, key=lambda index: str(index.name))
            create = CreateTable(table, include_foreign_key_constraints=keys)
            paragraphs.append(_sql([create, *map(CreateIndex, indexes)]))
        # A table of a lower domain may refer to one of this domain.
        late = [
            key
            for key in missing
            if key.table in created_tables and key.referred_table in created_tables
        ]
        missing = [key for key in missing if key not in late]
        paragraphs += [_sql([AddConstraint(key)]) for key in late]
        path = SCRIPTS / "versions/initial/tables" / f"{domain}.sql"
        path.write_text("\n".join(paragraphs))


def _tables_of(domain: str) -> Iterator[Table]:
    """The tables of a domain, each after those it refers to."""
    modules = {
        table_of(model): model.__module__.removeprefix("models.")
        for model in SQLModel.__subclasses__()
    }
    return (table for table in metadata.sorted_tables if modules[table].split(".")[0] == domain)


def _keys(table: Table) -> list[ForeignKeyConstraint]:
    return sorted(table.foreign_key_constraints, key=lambda key: str(key.name))


def _sql(statements: Iterable[ExecutableDDLElement]) -> str:
    dialect = postgresql.dialect(paramstyle="named")  # type: ignore[no-untyped-call]
    texts = (str(statement.compile(dialect=dialect)).strip() for statement in statements)
    return "".join(f"{text};\n" for text in texts).replace("\t", "    ").replace(", \n", ",\n")


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("message", nargs="?", default="")
    parser.add_argument("--initial", action="store_true", help="rewrite the initial tables")
    arguments = parser.parse_args()
    if not arguments.initial and not arguments.message:
        parser.error("describe the change in a few words")
    if arguments.initial:
        write_initial_tables()
    else:
        next_migration(arguments.message)


if __name__ == "__main__":
    main()

"""Write the next migration from the difference between the tables and the schema's history.

`python -m models.migrations.autogenerate "what changes"`; `--initial` writes 0001 anew, for as
long as no database that matters has been migrated by it.
"""

import argparse
import shutil
import tempfile
from pathlib import Path

from alembic import command
from alembic.config import Config
from alembic.script import ScriptDirectory
from sqlalchemy import create_engine

from models.migrations.runner import SCRIPTS, configuration
from models.migrations.throwaway import throwaway_server
from runtime.database import driver_url

INITIAL = "0001"


def next_migration(message: str) -> Path:
    """The file of the revision after the newest one."""
    config = configuration()
    head = ScriptDirectory.from_config(config).get_current_head() or "0000"
    return _generate(config, f"{int(head) + 1:04d}", message)


def initial_migration() -> Path:
    """The file of revision 0001, written as if there had never been another."""
    with tempfile.TemporaryDirectory() as directory:
        scripts = Path(directory)
        (scripts / "versions").mkdir()
        for name in ("env.py", "script.py.mako"):
            shutil.copy(SCRIPTS / name, scripts / name)
        written = _generate(configuration(scripts), INITIAL, "initial")
        target = SCRIPTS / "versions" / f"{INITIAL}_initial.py"
        shutil.copy(written, target)
        return target


def _generate(config: Config, revision: str, message: str) -> Path:
    with throwaway_server() as url:
        engine = create_engine(driver_url(url))
        with engine.connect() as connection:
            config.attributes["connection"] = connection
            command.upgrade(config, "head")
            connection.commit()
            script = command.revision(config, message, autogenerate=True, rev_id=revision)
            connection.rollback()
        engine.dispose()
    if script is None or isinstance(script, list):
        raise RuntimeError("Alembic wrote no single migration.")
    path = Path(script.path)
    lines = path.read_text().splitlines(keepends=True)
    path.write_text("".join(line for line in lines if "# ###" not in line))
    return path


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("message", nargs="?", default="")
    parser.add_argument("--initial", action="store_true", help="write 0001 anew")
    arguments = parser.parse_args()
    if not arguments.initial and not arguments.message:
        parser.error("say in a few words what changes")
    if arguments.initial:
        initial_migration()
    else:
        next_migration(arguments.message)


if __name__ == "__main__":
    main()

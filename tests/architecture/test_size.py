"""Files have 80 to 550 lines, functions at most 45, folders 18 modules (design section 7)."""

import ast
from collections.abc import Iterable, Iterator
from pathlib import Path

from tests.architecture.figures import by_folder, lines, modules, small
from tests.architecture.source import ROOT, files, tree

LONGEST_FILE = 550
LONGEST_FUNCTION = 45
MOST_MODULES = 18

EXEMPT = {
    "src/cli/demo.py:graph": "a graph written out is data, not steps",
}
"""Place (`src/models/x.py` or `src/models/x.py:function`) and why it may be longer."""


PACKAGES = {"activities", "api", "cli", "models", "runtime", "workflows"}
IMPORTED_BY_NAME = {"tables"}
LONG_IMPORTS = 16
"""Imports of several lines: the name of the module is taken in the file. The number only falls."""

SMALL = {
    # What many import, and is of no one of them.
    "activities/heartbeats.py": "a dozen activities give signs of life by it",
    "models/core/access/queries.py": "seven resources find their workspace by it",
    "models/core/expressions/rules/errors.py": "many raise these errors and evaluate nothing",
    "models/core/page_addresses.py": "several resources and the API name pages by it",
    "runtime/base64url.py": "the one spelling of tokens, for every package",
    "runtime/clock.py": "the one clock, for every package",
    "runtime/derived_ids.py": "workflows import it, and never what draws identifiers",
    "runtime/ids.py": "every package makes identifiers by it",
    "runtime/keyed_limiter.py": "every package limits by key with it",
    "runtime/package_data.py": "two domains read their data by it; it loads a parser of YAML",
    "runtime/postgresql/copy_format.py": "every writer of COPY encodes by it",
    "api/routers/workspace/impact.py": "its operations pass on to the impact of changes",
    # Registries, and one line for each thing of a kind.
    "models/registrations.py": "the registry of what resources give to lower resources",
    # Rules, enumerations and shapes of a resource that others import without the rest of it.
    "models/automation/secrets/rules.py": "the rules of triggers import it",
    "models/core/lifecycle/rules.py": "the rules of all durable work import it",
    "models/core/pauses/rules.py": "resources that can be paused import it",
    "models/data/record_changes/rules.py": "the rules of records import it",
    "models/data/record_exports/shapes.py": "a process that writes spreadsheets imports it alone",
    "models/data/views/rules/kinds.py": "one enumeration for each property of a view, for many",
    "models/messages/events/rules.py": "the rules of triggers import it",
    "models/messages/jobs/rules.py": "workflows and every kind of job import it",
    "models/messages/webhook_endpoints/rules.py": "what sends and what documents import it",
    # The table of a resource whose rules, queries and commands are files of their own.
    "models/automation/run_undos/rules.py": "operations over runs read its bounds and errors, too",
    # A whole subject that is small.
    "api/console/files.py": "the static files of the console, and their router",
    "api/console/imports/routes.py": "the ends of an import; its previews are 450 lines",
    "api/pages/assets.py": "it reads the files beside it",
    "models/workspace/search.py": "a whole resource",
    "runtime/observability/process_metrics.py": "metrics of every process; it loads psutil",
    "runtime/configuration/resources.py": "what processes open from their settings",
    # One kind of work, in a file named as its workflow, its activities and its handler.
    "activities/jobs/records.py": "the activities of jobs over records",
    "activities/run_operations.py": "the activities of one workflow",
    "activities/time_entries.py": "the activities of one workflow",
    "activities/webhook_calls.py": "runs and deliveries both call webhooks by it",
    "workflows/deliveries.py": "one workflow: its fingerprint is kept by module",
    "workflows/run_operations.py": "one workflow: its fingerprint is kept by module",
    "workflows/time_entries.py": "one workflow: its fingerprint is kept by module",
    # What a process loads alone, or late.
    "activities/jobs/spreadsheets.py": "a process of its own loads it, with a library for XLSX",
    "activities/sources/processes.py": "the fork server, and what it loads once",
    "cli/convert/command.py": "a command, which loads what it runs when it is called",
    "cli/main.py": "the entry point, which loads next to nothing",
    "cli/quarantine/command.py": "a command, which loads what it runs when it is called",
    "cli/supervisor/first_workspace.py": "a child loads it late: the supervisor knows no models",
    "cli/worker_parts.py": "workers of both kinds open their parts by it",
    "models/migrations/env.py": "Alembic reads it by its path",
    "models/migrations/queries.py": "the API loads it in place of Alembic",
    "models/migrations/throwaway.py": "tests and checks load it, with a server of their own",
    "runtime/processes/fork_server_garbage.py": "a fork server imports it first, by name",
    "models/migrations/status_triggers.py": "migrations write the triggers of durable work by it",
}
"""Files of `src` under 80 lines, and why each stands alone. It only shrinks."""


def long_functions(paths: Iterable[Path]) -> Iterator[str]:
    for path in paths:
        for node in ast.walk(tree(path)):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                length = (node.end_lineno or 0) - node.lineno + 1
                if length > LONGEST_FUNCTION:
                    yield f"{named(path)}:{node.name}"


def named(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def test_files_and_functions_are_short() -> None:
    long = {path for path in files() if lines(path) > LONGEST_FILE}
    assert {*map(named, long), *long_functions(files())} == EXEMPT.keys()


def test_functions_of_tests_and_benchmarks_are_short() -> None:
    for folder in ("tests", "bench"):
        assert list(long_functions((ROOT / folder).rglob("*.py"))) == []


def long_imports(paths: Iterable[Path]) -> Iterator[str]:
    """Imports of names of a module of ours that take several lines."""
    for path in paths:
        for node in ast.walk(tree(path)):
            if not isinstance(node, ast.ImportFrom) or node.module is None:
                continue
            package, module = node.module.partition(".")[0], node.module.rpartition(".")[2]
            taken = (node.end_lineno or 0) - node.lineno + 1
            if package in PACKAGES and module not in IMPORTED_BY_NAME and taken > 1:
                yield f"{named(path)}: {node.module}"


def test_modules_are_imported_rather_than_many_names() -> None:
    found = list(long_imports(files()))
    assert len(found) <= LONG_IMPORTS, "\n".join(found)


def test_a_small_file_has_a_reason() -> None:
    found = small(modules())
    assert found - SMALL.keys() == set(), "merge these into the file that is read with them"
    assert SMALL.keys() - found == set(), "these are gone or no longer small: take them off"


def test_folders_are_read_at_a_glance() -> None:
    folders = by_folder(modules())
    assert {folder for folder, count in folders.items() if count > MOST_MODULES} == set()

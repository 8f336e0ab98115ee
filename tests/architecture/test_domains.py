"""The import contract is executable: an arrow that is turned round makes it fail."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.architecture.domains import circles
from tests.architecture.source import ROOT


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the project, which keeps every contract."""
    copied = tmp_path_factory.mktemp("project")
    shutil.copytree(ROOT / "src", copied / "src", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", copied)
    assert _lint(copied)[0] == 0
    return copied


@pytest.mark.long
@pytest.mark.parametrize(
    ("importer", "imported", "contract"),
    [
        (
            "models/core/keys.py",
            "models.people.users",
            "A domain imports only those below it",
        ),
        ("models/content/items/rules.py", "models.data.views.rules", "A domain imports only"),
        ("models/people/users.py", "models.people.members", "Order in people"),
        ("models/data/fields/commands.py", "models.data.records.tables", "Order in data"),
        (
            "models/automation/automations/commands.py",
            "models.automation.automation_runs.rules",
            "Order in automation",
        ),
        ("activities/sources/fetching.py", "activities.jobs.exports", "Order in activities"),
        ("runtime/clock.py", "models.core.base", "Rooms import downwards only"),
        ("api/kernel/limits.py", "activities.contracts", "The API knows neither effects"),
    ],
    ids=[
        "from-core",
        "from-content",
        "inside-people",
        "inside-data",
        "inside-automation",
        "inside-activities",
        "from-runtime",
        "from-api",
    ],
)
def test_an_import_that_climbs_breaks_the_contract(
    importer: str, imported: str, contract: str, project: Path
) -> None:
    changed = project / "src" / importer
    kept = changed.read_text(encoding="utf-8")
    changed.write_text(f"import {imported}\n{kept}", encoding="utf-8")
    status, said = _lint(project)
    changed.write_text(kept, encoding="utf-8")
    assert status == 1
    broken = {line for line in said.splitlines() if " BROKEN" in line}
    assert any(line.startswith(contract) for line in broken), said


@pytest.mark.long
@pytest.mark.parametrize(
    "domain", ["people", "messages", "content", "data", "sources", "automation", "workspace"]
)
@pytest.mark.parametrize("name", ["unplaced/__init__.py", "unplaced.py"], ids=["folder", "module"])
def test_a_noun_that_stands_in_no_order_breaks_the_contract(
    name: str, domain: str, project: Path
) -> None:
    resource = project / "src" / "models" / domain / name
    resource.parent.mkdir(exist_ok=True)
    resource.touch()
    status, said = _lint(project)
    resource.unlink()
    if resource.parent.name == "unplaced":
        resource.parent.rmdir()
    assert status == 1
    assert f"Order in {domain} BROKEN" in said, said


def _lint(project: Path) -> tuple[int, str]:
    linter = Path(sys.executable).with_name("lint-imports")
    done = subprocess.run(
        [linter, "--no-cache"],
        cwd=project,
        env={"PYTHONPATH": str(project / "src"), "PATH": "/usr/bin:/bin", "COLUMNS": "200"},
        capture_output=True,
        text=True,
        check=False,
    )
    return done.returncode, done.stdout


def test_circles_are_counted() -> None:
    imports = {"a": {"b"}, "b": {"c", "a"}, "c": {"a"}, "d": {"a"}}
    assert sorted(len(circle) - 1 for circle in circles(imports)) == [2, 3]
    assert circles({"a": {"b"}, "b": set()}) == []

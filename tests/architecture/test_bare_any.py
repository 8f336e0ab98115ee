"""A parameter or a result that is `Any` says nothing: `pyproject.toml` lists the files with one."""

import json
import subprocess
import sys
import tomllib
from collections import Counter
from pathlib import Path

from tests.architecture.source import ROOT, files

REMAINING = 23
"""Parameters and results of our source that are still `Any`. The number only falls."""

RULE = "ANN401"


def listed() -> set[str]:
    """The files of our source that may have one."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    ignored = project["tool"]["ruff"]["lint"]["per-file-ignores"]
    return {path for path, rules in ignored.items() if RULE in rules and path.startswith("src/")}


def bare(*options: str | Path, source: str | None = None) -> Counter[str]:
    """The files with a bare `Any`, with the number of each; no comment hides one."""
    linter = Path(sys.executable).with_name("ruff")
    arguments = [
        "--isolated",
        "--ignore-noqa",
        f"--select={RULE}",
        "--output-format=json",
        "--no-cache",
    ]
    answer = subprocess.run(
        [linter, "check", *arguments, *options],
        cwd=ROOT,
        input=source,
        capture_output=True,
        text=True,
        check=False,
    )
    places = (Path(one["filename"]) for one in json.loads(answer.stdout))
    return Counter(place.relative_to(ROOT).as_posix() for place in places)


def test_any_becomes_less() -> None:
    counted = bare(*files())
    assert counted.keys() - listed() == set(), "say what these values are"
    assert listed() - counted.keys() == set(), "these have none: take them off the list"
    assert counted.total() == REMAINING, "fewer are left: lower the number"


def test_a_bare_any_is_seen() -> None:
    source = """
from typing import Any

def read(value: Any, **more: Any) -> Any:  # noqa: ANN401
    return value
"""
    assert bare("--stdin-filename=src/read.py", "-", source=source) == {"src/read.py": 3}

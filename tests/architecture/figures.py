"""The files of `src` in figures, printed by `make check`."""

import ast
import re
import sys
from collections import Counter
from pathlib import Path

from rich.console import Console

from tests.architecture.source import SRC, files, tree

SMALLEST_FILE = 80
"""Lines below which a file needs a reason (tests/architecture/test_size.py)."""


def modules() -> list[Path]:
    """The Python files of ours but migrations and `__init__.py`."""
    return [path for path in files() if path.name != "__init__.py"]


def lines(path: Path) -> int:
    return len(path.read_text(encoding="utf-8").splitlines())


def small(paths: list[Path]) -> set[str]:
    """The files under the bound, as they are named in `src`."""
    return {path.relative_to(SRC).as_posix() for path in paths if lines(path) < SMALLEST_FILE}


def by_folder(paths: list[Path]) -> Counter[str]:
    """The number of modules in each folder."""
    return Counter(path.parent.relative_to(SRC).as_posix() for path in paths)


def import_lines(path: Path) -> int:
    """The lines of the imports at the top of a file."""
    return sum(
        (node.end_lineno or node.lineno) - node.lineno + 1
        for node in tree(path).body
        if isinstance(node, ast.Import | ast.ImportFrom)
    )


_INPUT = re.compile(r"<(?:input|select|textarea)\b(?![^>]*type=\"hidden\")")
_KIT = {"components.html", "settings_parts.html"}
"""The parts that forms are made of."""


def hand_laid(template: Path) -> int:
    """The inputs that a template writes itself; hidden ones and the kit of forms aside."""
    if template.name in _KIT:
        return 0
    return len(_INPUT.findall(template.read_text(encoding="utf-8")))


def console_figures() -> str:
    """The size of the pages for people, and the inputs that no part of the kit makes."""
    templates = sorted((SRC / "api/console").rglob("*.html"))
    modules_of = (SRC / "api/console").rglob("*.py")
    return (
        f"The console has {sum(map(lines, modules_of))} lines of Python and"
        f" {sum(map(lines, templates))} of templates; {sum(map(hand_laid, templates))} inputs are"
        " laid out by hand."
    )


def main() -> int:
    """Print the figures."""
    every, counted = files(), modules()
    in_all = sum(map(lines, counted))
    folder, most = by_folder(counted).most_common(1)[0]
    imports = sum(map(import_lines, counted))
    console = Console(width=110, highlight=False)
    console.print(
        f"{len(every)} Python files in src, migrations aside; {len(counted)} without __init__."
    )
    console.print(f"{in_all} lines, {in_all / len(counted):.0f} in a file on average.")
    console.print(f"{imports} of them import, {imports / in_all:.0%}.")
    console.print(f"{len(small(counted))} files have fewer than {SMALLEST_FILE} lines.")
    console.print(console_figures())
    console.print(f"{most} modules stand in {folder}, the most in one folder.")
    return 0


if __name__ == "__main__":
    sys.exit(main())

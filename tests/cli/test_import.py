"""What `workspace import` refuses before it asks a platform."""

from pathlib import Path

import pytest
from typer.testing import CliRunner

from cli.commands import app


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("absent.csv", None, "File not found"),
        ("", None, "is a directory"),
        ("empty.csv", b"", "is empty"),
        ("notes.docx", b"a", "Unknown file format"),
    ],
)
def test_a_file_that_cannot_be_imported_is_one_sentence(
    tmp_path: Path, name: str, content: bytes | None, said: str
) -> None:
    file = tmp_path / name
    if content is not None:
        file.write_bytes(content)
    done = CliRunner().invoke(app, ["import", str(file), f"--state-dir={tmp_path}"])
    assert done.exit_code == 1
    assert said in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1


def test_an_import_without_a_platform_says_how_to_start_one(tmp_path: Path) -> None:
    file = tmp_path / "rows.csv"
    file.write_text("a\n1\n")
    done = CliRunner().invoke(app, ["import", str(file), f"--state-dir={tmp_path}"])
    assert done.exit_code == 1
    assert "workspace up" in done.stderr


def test_an_import_needs_a_file_and_one_target() -> None:
    assert CliRunner().invoke(app, ["import"]).exit_code == 2
    both = ["import", "a.csv", "--database", "x", "--new", "y"]
    assert CliRunner().invoke(app, both).exit_code == 2

"""How the `workspace` command ends its process."""

import subprocess
import sys

import pytest

MAIN = "import atexit; atexit.register(print, 'finalized'); from cli.main import main; main()"


@pytest.mark.parametrize(("arguments", "code"), [(["--help"], 0), (["fly"], 2)])
def test_a_command_ends_with_its_code_and_all_it_said(arguments: list[str], code: int) -> None:
    done = subprocess.run(
        [sys.executable, "-c", MAIN, *arguments], capture_output=True, text=True, check=False
    )
    assert done.returncode == code
    assert "fly" in done.stderr or "Options" in done.stdout


def test_no_native_thread_meets_an_interpreter_in_its_last_moments() -> None:
    done = subprocess.run(
        [sys.executable, "-c", MAIN, "--help"], capture_output=True, text=True, check=True
    )
    assert "finalized" not in done.stdout

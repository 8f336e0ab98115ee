"""`make setup` installs with uv what pip would install, and with pip where uv fails."""

import hashlib
import os
import subprocess
import sys
import zipfile
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
_spec = spec_from_file_location("install", ROOT / ".ci" / "install.py")
assert _spec is not None
assert _spec.loader is not None
install = module_from_spec(_spec)
_spec.loader.exec_module(install)

WHEEL = "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
LISTING = """:env:.extra-index-url='file:///one file:///two'
:env:.find-links='/wheels'
global.extra-index-url='https://other/simple'
global.find-links='\\n/old\\n/older'
global.index-url='https://a:b%40c@mirror/simple'
global.trusted-host='one\\ntwo:8443'
install.timeout='7'
"""


def test_the_environment_wins_over_files() -> None:
    options = install.pip_options(LISTING)
    assert options["extra-index-url"] == "file:///one file:///two"
    assert options["index-url"] == "https://a:b%40c@mirror/simple"
    assert options["timeout"] == "7"


def test_uv_gets_the_configuration_of_pip() -> None:
    options = install.pip_options(LISTING) | {"cert": "/ca.pem", "find-links": "\n/a\n/b"}
    told = install.uv_environment(options, {"SSL_CERT_FILE": "/other.pem", "PATH": "/bin"})
    assert told == install.DEFAULTS | {
        "PATH": "/bin",
        "SSL_CERT_FILE": "/ca.pem",
        "UV_INDEX_URL": "https://a:b%40c@mirror/simple",
        "UV_EXTRA_INDEX_URL": "file:///one file:///two",
        "UV_FIND_LINKS": "/a,/b",
        "UV_INSECURE_HOST": "one two:8443",
        "UV_HTTP_TIMEOUT": "7",
    }


def test_variables_of_uv_that_are_set_win() -> None:
    own = {"UV_INDEX_URL": "https://mine/simple", "UV_SYSTEM_CERTS": "false"}
    assert install.uv_environment(install.pip_options(LISTING), own).items() >= own.items()


def _wheel(folder: Path, name: str, files: dict[str, str]) -> str:
    """Write a wheel, and answer the line of a lock that pins it."""
    info = f"{name}-1.dist-info"
    path = folder / f"{name}-1-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as wheel:
        for file, text in files.items():
            member = zipfile.ZipInfo(file)
            member.external_attr = 0o100755 << 16
            wheel.writestr(member, text)
        wheel.writestr(f"{info}/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: 1\n")
        wheel.writestr(f"{info}/WHEEL", WHEEL)
        wheel.writestr(f"{info}/RECORD", "")
    return f"{name}==1 --hash=sha256:{hashlib.sha256(path.read_bytes()).hexdigest()}\n"


@pytest.fixture(scope="module")
def interpreter(tmp_path_factory: pytest.TempPathFactory) -> Path:
    environment = tmp_path_factory.mktemp("environment")
    subprocess.run([sys.executable, "-m", "venv", environment], check=True)
    return environment / "bin" / "python"


def _install(interpreter: Path, folder: Path, uv: str | None) -> tuple[list[str], str]:
    """Install a package from wheels of a folder; answer the lines printed and the log."""
    subprocess.run(
        [interpreter, "-m", "pip", "uninstall", "-qy", "uv", "trial"],
        check=True,
        capture_output=True,
    )
    lock, uv_lock = folder / "lock", folder / "uv.lock"
    lock.write_text(_wheel(folder, "trial", {"trial.py": "works = True"}))
    uv_lock.write_text(
        _wheel(folder, "uv", {"uv-1.data/scripts/uv": uv}) if uv else "uv==1 --hash=sha256:00"
    )
    program = (
        "import sys, pathlib, install\n"
        "install.LOG.write_text('')\n"
        "assert install.install(*map(pathlib.Path, sys.argv[1:]))\n"
        "import trial\n"
    )
    home = folder / "home"
    home.mkdir()
    ended = subprocess.run(
        [interpreter, "-c", program, lock, uv_lock],
        env={
            "PATH": os.environ["PATH"],
            "HOME": str(home),
            "PYTHONPATH": str(ROOT / ".ci"),
            "PIP_CONFIG_FILE": os.devnull,
            "PIP_NO_INDEX": "1",
            "PIP_FIND_LINKS": str(folder),
        },
        check=True,
        capture_output=True,
        text=True,
    )
    assert ended.stderr == ""
    return ended.stdout.splitlines(), (interpreter.parents[1] / "setup.log").read_text()


@pytest.mark.long
def test_uv_installs_where_pip_can_get_it(interpreter: Path, tmp_path: Path) -> None:
    """The uv of this test is a script that asks pip for what it is asked for itself."""
    uv = (
        "#!/bin/sh\necho links=$UV_FIND_LINKS strategy=$UV_INDEX_STRATEGY; shift 2;"
        f" exec {interpreter} -m pip install $(echo $@ | sed 's/--python [^ ]*//')\n"
    )
    lines, log = _install(interpreter, tmp_path, uv)
    assert lines == ["Install 1 packages with uv"]
    assert f"links={tmp_path} strategy=unsafe-best-match" in log
    assert "--no-index --require-hashes" in log


@pytest.mark.long
def test_pip_installs_where_uv_fails(interpreter: Path, tmp_path: Path) -> None:
    lines, log = _install(
        interpreter, tmp_path, "#!/bin/sh\necho the uv of this test fails; exit 2\n"
    )
    assert lines[0] == "Install 1 packages with uv"
    assert lines[1].startswith("uv failed; ")
    assert "pip installs the 1 packages" in lines[1]
    assert "the uv of this test fails" in log


@pytest.mark.long
def test_pip_installs_where_uv_cannot_run(interpreter: Path, tmp_path: Path) -> None:
    lines, _ = _install(interpreter, tmp_path, "#!/no/such/interpreter\n")
    assert lines[1].startswith("uv failed; ")


@pytest.mark.long
def test_pip_installs_where_no_index_has_uv(interpreter: Path, tmp_path: Path) -> None:
    lines, _ = _install(interpreter, tmp_path, None)
    assert lines == ["pip cannot get uv here, and installs the 1 packages itself: some minutes"]

"""Install the hashed requirements, and the platform, into the environment of this interpreter.

uv does it, where pip can put it there: it is one wheel and ten times as fast. Where it cannot, or
uv fails, pip does. uv reads none of pip's configuration, so it is handed over. Python and pip are
all this file needs.
"""

import ast
import os
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LOG = Path(sys.prefix) / "setup.log"
UV = Path(sys.executable).with_name("uv")
PIP = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--no-input"]
# Options of pip, each with the variable in which uv takes it, and what separates its values there.
VARIABLES = {
    "index-url": ("UV_INDEX_URL", " "),
    "extra-index-url": ("UV_EXTRA_INDEX_URL", " "),
    "find-links": ("UV_FIND_LINKS", ","),
    "trusted-host": ("UV_INSECURE_HOST", " "),
    "default-timeout": ("UV_HTTP_TIMEOUT", " "),
    "timeout": ("UV_HTTP_TIMEOUT", " "),
    "cert": ("SSL_CERT_FILE", " "),
    "client-cert": ("SSL_CLIENT_CERT", " "),
    "proxy": ("ALL_PROXY", " "),
}
DEFAULTS = {
    # As with pip, any index may have the file: its hash says which one it is.
    "UV_INDEX_STRATEGY": "unsafe-best-match",
    "UV_PYTHON_DOWNLOADS": "never",
    "UV_SYSTEM_CERTS": "true",
    "UV_NO_PROGRESS": "1",
}


def pip_options(listing: str) -> dict[str, str]:
    """Read the listing of `pip config list`: the environment wins over sections of files."""
    options: dict[str, str] = {}
    for section in ("global.", "install.", ":env:."):
        for line in listing.splitlines():
            name, equals, value = line.removeprefix(section).partition("=")
            if line.startswith(section) and equals:
                options[name] = str(ast.literal_eval(value))
    return options


def uv_environment(options: dict[str, str], environment: dict[str, str]) -> dict[str, str]:
    """Say in uv's variables what pip's options say; a variable of uv that is set already wins."""
    variables = dict(DEFAULTS)
    for option, (variable, separator) in VARIABLES.items():
        if values := options.get(option, "").split():
            variables[variable] = separator.join(values)
    own = {name: value for name, value in environment.items() if name.startswith("UV_")}
    return environment | variables | own


def succeeds(*command: str, environment: dict[str, str] | None = None) -> bool:
    """Run a command that writes into the log."""
    with LOG.open("a") as log:
        print("\n$", *command, file=log, flush=True)
        try:
            return subprocess.call(command, cwd=ROOT, env=environment, stdout=log, stderr=log) == 0
        except OSError as error:  # a uv that this machine cannot execute
            print(error, file=log)
            return False


def uv_installs(*arguments: str) -> bool:
    options = pip_options(subprocess.check_output([*PIP, "config", "list"], text=True))
    alone = ["--no-index"] if options.get("no-index") in {"1", "true", "True", "yes", "on"} else []
    return succeeds(
        str(UV), "pip", "install", "--python", sys.executable, *alone, *arguments,
        environment=uv_environment(options, dict(os.environ)),
    )  # fmt: skip


def pip_installs(*arguments: str) -> bool:
    return succeeds(*PIP, "install", "--progress-bar", "off", *arguments)


def say(sentence: str) -> None:
    print(sentence, flush=True)


def install(lock: Path, uv_lock: Path) -> bool:
    count = lock.read_text().count("==")
    requirements = ("--require-hashes", "-r", str(lock))
    # Nothing but the wheel: to build uv takes longer than pip does without it.
    if pip_installs("--only-binary", ":all:", "--require-hashes", "-r", str(uv_lock)):
        say(f"Install {count} packages with uv")
        if uv_installs(*requirements):
            return True
        say(f"uv failed; {LOG} tells why. pip installs the {count} packages: some minutes")
    else:
        say(f"pip cannot get uv here, and installs the {count} packages itself: some minutes")
    return pip_installs(*requirements)


def main(lock: str, uv_lock: str) -> None:
    begun = time.monotonic()
    LOG.write_text("")
    platform = ("--no-deps", "--no-build-isolation", "-e", ".")
    say("Put uv into the environment")
    done = install(ROOT / lock, ROOT / uv_lock)
    if done:
        say("Install the platform itself")
        done = pip_installs(*platform)
    if not done:
        *_, said = LOG.read_text().rpartition("\n$")
        sys.exit(f"${said[-4000:]}\nThat failed. The whole log is {LOG}.")
    say(f"Done in {time.monotonic() - begun:.0f} s. The log is {LOG}")


if __name__ == "__main__":
    main(*sys.argv[1:])

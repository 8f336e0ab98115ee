"""Build the wheel and the sdist, with a bill of materials and checksums, into a directory.

The same commit gives the same bytes: what has a time has that of the commit.
"""

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
import uuid
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
LOCK = ROOT / "requirements.lock"
PINNED = re.compile(r"^([\w.-]+)==([^\s;]+)(?: ; ([^\\\n]+?))? \\$", re.MULTILINE)


def epoch() -> int:
    """The time of the commit; SOURCE_DATE_EPOCH wins, and is needed where there is no commit."""
    given = os.environ.get("SOURCE_DATE_EPOCH")
    if given is None:
        command = ["git", "log", "-1", "--format=%ct"]
        given = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout
    return int(given)


def bill(lock: str, name: str, version: str, moment: int) -> dict[str, Any]:
    """The bill of materials in CycloneDX: each pinned package, and where it is installed."""
    components = [
        {
            "type": "library",
            "bom-ref": _purl(package, pinned),
            "name": package,
            "version": pinned,
            "purl": _purl(package, pinned),
            **({"properties": [{"name": "python:marker", "value": marker}]} if marker else {}),
        }
        for package, pinned, marker in sorted(PINNED.findall(lock))
    ]
    own = _purl(name, version)
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "serialNumber": f"urn:uuid:{uuid.uuid5(uuid.NAMESPACE_URL, own + lock)}",
        "version": 1,
        "metadata": {
            "timestamp": datetime.fromtimestamp(moment, UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
            "component": {
                "type": "application",
                "bom-ref": own,
                "name": name,
                "version": version,
                "purl": own,
            },
        },
        "components": components,
        "dependencies": [{"ref": own, "dependsOn": [one["bom-ref"] for one in components]}],
    }


def _purl(package: str, version: str) -> str:
    return f"pkg:pypi/{re.sub(r'[-_.]+', '-', package).lower()}@{version}"


def release(directory: Path) -> list[Path]:
    """Build into an empty directory; the files that were made."""
    shutil.rmtree(directory, ignore_errors=True)
    directory.mkdir(parents=True)
    moment = epoch()
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-d", directory],
        cwd=ROOT,
        check=True,
        stdout=subprocess.DEVNULL,
        env={**os.environ, "SOURCE_DATE_EPOCH": str(moment)},
    )
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    made = bill(LOCK.read_text("utf-8"), project["name"], project["version"], moment)
    path = directory / f"{project['name']}-{project['version']}.cdx.json"
    path.write_text(json.dumps(made, indent=2, sort_keys=True) + "\n", "utf-8")
    built = sorted(directory.iterdir())
    sums = [f"{hashlib.sha256(one.read_bytes()).hexdigest()}  {one.name}\n" for one in built]
    (directory / "SHA256SUMS").write_text("".join(sums), "utf-8")
    return sorted(directory.iterdir())


if __name__ == "__main__":
    for one in release(Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "dist"):
        print(one)

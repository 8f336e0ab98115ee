"""The libraries of the pages are the files their packages shipped."""

from hashlib import sha256
from pathlib import Path

import api

STATIC = Path(api.__file__).parent / "static"


def test_every_library_has_its_recorded_bytes_and_a_licence() -> None:
    recorded: dict[str, str] = {
        line.split()[1]: line.split()[0]
        for line in (STATIC / "SHA256SUMS").read_text().splitlines()
    }
    found = [path for path in STATIC.iterdir() if path.suffix in {".js", ".css"}]
    assert recorded == {path.name: sha256(path.read_bytes()).hexdigest() for path in found}
    for path in found:
        library = path.name.split(".")[0].removesuffix("-bundle")
        assert (STATIC / f"{library}.LICENSE").exists(), library

"""Reading the lines of a file of rows. Pure."""

from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import Any

import jsonschema_rs
from pydantic_core import from_json

from models.core.bundles.findings import Findings
from models.core.bundles.kinds import BundleKind, Row
from models.workspace.bundles.json_schema import row_schema
from models.workspace.bundles.registry import KIND_OF

_NUL = b"\\u0000"


def read_rows(
    lines: Sequence[bytes],
    kinds: Sequence[BundleKind],
    findings: Findings,
    *,
    checked: bool = False,
) -> Mapping[str, list[Row]]:
    """The rows of these kinds, by kind; rows of kinds that another step reads are passed over.

    Lines that cannot be taken are errors of `findings`, kinds that nobody knows warnings. Lines
    that were `checked` before are not held against the schema again.
    """
    rows: dict[str, list[Row]] = {kind.name: [] for kind in kinds}
    for name, value in _objects(lines, findings):
        if name not in KIND_OF:
            findings.warn("unknown_kind", f"Rows of the kind {name[:50]} are left out.")
        elif name in rows:
            problem = None if checked else _problem(name, value)
            if problem is None:
                names = _names(name)
                rows[name].append({names[key]: one for key, one in value.items() if key in names})
            else:
                findings.refuse("schema", f"{name}: {problem}")
    return rows


def _objects(lines: Sequence[bytes], findings: Findings) -> Iterator[tuple[str, dict[str, Any]]]:
    for line in lines:
        try:
            value = from_json(line, allow_inf_nan=False)
        except ValueError:
            findings.refuse("not_json", "A line is no JSON object.")
            continue
        if not isinstance(value, dict) or not isinstance(value.get("type"), str):
            findings.refuse("not_json", "A line is no JSON object with a type.")
        elif _NUL in line:
            findings.refuse("not_text", "A line has a character that is not text (NUL).")
        else:
            yield value.pop("type"), value


def _problem(kind: str, value: dict[str, Any]) -> str | None:
    """The first thing that the schema of a kind does not allow."""
    validator = _validator(kind)
    if validator.is_valid(value):
        check = KIND_OF[kind].check
        return None if check is None else check(value)
    # Told by the place alone: what stands there is the user's.
    error = next(validator.iter_errors(value))
    path = ".".join(str(part) for part in error.instance_path)
    lacking = getattr(error.kind, "property", None)
    what = error.kind.name if lacking is None else f"{error.kind.name}: {lacking}"
    return f"{path or 'a row'} does not follow the schema ({what})."


@cache
def _names(kind: str) -> Mapping[str, str]:
    """The name of a column by its name in a bundle."""
    return {key: str(column.name) for key, column in KIND_OF[kind].columns.items()}


@cache
def _validator(kind: str) -> jsonschema_rs.Draft202012Validator:
    return jsonschema_rs.Draft202012Validator(row_schema(KIND_OF[kind]), validate_formats=True)

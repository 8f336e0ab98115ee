"""The files that list kinds of fields by hand: a new kind is named in each, or left out here."""

import re

import pytest

from models.data.fields.rules.fields import FieldKind
from tests.architecture.source import SRC

LEFT_OUT = {
    "activities/sources/reading_process.py": (
        "auto_number button created_at created_by duration email file formula json location "
        "long_text lookup multi_select person phone relation rich_text rollup select status "
        "time timer updated_at updated_by url"
    ),
    "api/console/imports/previews.py": (
        "auto_number button created_at created_by file formula location lookup person rating "
        "relation rich_text rollup status timer updated_at updated_by"
    ),
    "api/console/records/cells.py": (
        "auto_number button checkbox created_at created_by date datetime file json location "
        "long_text lookup multi_select number person phone relation rich_text rollup select "
        "status text time updated_at updated_by"
    ),
    "api/console/records/entry.py": (
        "auto_number button created_at created_by formula lookup number "
        "relation rollup text timer updated_at updated_by"
    ),
    "cli/convert/airtable.py": (
        "auto_number button created_at created_by file formula json location lookup person "
        "relation rollup status time timer updated_at updated_by"
    ),
    "models/data/databases/rules.py": "",
    "models/data/fields/rules/values.py": "",
    "models/data/fields/rules/settings.py": (
        "auto_number checkbox created_at created_by currency duration email json location "
        "long_text number percent person phone rating rich_text text time updated_at "
        "updated_by url"
    ),
    "models/data/fields/rules/value_conversion.py": (
        "auto_number button created_at created_by file formula lookup number person relation "
        "rollup timer updated_at updated_by"
    ),
    "models/data/forms/rules.py": (
        "auto_number button created_at created_by file formula json lookup person relation "
        "rollup timer updated_at updated_by"
    ),
    "models/sources/external_resources/rules/forms.py": (
        "auto_number button checkbox created_at created_by currency email file formula json "
        "location lookup percent person phone relation rich_text rollup status timer "
        "updated_at updated_by url"
    ),
    "models/sources/tabular/rules/columns.py": (
        "auto_number button created_at created_by file formula location lookup multi_select "
        "person phone rating relation rich_text rollup status timer updated_at updated_by"
    ),
    "models/sources/tabular/rules/conversion.py": (
        "auto_number button created_at created_by formula location long_text lookup relation "
        "rich_text rollup select status timer updated_at updated_by"
    ),
    "models/sources/tabular/rules/rejections.py": (
        "auto_number button created_at created_by formula long_text lookup relation rich_text "
        "rollup text timer updated_at updated_by"
    ),
    "models/workspace/starters/rules/plan.py": (
        "auto_number button created_at created_by duration formula json location lookup "
        "rich_text rollup time timer updated_at updated_by"
    ),
}
"""The kinds that a file does not name, or names as NUMERIC_KINDS, or treats as all others."""

MANY = 8
"""Kinds that a file names when it lists them; fewer are spoken of for a reason of their own."""


def unnamed(text: str) -> set[str]:
    """The kinds that a source does not name."""
    return {kind.value for kind in FieldKind} - {
        name.lower() for name in re.findall(r"\bFieldKind\.([A-Z_]+)", text)
    }


@pytest.mark.parametrize("path", LEFT_OUT)
def test_a_kind_is_named_or_left_out_on_purpose(path: str) -> None:
    missing = unnamed((SRC / path).read_text(encoding="utf-8"))
    assert missing == set(LEFT_OUT[path].split()), "see CONTRIBUTING.md, `Add a field kind`"


def test_no_other_file_lists_kinds() -> None:
    listing = {
        path.relative_to(SRC).as_posix()
        for path in SRC.rglob("*.py")
        if len(FieldKind) - len(unnamed(path.read_text("utf-8"))) >= MANY
    }
    assert listing - {"models/data/fields/rules/fields.py"} <= LEFT_OUT.keys()

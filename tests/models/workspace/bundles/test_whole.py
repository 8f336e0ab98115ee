"""No resource is forgotten: what has rows of a workspace is in a bundle, or said to be left out."""

import json

import jsonschema_rs

from models.tables import metadata
from models.workspace.bundles.lines import bundle_schema
from models.workspace.bundles.registry import KINDS, LEFT_OUT
from models.workspace.bundles.rules import Fault
from tests.architecture.source import ROOT

OF_A_WORKSPACE = {table.name for table in metadata.sorted_tables if "workspace_id" in table.c}
IN_A_BUNDLE = {kind.table.name for kind in KINDS}


def test_every_table_is_in_a_bundle_or_left_out_for_a_reason() -> None:
    assert OF_A_WORKSPACE - IN_A_BUNDLE - LEFT_OUT.keys() == set(), (
        "describe the rows in a bundle.py of the resource and add them to KINDS in"
        " models/workspace/bundles/registry.py, or add the table to LEFT_OUT with the reason"
    )


def test_nothing_is_both_or_gone() -> None:
    assert LEFT_OUT.keys() & IN_A_BUNDLE == set()
    assert LEFT_OUT.keys() - metadata.tables.keys() == set()


def test_every_column_is_in_a_bundle_or_left_out_for_a_reason() -> None:
    for kind in KINDS:
        columns = {one.name for one in kind.table.c} - {"workspace_id"}
        shown = {one.name for one in kind.columns.values()}
        derived = {"checksum"} if kind.name == "automation_version" else set()
        assert columns - shown - kind.left_out.keys() - derived == set(), kind.name
        assert kind.left_out.keys() <= columns, kind.name


def test_every_reference_is_to_a_kind() -> None:
    known = {kind.source_kind for kind in KINDS} | {"*"}
    for kind in KINDS:
        assert set(kind.references.values()) <= known, kind.name
        assert {*kind.references, *kind.contents, *kind.required} <= {
            one.name for one in kind.columns.values()
        }, kind.name


def test_the_schema_and_the_page_are_what_the_code_says() -> None:
    published = (ROOT / "docs/bundle.schema.json").read_text(encoding="utf-8")
    assert json.loads(published) == bundle_schema(), (
        "run: workspace bundle-schema > docs/bundle.schema.json"
    )
    jsonschema_rs.validator_for(bundle_schema())
    page = (ROOT / "docs/bundles.md").read_text(encoding="utf-8")
    for kind in KINDS:
        assert f"| `{kind.name}` | `{kind.file.replace('{database_id}', '<databaseId>')}` |" in page
    for fault in Fault:
        assert f"`{fault}`" in page

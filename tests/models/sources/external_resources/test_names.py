"""Names that providers give, and what becomes of them."""

import pytest
from pydantic import TypeAdapter, ValidationError

from models.sources.external_resources.rules.resources import (
    ExternalId,
    ProviderResource,
    WebAddress,
    identifier_problem,
    shown_name,
)
from models.sources.resource_imports.rules import can_name_sheet, essence, imported_kind


@pytest.mark.parametrize(
    ("given", "shown"),
    [
        ("Plan.md", "Plan.md"),
        ("../../etc/passwd", "../../etc/passwd"),
        ("a\x00b\nc", "ab c"),
        ("\u202egnp.exe", "gnp.exe"),
        ("..", ".."),
        (" \u200b ", "Untitled"),
        ("مرحبا", "مرحبا"),
        ("x" * 300, "x" * 200),
    ],
)
def test_names_hide_nothing(given: str, shown: str) -> None:
    assert shown_name(given) == shown


def test_an_identifier_is_text() -> None:
    assert identifier_problem("../x") is None
    assert identifier_problem("a\x00") is not None


@pytest.mark.parametrize(
    ("text", "fine"),
    [
        ("https://a.example/x?y=1", True),
        ("http://a.example", True),
        ("javascript:alert(1)", False),
        ("ftp://a.example", False),
        ("https://", False),
        ("https://a.example/a b", False),
        ("https://a.example/\u202e", False),
        ("https://[", False),
        ("https://a.example/" + "x" * 2_030, True),
        ("https://a.example/" + "x" * 2_031, False),
    ],
)
def test_a_web_address_can_be_opened_safely(text: str, fine: bool) -> None:
    adapter = TypeAdapter(WebAddress)
    if fine:
        assert adapter.validate_python(text) == text
    else:
        with pytest.raises(ValidationError):
            adapter.validate_python(text)


@pytest.mark.parametrize(
    ("name", "is_id", "is_sheet"),
    [
        ("x", True, True),
        ("x" * 200, True, True),
        ("x" * 201, True, False),
        ("x" * 1_000, True, False),
        ("x" * 1_001, False, False),
        ("a\x07", False, False),
        ("", False, False),
    ],
)
def test_a_name_that_is_asked_for_is_bounded(name: str, is_id: bool, is_sheet: bool) -> None:
    assert can_name_sheet(name) is is_sheet
    if not is_id:
        with pytest.raises(ValidationError):
            TypeAdapter(ExternalId).validate_python(name)
    else:
        assert TypeAdapter(ExternalId).validate_python(name) == name


@pytest.mark.parametrize(
    ("given", "expected"),
    [("Text/HTML; charset=utf-8", "text/html"), (" a/b ", "a/b"), (None, "")],
)
def test_a_media_type_is_known_without_its_parameters(given: str | None, expected: str) -> None:
    assert essence(given) == expected


@pytest.mark.parametrize(
    ("surface", "media", "kind"),
    [
        ("folder", None, None),
        ("document", "text/markdown", "page"),
        ("document", "image/png", "file"),
        ("document", "application/pdf", "file"),
        ("document", None, "page"),
        ("spreadsheet", None, "database"),
        ("database", None, "database"),
        ("file", "text/csv", "file"),
        ("generic", "text/html; charset=utf-8", "page"),
        ("generic", "text/csv", "database"),
        ("generic", "application/vnd.oasis.opendocument.spreadsheet", "file"),
        ("generic", "application/x-unknown", "file"),
        ("generic", None, None),
        ("calendar", None, None),
    ],
)
def test_a_resource_becomes_what_its_surface_and_type_say(
    surface: str, media: str | None, kind: str | None
) -> None:
    def imported(*capabilities: str) -> str | None:
        given = {"externalType": "x", "externalId": "x", "name": "x", "surfaceKind": surface}
        more = {
            "capabilities": list(capabilities),
            **({} if media is None else {"mimeType": media}),
        }
        return imported_kind(ProviderResource.model_validate({**given, **more}))

    assert imported("import") == kind
    assert imported("read") is None
    assert imported("import", "browse") == ("folder" if surface == "folder" else kind)

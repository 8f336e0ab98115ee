"""Checks that what a node or a trigger refers to exists in the workspace (decisions C8)."""

from collections.abc import Iterator

from models.automation.automations.rules.graph.catalog import NAMED_BY, ReferenceCatalog
from models.automation.automations.rules.graph.kinds import shorten
from models.automation.automations.rules.language.secret_marks import no_secret
from models.automation.automations.rules.triggers.filters import CHANGE, STATE, field_problems
from models.core.base import JsonObject
from models.data.fields.rules.kinds import DATE_KINDS, FieldKind
from runtime.errors import Detail
from runtime.ids import parse_id

_MOMENTS = DATE_KINDS | {FieldKind.CREATED_AT, FieldKind.UPDATED_AT}


def missing(value: JsonObject, catalog: ReferenceCatalog) -> Iterator[tuple[str, str]]:
    """The references at the top level of a config that the workspace lacks, as path and message."""
    for key, noun in NAMED_BY.items():
        for path, text in _texts(key, value.get(key)):
            if parse_id(text) is not None and not catalog.has(noun, text):
                yield path, f'There is no {noun} "{shorten(text)}".'


def _texts(path: str, value: object) -> Iterator[tuple[str, str]]:
    if isinstance(value, str):
        yield path, value
    elif isinstance(value, list):
        texts = (one for one in enumerate(value) if isinstance(one[1], str))
        yield from ((f"{path}.{index}", text) for index, text in texts)


def trigger_reference_problems(config: JsonObject, catalog: ReferenceCatalog) -> Iterator[Detail]:
    """The references of a trigger that the workspace lacks."""
    for path, message in (
        *missing(config, catalog),
        *_malformed(config),
        *_secret(config, catalog),
        *_database(config, catalog),
    ):
        yield Detail(f"triggerConfig.{path}", message)


def _secret(config: JsonObject, catalog: ReferenceCatalog) -> Iterator[tuple[str, str]]:
    name = config.get("secretName")
    if isinstance(name, str) and name not in catalog.secrets:
        yield "secretName", no_secret(name)


def _database(config: JsonObject, catalog: ReferenceCatalog) -> Iterator[tuple[str, str]]:
    database_id = config.get("databaseId")
    if not isinstance(database_id, str):
        return
    fields = catalog.databases.get(database_id.lower())
    if fields is None:
        yield "databaseId", f'There is no database "{shorten(database_id)}".'
        return
    for path, key in (*_texts("fieldKeys", config.get("fieldKeys")), *_field(config)):
        if key not in fields:
            yield path, f'The database has no field "{shorten(key)}".'
        elif path == "fieldKey" and (problem := _wrong_kind(config["kind"], fields[key].kind)):
            yield path, problem
    variables = STATE if config["kind"] == "record_matches" else CHANGE
    yield from field_problems(config.get("filter"), variables, fields)


def _malformed(config: JsonObject) -> Iterator[tuple[str, str]]:
    for key in NAMED_BY:
        for path, text in _texts(key, config.get(key)):
            if text != "any" and parse_id(text) is None:
                yield path, f'"{shorten(text)}" is no id.'


def _field(config: JsonObject) -> Iterator[tuple[str, str]]:
    return _texts("fieldKey", config.get("fieldKey"))


def _wrong_kind(trigger: str, kind: str) -> str | None:
    if trigger == "record_date_reached" and kind not in _MOMENTS:
        return f"The field holds no date: it is of the kind {kind}."
    if trigger == "button_pressed" and kind != FieldKind.BUTTON:
        return f"The field is no button: it is of the kind {kind}."
    return None

"""What breaks clients between two OpenAPI documents, as docs/compatibility.md promises. Pure.

`python -m tests.support.compatibility` keeps the present document as that of its release.
"""

import gzip
import json
from collections.abc import Iterator, Mapping, Sequence
from datetime import date
from pathlib import Path
from typing import Any

from tests.support.document import DOCUMENT

Json = Mapping[str, Any]

RELEASED = Path(__file__).parents[2] / "docs" / "released"

_WORDS = frozenset({"description", "summary", "title", "example", "examples"})
_NAMED = frozenset({"properties", "schemas", "mapping", "paths", "webhooks", "headers"})
"""Objects whose keys are arbitrary names."""
_LOWER = ("maxLength", "maximum", "exclusiveMaximum", "maxItems", "maxProperties")
_HIGHER = ("minLength", "minimum", "exclusiveMinimum", "minItems", "minProperties")
_JSON = "application/json"


def trimmed(node: Any, *, names: bool = False) -> Any:
    """A document without its words."""
    if isinstance(node, list):
        return [trimmed(one) for one in node]
    if not isinstance(node, dict):
        return node
    kept = {key: one for key, one in node.items() if names or key not in _WORDS}
    return {
        key: one
        if key in {"const", "enum", "default"} and not names
        else trimmed(one, names=key in _NAMED and not names)
        for key, one in kept.items()
    }


def released(path: Path) -> Any:
    """A document that was kept."""
    return json.loads(gzip.decompress(path.read_bytes()))


def breaks(old: Json, new: Json, today: date) -> list[str]:
    """The places where a client of the old document fails with the new one.

    A deprecated part may be removed on its sunset, which the old document has in `x-sunset`.
    """
    return sorted(set(_Comparison(old, new, today).problems()))


class _Comparison:
    def __init__(self, old: Json, new: Json, today: date) -> None:
        self._old, self._new, self._today = old, new, today
        self._known: dict[tuple[bool, int, int], list[str]] = {}

    def problems(self) -> Iterator[str]:
        for part in ("paths", "webhooks"):
            for path, methods in self._old.get(part, {}).items():
                for method, operation in methods.items():
                    place = f"{method.upper()} {path}"
                    now = self._new.get(part, {}).get(path, {}).get(method)
                    if now is not None and part == "paths":
                        yield from self._operation(place, operation, now)
                    elif now is not None:
                        yield from self._call(place, operation, now)
                    elif not self._may_go(operation):
                        yield f"{place}: removed"

    def _may_go(self, was: Json) -> bool:
        sunset = was.get("x-sunset")
        return bool(was.get("deprecated")) and sunset is not None and sunset <= str(self._today)

    def _operation(self, place: str, old: Json, new: Json) -> Iterator[str]:
        yield from self._parameters(place, old, new)
        yield from self._body(place, old.get("requestBody"), new.get("requestBody"))
        for status, answer in old["responses"].items():
            if status not in new["responses"]:
                yield f"{place}: answer {status} removed"
                continue
            was = _resolved(self._old, answer)
            now = _resolved(self._new, new["responses"][status])
            yield from self._contents(f"{place} {status}", was, now, sent=False)
            for header in was.get("headers", {}).keys() - now.get("headers", {}).keys():
                yield f"{place} {status}: header {header} removed"

    def _call(self, place: str, old: Json, new: Json) -> Iterator[str]:
        """A call that the platform makes: its body is read as an answer is."""
        yield from self._contents(place, old["requestBody"], new["requestBody"], sent=False)
        before = {str(one) for one in old["parameters"]}
        if not before <= {str(one) for one in new["parameters"]}:
            yield f"{place}: a header removed"

    def _parameters(self, place: str, old: Json, new: Json) -> Iterator[str]:
        before, after = [
            {(one["in"], one["name"]): one for one in operation.get("parameters", [])}
            for operation in (old, new)
        ]
        for key, parameter in before.items():
            where = f"{place} {' '.join(key)}"
            if key not in after:
                if not self._may_go(parameter):
                    yield f"{where}: removed"
                continue
            if after[key].get("required") and not parameter.get("required"):
                yield f"{where}: became required"
            schemas = parameter.get("schema", {}), after[key].get("schema", {})
            yield from self._schema(where, *schemas, sent=True)
        for key in after.keys() - before.keys():
            if after[key].get("required"):
                yield f"{place} {' '.join(key)}: new and required"

    def _body(self, place: str, old: Json | None, new: Json | None) -> Iterator[str]:
        if old is None:
            if new is not None and new.get("required"):
                yield f"{place} body: new and required"
        elif new is None:
            yield f"{place} body: removed"
        else:
            if new.get("required") and not old.get("required"):
                yield f"{place} body: became required"
            yield from self._contents(f"{place} body", old, new, sent=True)

    def _contents(self, place: str, old: Json, new: Json, *, sent: bool) -> Iterator[str]:
        after = new.get("content", {})
        for media_type, content in old.get("content", {}).items():
            if media_type not in after:
                yield f"{place}: {media_type} removed"
            elif media_type == _JSON:
                schemas = content.get("schema", {}), after[media_type].get("schema", {})
                yield from self._schema(place, *schemas, sent=sent)

    def _schema(self, place: str, old: Json, new: Json, *, sent: bool) -> Iterator[str]:
        """What was valid and is no longer sent so, or what is answered and was not valid."""
        before, after = self._options(self._old, old), self._options(self._new, new)
        if len(before) == len(after) == 1:
            yield from (f"{place}{one}" for one in self._apart(before[0], after[0], sent=sent))
            return
        for option in before if sent else after:
            if sent:
                tries = [self._apart(option, one, sent=True) for one in after]
            elif self._is_new_kind(option, before):
                continue
            else:
                tries = [self._apart(one, option, sent=False) for one in before]
            if all(tries):
                yield f"{place}{min(tries, key=len, default=[': no longer allowed'])[0]}"

    def _apart(self, old: Json, new: Json, *, sent: bool) -> list[str]:
        """The problems between two schemas; one that holds itself has those of its other parts."""
        pair = (sent, id(old), id(new))
        if pair not in self._known:
            self._known[pair] = []
            self._known[pair] = sorted(set(self._plain("", old, new, sent=sent)))
        return self._known[pair]

    def _is_new_kind(self, option: Json, found: Sequence[Json]) -> bool:
        """True for an option of an answer that has a value of its own, as new kinds have."""
        for key, value in self._constants(option).items():
            known = [self._constants(one).get(key) for one in found]
            if all(known) and value.isdisjoint(set().union(*(one for one in known if one))):
                return True
        return False

    def _constants(self, schema: Json) -> dict[str, set[str]]:
        properties = schema.get("properties", {}).items()
        values = {key: _values(one) for key, one in properties}
        return {key: one for key, one in values.items() if one is not None}

    def _plain(self, place: str, old: Json, new: Json, *, sent: bool) -> Iterator[str]:
        before, after = _types(old), _types(new)
        narrow, wide = (before, after) if sent else (after, before)
        if wide and not (narrow and narrow <= wide | ({"integer"} if "number" in wide else set())):
            yield f"{place}: type {_said(before)} became {_said(after)}"
            return
        yield from self._enumerations(place, old, new, sent=sent)
        yield from self._properties(place, old, new, sent=sent)
        if sent:
            yield from _bounds(place, old, new)
        for key in ("items", "additionalProperties"):
            was, now = old.get(key), new.get(key)
            if isinstance(was, dict) and isinstance(now, dict):
                yield from self._schema(f"{place}[]", was, now, sent=sent)
        if (
            sent
            and old.get("additionalProperties") is True
            and not new.get("additionalProperties", True)
        ):
            yield f"{place}: further keys are refused"

    def _enumerations(self, place: str, old: Json, new: Json, *, sent: bool) -> Iterator[str]:
        before, after = _values(old), _values(new)
        if sent and after is not None and (before is None or not before <= after):
            gone = "" if before is None else f" {_said(before - after)}"
            yield f"{place}: values{gone} are refused"
        if not sent and before and after and before.isdisjoint(after):
            yield f"{place}: {_said(before)} became {_said(after)}"

    def _properties(self, place: str, old: Json, new: Json, *, sent: bool) -> Iterator[str]:
        before, after = old.get("properties", {}), new.get("properties", {})
        for key, schema in before.items():
            if key in after:
                yield from self._schema(f"{place}.{key}", schema, after[key], sent=sent)
            elif not self._may_go(schema):
                yield f"{place}.{key}: removed"
        required, was_required = set(new.get("required", ())), set(old.get("required", ()))
        if sent:
            for key in sorted(required - was_required):
                yield f"{place}.{key}: required"
        else:
            for key in sorted((was_required - required) & after.keys()):
                yield f"{place}.{key}: no longer always there"

    def _options(self, document: Json, schema: Json) -> list[Json]:
        """The schemas that a schema is a union of."""
        schema = _resolved(document, schema)
        options = [*schema.get("oneOf", ()), *schema.get("anyOf", ())]
        if not options:
            return [schema]
        return [each for one in options for each in self._options(document, one)]


def _resolved(document: Json, found: Json) -> Json:
    """The schema or answer that a reference leads to."""
    while "$ref" in found:
        _, _, kind, name = found["$ref"].split("/", 3)
        found = document["components"][kind][name]
    return found


def _types(schema: Json) -> set[str]:
    kind = schema.get("type")
    return {kind} if isinstance(kind, str) else set(kind or ())


def _values(schema: Json) -> set[str] | None:
    if "const" in schema:
        return {json.dumps(schema["const"])}
    if "enum" in schema:
        return {json.dumps(one) for one in schema["enum"]}
    return None


def _bounds(place: str, old: Json, new: Json) -> Iterator[str]:
    for keys, narrows in ((_LOWER, lambda a, b: b < a), (_HIGHER, lambda a, b: b > a)):
        for key in keys:
            if key in new and (key not in old or narrows(old[key], new[key])):
                yield f"{place}: {key} {old.get(key, 'none')} became {new[key]}"
    for key in ("pattern", "format"):
        if key in new and new[key] != old.get(key):
            yield f"{place}: {key} {old.get(key, 'none')} became {new[key]}"


def _said(values: set[str]) -> str:
    return ", ".join(sorted(values)) or "any"


if __name__ == "__main__":
    kept = json.dumps(trimmed(DOCUMENT), separators=(",", ":"), ensure_ascii=False)
    name = f"openapi-{DOCUMENT['info']['version']}.json.gz"
    (RELEASED / name).write_bytes(gzip.compress(kept.encode(), mtime=0))

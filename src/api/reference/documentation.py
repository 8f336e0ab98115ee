"""The documentation as it is served: the OpenAPI document, and HTML pages of the reference.

The reference is plain HTML made from the document; the operations are shown by Swagger UI. All of
it comes from this package, no script from elsewhere.
"""

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any
from urllib.parse import quote

from api.kernel.representations import Prepared
from api.reference.entries import Entry, Reference, Section, Table
from api.reference.guides import guides
from api.reference.guides.parser import Step
from api.reference.schemas import PREFIX, Schema


@dataclass(frozen=True, slots=True)
class Documentation:
    """The document, and every page by its path below `/docs/`, as they are served."""

    document: Prepared
    pages: Mapping[str, Prepared]
    missing: Prepared
    """The page for a path that has none."""

    @classmethod
    def of(cls, document: Mapping[str, Any]) -> "Documentation":
        """Render an OpenAPI document and the pages."""
        content = json.dumps(document, ensure_ascii=False, separators=(",", ":"))
        prepared = Prepared.of(content.encode(), "application/json", {})
        sections = Reference(document["components"]["schemas"]).sections()
        missing = Prepared.of(_missing(sections).encode(), _HTML, _PLAIN, 404)
        return cls(prepared, documentation(document, sections), missing)


_STATIC = Path(__file__).parent.parent / "static"

_HTML = "text/html; charset=utf-8"
_PLAIN = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; connect-src 'self'; style-src 'self';"
        " img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    )
}
_WITH_SCRIPTS = {
    "Content-Security-Policy": (
        "default-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:;"
        " frame-ancestors 'none'"
    )
}
_KEPT = {"Cache-Control": "max-age=3600"}

_HEAD = '<link rel="stylesheet" href="/docs/swagger-ui.css">\n'
_OPERATIONS = """<div id="swagger-ui"></div>
<script src="/docs/swagger-ui-bundle.js"></script>
<script src="/docs/initialize.js"></script>"""

_INITIALIZE = """SwaggerUIBundle({
  url: "/openapi.json",
  dom_id: "#swagger-ui",
  deepLinking: true,
  docExpansion: "none",
  defaultModelsExpandDepth: 0,
  filter: true,
  persistAuthorization: true,
  validatorUrl: null,
});
"""


def documentation(document: Mapping[str, Any], sections: Sequence[Section]) -> dict[str, Prepared]:
    """Every page and file of the documentation, by its path below `/docs/`."""
    schemas = document["components"]["schemas"]
    index = json.dumps(search_index(document, sections), ensure_ascii=False)
    files = {
        path: Prepared.of(page.encode(), _HTML, _PLAIN)
        for path, page in pages(schemas, sections).items()
    }
    operations = frame("Operations", _HEAD, _OPERATIONS, sections, "operations")
    script, style = "text/javascript; charset=utf-8", "text/css; charset=utf-8"
    return files | {
        "operations": Prepared.of(operations.encode(), _HTML, _WITH_SCRIPTS),
        "search.json": Prepared.of(index.encode(), "application/json", {}),
        "initialize.js": Prepared.of(_INITIALIZE.encode(), script, _KEPT),
        "swagger-ui-bundle.js": Prepared.of(_file("swagger-ui-bundle.js"), script, _KEPT),
        "swagger-ui.css": Prepared.of(_file("swagger-ui.css"), style, _KEPT),
    }


def _file(name: str) -> bytes:
    return (_STATIC / name).read_bytes()


def search_index(
    document: Mapping[str, Any], sections: Sequence[Section]
) -> Sequence[Mapping[str, str]]:
    """The entries of the search: a title, its place, and its text."""
    index = [
        {
            "path": f"/docs/{section.slug}/{entry.name}",
            "title": entry.name,
            "section": section.title,
            "text": " ".join([entry.says, *(f"{name} {says}" for name, says in entry.facts)]),
        }
        for section in sections
        for entry in section.entries
    ]
    index += [
        {"path": f"/docs/{one.slug}", "title": one.title, "section": "", "text": one.says}
        for one in sections
    ]
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            tag, name = operation["tags"][0], operation["operationId"]
            at = f"/docs/operations#/{quote(tag)}/{name}"
            text = f"{operation.get('summary', '')} {name}"
            index.append(
                {"path": at, "title": f"{method.upper()} {path}", "section": tag, "text": text}
            )
    return index


TITLE = "Workspace Platform API"
_CODE = re.compile(r"`([^`]+)`")
_CURRENT = ' aria-current="page"'
_JSON = re.compile(r"(&quot;(?:[^&\\]|&(?!quot;)|\\.)*?&quot;)(\s*:)?|\b(true|false|null)\b")


def pages(schemas: Mapping[str, Schema], sections: Sequence[Section]) -> dict[str, str]:
    """Every page by its path below `/docs/`; that of the overview is empty."""
    by_path = {
        "": _page("Documentation", _overview(sections), sections),
        "guides": frame("Guides", "", f"<main>{_guides(sections)}</main>", sections, "guides"),
    }
    for section in sections:
        by_path[section.slug] = _page(section.title, _listed(section), sections, section)
        for entry in section.entries:
            content = _entry(section, entry, schemas)
            by_path[f"{section.slug}/{entry.name}"] = _page(
                entry.name, content, sections, section, entry
            )
    return by_path


def frame(
    title: str, head: str, content: str, sections: Sequence[Section], current: str = ""
) -> str:
    """A page with the navigation between the sections above it; `current` is the slug of one."""
    named = [("guides", "Guides"), ("operations", "Operations")]
    named += [(one.slug, one.title) for one in sections]
    links = "".join(
        f'<a href="/docs/{slug}"{_CURRENT if slug == current else ""}>{text}</a>'
        for slug, text in named
    )
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{escape(title)} · {TITLE}</title>
<link rel="icon" href="data:,">
<link rel="stylesheet" href="/pages/docs.css">
<script src="/pages/docs.js" defer></script>
{head}</head>
<body>
<header><a class="brand" href="/docs">{TITLE}</a>
<search hidden><input type="search" id="search" placeholder="Search (/)" autocomplete="off"
aria-label="Search the documentation" aria-controls="hits" aria-keyshortcuts="/"><ul id="hits"
hidden></ul></search>
<a class="console" href="/">Console</a>
<nav aria-label="Sections">{links}</nav></header>
{content}
</body>
</html>
"""


def _page(
    title: str,
    content: str,
    sections: Sequence[Section],
    section: Section | None = None,
    entry: Entry | None = None,
) -> str:
    if section is None:
        return frame(title, "", f"<main>{content}</main>", sections)
    columns = f'<div class="columns">{_beside(section, entry)}<main>{content}</main></div>'
    return frame(title, "", columns, sections, section.slug)


def _beside(section: Section, current: Entry | None) -> str:
    links = "".join(
        f'<a href="/docs/{section.slug}/{one.name}"'
        f"{' aria-current=page' if one is current else ''}>{one.name}</a>"
        for one in section.entries
    )
    return f'<aside><nav aria-label="{section.title}">{links}</nav></aside>'


def _cards(sections: Iterable[Section]) -> str:
    cards = "".join(
        f'<section class="card"><h2><a href="/docs/{one.slug}">{one.title}</a></h2>'
        f"<p>{_prose(one.says)}</p><p class=names>{_names(one)}</p></section>"
        for one in sections
    )
    return f'<div class="cards">{cards}</div>'


def _guides(sections: Sequence[Section]) -> str:
    slugs = {guide.slug for guide in guides()}
    listed = _cards(one for one in sections if one.slug in slugs)
    return f"<h1>Guides</h1><p class=lead>How the parts of the platform are used.</p>{listed}"


def _missing(sections: Sequence[Section]) -> str:
    content = """<h1>Page not found</h1>
<p class="lead">This page does not exist or was moved. Search the documentation, or go to the
<a href="/docs">overview</a>.</p>"""
    return _page("Page not found", content, sections)


def _overview(sections: Sequence[Section]) -> str:
    return f"""<h1>{TITLE}</h1>
<p class="lead"><a href="/docs/guides">Guides</a> and reference, with a guide to the
<a href="/docs/console">console</a>.
Try <a href="/docs/operations">operations</a> in the browser, or generate a client from
<a href="/openapi.json"><code>/openapi.json</code></a>.</p>
{_cards(sections)}"""


def _names(section: Section) -> str:
    return " ".join(
        f'<a href="/docs/{section.slug}/{one.name}"><code>{one.name}</code></a>'
        for one in section.entries
    )


def _listed(section: Section) -> str:
    rows = "".join(
        f'<tr><th scope="row"><a href="/docs/{section.slug}/{one.name}"><code>{one.name}</code></a>'
        f"</th><td>{_prose(one.says.partition(chr(10) + chr(10))[0])}</td></tr>"
        for one in section.entries
    )
    return (
        f"<h1>{section.title}</h1><p class=lead>{_prose(section.says)}</p>"
        f"<div class=scroll><table class=list><tbody>{rows}</tbody></table></div>"
    )


def _entry(section: Section, entry: Entry, schemas: Mapping[str, Schema]) -> str:
    paragraphs = "".join(f"<p>{_prose(one)}</p>" for one in entry.says.split("\n\n"))
    facts = "".join(f"<dt>{_prose(name)}</dt><dd>{_prose(says)}</dd>" for name, says in entry.facts)
    tables = "".join(_table(one, schemas) for one in entry.tables)
    return (
        f'<p class=above><a href="/docs/{section.slug}">{section.title}</a></p>'
        f"<h1><code>{entry.name}</code></h1><div class=lead>{paragraphs}</div>"
        f"{f'<dl>{facts}</dl>' if facts else ''}{_example(entry)}{tables}"
    )


def _example(entry: Entry) -> str:
    if entry.example is None:
        steps = "".join(_step(step) for step in entry.steps)
        return f"<h2>Example</h2>{steps}" if steps else ""
    if isinstance(entry.example, str):
        shown = f"<pre>{escape(entry.example)}</pre>"
        return f"<h2>Example</h2>{shown}<h3>Result</h3>{_json(entry.result)}"
    value = "" if entry.result is None else f"<h3>Value</h3>{_json(entry.result)}"
    return f"<h2>Example</h2>{_json(entry.example)}{value}"


def _step(step: Step) -> str:
    """A request and what of its answer the next ones need."""
    headers = "".join(f"\n{name}: {value}" for name, value in step.headers.items())
    body = "" if step.body is None else _json(step.body)
    facts = {
        "By": "" if step.by == "key" else _BY[step.by],
        "Status": str(step.status),
        "Keep": ", ".join(f"`data.{path}` as `{{{name}}}`" for name, path in step.keeps.items()),
    }
    rows = "".join(
        f"<dt>{name}</dt><dd>{_prose(fact)}</dd>" for name, fact in facts.items() if fact
    )
    answers = "" if step.answers is None else f"<h4>Response (excerpt)</h4>{_json(step.answers)}"
    says = f"<p>{_prose(step.says)}</p>" if step.says else ""
    request = escape(f"{step.request}{headers}")
    return f"<h3><code>{request}</code></h3>{says}{body}<dl>{rows}</dl>{answers}"


_BY = {"anonymous": "anyone, without a key", "administrator": "a platform administrator"}


def _json(value: object) -> str:
    text = escape(json.dumps(value, indent=2, ensure_ascii=False))
    return f"<pre>{_JSON.sub(_coloured, text)}</pre>"


def _coloured(found: "re.Match[str]") -> str:
    text, colon, word = found.groups()
    if word:
        return f"<b>{word}</b>"
    return f"<i>{text}</i>{colon}" if colon else f"<s>{text}</s>"


def _table(table: Table, schemas: Mapping[str, Schema]) -> str:
    rows = "".join(_rows(table, schemas))
    says = f"<p>{_prose(table.says)}</p>" if table.says else ""
    return (
        f'<h2 id="{table.title}">{table.title}</h2>{says}<div class=scroll><table><thead><tr>'
        f"<th>Key</th><th>Type</th><th>Default</th></tr></thead><tbody>{rows}</tbody></table></div>"
    )


def _rows(table: Table, schemas: Mapping[str, Schema]) -> Iterator[str]:
    for key, schema in table.keys.items():
        needed = ' <span class=needed title="required">required</span>' * (key in table.required)
        default = f"<code>{_default(schema['default'])}</code>" if "default" in schema else ""
        says = f"<br>{_prose(schema['description'])}" if "description" in schema else ""
        yield (
            f'<tr><th scope="row"><code>{key}</code>{needed}</th>'
            f"<td>{type_of(schema, schemas)}{says}</td><td>{default}</td></tr>"
        )


def _default(value: object) -> str:
    return escape(json.dumps(value, ensure_ascii=False))


def _prose(text: str) -> str:
    return _CODE.sub(r"<code>\1</code>", escape(text, quote=False))


_LINKS = {
    "Filter": ("filter", "/docs/filters"),
    "BoundFilter": ("filter", "/docs/filters"),
    "CelExpression": ("CEL expression", "/docs/expressions"),
}
_LEFT_OUT = frozenset({"Binding", "PartialConfig"})
"""A binding is allowed anywhere; the section says so once."""
_TEXTS = {"uuid": "id", "date-time": "moment (ISO 8601)", "date": "day (ISO 8601)"}
"""The formats of strings that have a name; any other string is text."""
_NAMES = {
    "number": "number",
    "integer": "whole number",
    "boolean": "true or false",
}


def type_of(schema: Schema, schemas: Mapping[str, Schema]) -> str:
    """The type of the value, as HTML."""
    return " or ".join(dict.fromkeys(_alternatives(schema, schemas))) or "any value"


def _alternatives(schema: Schema, schemas: Mapping[str, Schema]) -> Iterator[str]:
    for key in ("anyOf", "oneOf"):
        for one in schema.get(key, ()):
            yield from _alternatives(one, schemas)
    if "$ref" in schema:
        yield from _component(schema["$ref"].removeprefix(PREFIX), schemas)
    elif "const" in schema:
        yield _code(schema["const"])
    elif "enum" in schema:
        yield ", ".join(_code(value) for value in schema["enum"])
    elif "type" in schema:
        yield _plain(schema, schemas)


def _component(name: str, schemas: Mapping[str, Schema]) -> Iterator[str]:
    if name in _LEFT_OUT:
        return
    if name in _LINKS:
        text, target = _LINKS[name]
        yield f'<a href="{target}">{text}</a>'
    elif "properties" in schemas[name]:
        yield f'<a href="#{name}">{name}</a>'
    else:
        yield from _alternatives(schemas[name], schemas)


def _plain(schema: Schema, schemas: Mapping[str, Schema]) -> str:
    kind = schema["type"]
    if kind == "array":
        return f"list of {type_of(schema.get('items', {}), schemas)}{_bounds(schema, 'Items')}"
    if kind == "object":
        patterns = list(schema.get("patternProperties", {}).values())
        values = patterns[0] if patterns else schema.get("additionalProperties")
        return f"map to {type_of(values, schemas)}" if isinstance(values, dict) else "object"
    if kind == "string":
        named = _TEXTS.get(schema.get("format", ""), schema.get("contentEncoding", "text"))
        return f"{named}{_bounds(schema, 'Length', ' characters')}"
    return f"{_NAMES.get(kind, kind)}{_range(schema)}"


def _bounds(schema: Schema, of: str, unit: str = "") -> str:
    most = schema.get(f"max{of}")
    return f", at most {most:,}{unit}" if most is not None else ""


def _range(schema: Schema) -> str:
    low = schema.get("minimum", schema.get("exclusiveMinimum"))
    high = schema.get("maximum")
    if low is not None and high is not None:
        return f" from {low:,.15g} to {high:,.15g}"
    if low is not None:
        return f" from {low:,.15g}"
    return f" up to {high:,.15g}" if high is not None else ""


def _code(value: object) -> str:
    return f"<code>{escape(str(value).lower() if isinstance(value, bool) else str(value))}</code>"

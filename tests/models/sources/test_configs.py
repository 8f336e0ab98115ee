"""The configs of data sources: what is refused, and what the refusal says to do instead."""

import json
from contextlib import nullcontext
from uuid import UUID

import pytest
from pydantic import TypeAdapter, ValidationError

from models.sources.data_sources.rules import Auth, JsonPath, Pagination, SqlConfig, mysql_problem

PATHS = TypeAdapter(JsonPath)


@pytest.mark.parametrize(
    "path", ["$", "$.a", "$..rows[*]", "$['a b'][\"c?\"][-1].*", "$.a-b", "$['x * y']"]
)
def test_paths_of_names_indexes_and_wildcards_are_read(path: str) -> None:
    assert PATHS.validate_python(path) == path


@pytest.mark.parametrize(
    ("path", "advice"),
    [
        ("$.rows[?(@.price > 2)]", "filter them in a view"),
        ("$.rows[?@.name =~ '(a+)+$']", "filter them in a view"),
        ("$.a * 30000000", "formula field"),
        ("$.a + $.b", "formula field"),
        ("$.rows[0:5]", "with [*]"),
        ("$.rows.`len`", "formula field"),
        ("$.rows.length()", "formula field"),
        ("rows", "such as $.data.orders[*]"),
        ("$" + ".a" * 33, "at most 32 steps"),
        ("$.a[", "such as"),
        ("", "such as"),
    ],
)
def test_other_paths_are_refused_with_what_to_do_instead(path: str, advice: str) -> None:
    with pytest.raises(ValidationError, match="must be a JSONPath") as refused:
        PATHS.validate_python(path)
    assert advice in str(refused.value)


QUERIES = TypeAdapter(SqlConfig)


def sql(query: str) -> SqlConfig:
    return QUERIES.validate_json(json.dumps({"connectionId": str(UUID(int=7)), "query": query}))


@pytest.mark.parametrize(
    "query",
    [
        "select 1",
        "-- why\n/* so * far */ ( SELECT 1 )",
        "/***/ /* a **/\n#\n(select 1)",
        "WITH a AS (SELECT 1) TABLE a",
        "VALUES (1)",
        "# MySQL\nSELECT 'drop'",
    ],
)
def test_queries_that_read_are_taken(query: str) -> None:
    assert sql(query).query == query


@pytest.mark.parametrize(
    "query",
    [
        "DROP TABLE a",
        "COPY a TO PROGRAM 'x'",
        "EXPLAIN ANALYZE SELECT 1",
        "/* SELECT */ CALL x()",
        "/*! SELECT 1 */",
        "selection",
        "",
        "/**/" * 20_000,
        "/*" + "a*" * 40_000,
        "/*" + "*" * 80_000,
        "/*a**/ (-- b\n" * 6_000,
        "SELECT '\x00'",
    ],
)
def test_other_statements_are_refused(query: str) -> None:
    with pytest.raises(ValidationError):
        sql(query)


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ("SELECT 1 INTO OUTFILE '/tmp/x'", "INTO is not allowed"),
        ("SELECT 1 /*!50000INTO*/ OUTFILE '/tmp/x'", "/*!"),
        ("SELECT 1 50000INTO OUTFILE '/tmp/x'", "INTO is not allowed"),
        ("SELECT load_FILE('/etc/passwd')", "LOAD_FILE"),
        ("SELECT 1 /*M! , 2 */", "/*!"),
    ],
)
def test_a_mysql_query_that_does_more_than_read_is_refused(query: str, words: str) -> None:
    assert words in (mysql_problem(query) or "")


def test_mysql_reads_names_that_only_look_like_it() -> None:
    assert mysql_problem("SELECT pinto, into_stock FROM beans /* to be put in */") is None


SECRET, ID = {"secretName": "token"}, {"connectionId": str(UUID(int=7))}


@pytest.mark.parametrize(
    ("shape", "config", "needs"),
    [
        (Auth, {}, None),
        (Auth, {"type": "bearer"}, "secretName"),
        (Auth, {"type": "bearer", **SECRET}, None),
        (Auth, {"type": "basic"}, "secretName"),
        (Auth, {"type": "header", **SECRET}, "headerName"),
        (Auth, {"type": "header", "headerName": "X-Key", **SECRET}, None),
        (Auth, {"type": "connection"}, "connectionId"),
        (Auth, {"type": "connection", **ID}, None),
        (Auth, {"type": "none", **ID}, "connectionId"),
        (Pagination, {}, None),
        (Pagination, {"type": "link_header"}, None),
        (Pagination, {"type": "page"}, "param"),
        (Pagination, {"type": "offset", "param": "skip"}, None),
        (Pagination, {"type": "cursor", "param": "after"}, "cursorPath"),
        (Pagination, {"type": "cursor", "cursorPath": "$.next"}, "param"),
        (Pagination, {"type": "cursor", "param": "after", "cursorPath": "$.next"}, None),
    ],
)
def test_a_type_has_what_it_needs(
    shape: type[Auth | Pagination], config: dict[str, str], needs: str | None
) -> None:
    with nullcontext() if needs is None else pytest.raises(ValidationError, match=needs):
        shape.model_validate_json(json.dumps(config))

"""One meaning per text, or a refusal that says where."""

import pytest

from runtime.strict_json import MAX_FINITE_INTEGER, StrictJsonError, parse


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("{}", {}),
        (' {"a": [1, -2.5, true, null]} ', {"a": [1, -2.5, True, None]}),
        ('{"a": "\\u00e9\\ud83d\\ude00"}', {"a": "é😀"}),
        ('{"a": 9007199254740992}', {"a": 2**53}),
        ('{"a": 1e308, "b": 1e-999}', {"a": 1e308, "b": 0.0}),
        ('{"a": "\\\\u0000"}', {"a": "\\u0000"}),
        ("null", None),
        ("[" * 64 + "]" * 64, None),
    ],
)
def test_strict_json_reads(text: str, value: object) -> None:
    parsed = parse(text.encode())
    assert value is None or parsed == value


@pytest.mark.parametrize(
    ("text", "path", "part"),
    [
        ('{"a": {"b": [0, NaN]}}', "a.b.1", "NaN"),
        ('{"a": "x', "", "not valid JSON: Unterminated string starting at line 1, column 7."),
        ('{"a": "x\ty"}', "", "not valid JSON: Invalid control character at line 1, column 9."),
        ('{"a" 1}', "", "not valid JSON: Expecting ':' delimiter at line 1, column 6."),
        ('{"a": Infinity}', "a", "Infinity"),
        ('{"a": -Infinity}', "a", "-Infinity"),
        ('{"a": 1e999}', "a", "too large"),
        ('{"a": 9007199254740993}', "a", "2^53"),
        ('{"a": [-' + "9" * 5000 + "]}", "a.0", "2^53"),
        ('{"x": {"a": 1, "b": 2, "a": 3}}', "x.a", "twice"),
        ('{"a": [{"b": "x\\u0000y"}]}', "a.0.b", "NUL"),
        ('{"a": "\\ud800"}', "a", "surrogates"),
        ('{"k\\u0000": 1}', "k\ufffd", "NUL"),
        ('{"a": ' + "[" * 64 + "]" * 64 + "}", "a.0.0.0.0.0.0.0", "64 levels"),
        ("[" * 100_000, "", "64 levels"),
        ("[" * 65 + "]" * 65, "0.0.0.0.0.0.0.0", "64 levels"),
        ("{} x", "", "Extra data"),
        ("", "", "not valid JSON"),
        ("{'a': 1}", "", "not valid JSON"),
        ('{"a": "\x00"}', "", "not valid JSON"),
        ('\ufeff{"a": 1}', "", "byte order mark"),
        ('{"a": NaN', "", "not valid JSON"),
    ],
)
def test_strict_json_refuses(text: str, path: str, part: str) -> None:
    with pytest.raises(StrictJsonError) as refused:
        parse(text.encode())
    assert refused.value.path == path
    assert part in refused.value.message


@pytest.mark.parametrize("value", [2**53 + 1, -(2**1023), 10**300])
def test_reads_integers_as_large_as_the_caller_takes(value: int) -> None:
    assert parse(str(value).encode(), largest=MAX_FINITE_INTEGER) == value


@pytest.mark.parametrize("text", [str(2**1023 + 1), "-" + "9" * 309, "9" * 100_000])
def test_refuses_integers_beyond_what_the_caller_takes(text: str) -> None:
    with pytest.raises(StrictJsonError, match=r"beyond ±2\^1023"):
        parse(text.encode(), largest=MAX_FINITE_INTEGER)


@pytest.mark.parametrize(
    "body", ['{"a": "é"}'.encode("utf-16"), b'{"a": "\xff"}', b'{"a": "\xed\xa0\x80"}']
)
def test_refuses_what_is_not_utf8(body: bytes) -> None:
    with pytest.raises(StrictJsonError, match=r"UTF-8|not valid JSON"):
        parse(body)


@pytest.mark.parametrize("text", ["1147386954405658704.0", "1.147386954405658704e18"])
def test_a_whole_number_with_a_fraction_or_an_exponent_keeps_its_digits(text: str) -> None:
    with pytest.raises(StrictJsonError, match="1147386954405658704 is beyond"):
        parse(text.encode())
    kept = parse(text.encode(), largest=MAX_FINITE_INTEGER)
    assert (type(kept), kept) == (int, 1147386954405658704)


@pytest.mark.parametrize("text", ["1e300", "6.02e23", "1147386954405658800.0", "0.1", "-0.0"])
def test_a_number_that_a_double_prints_with_the_same_digits_is_a_double(text: str) -> None:
    assert repr(parse(text.encode())) == repr(float(text))

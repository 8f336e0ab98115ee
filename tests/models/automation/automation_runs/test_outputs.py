"""What the output of a run has room for."""

from models.automation.automation_runs.run_header import OUTPUT_LIMIT, within_limit


def test_small_outputs_are_kept() -> None:
    outputs = {"a": {"n": 1}, "b": None, "c": {"text": "ü"}}
    assert within_limit(outputs) == outputs


def test_outputs_are_null_from_where_they_exceed_the_limit() -> None:
    half = {"text": "ü" * (OUTPUT_LIMIT // 4 - 20)}
    assert within_limit({"a": half, "b": half, "c": half, "d": {}}) == {
        "a": half,
        "b": half,
        "c": None,
        "d": None,
    }


def test_an_output_that_fills_the_limit_is_kept() -> None:
    full = {"t": "x" * (OUTPUT_LIMIT - len('{"t": ""}'))}
    assert within_limit({"a": full}) == {"a": full}
    assert within_limit({"a": {"t": full["t"] + "x"}}) == {"a": None}

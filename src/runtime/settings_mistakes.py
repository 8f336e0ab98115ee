"""Mistakes in settings, as sentences that name the variable; no value is repeated."""

from pydantic_core import ErrorDetails


def is_cause(problem: ErrorDetails) -> bool:
    """True when a problem is one by itself: a default may follow from another variable."""
    return problem["type"] != "default_factory_not_called"


def sentence_of(problem: ErrorDetails) -> str:
    """The words on what to set or to correct, by a problem of the validation library."""
    variable = str(problem["loc"][0]) if problem["loc"] else ""
    if problem["type"] == "value_error":
        words = str(problem["ctx"]["error"]).removesuffix(".")
        if not variable:
            return f"{words}."
    else:
        words = _WORDS.get(problem["type"], "has a value that it cannot have")
        context = problem.get("ctx", {})
        words = words.format(**{name: _plain(value) for name, value in context.items()})
    if not variable.isupper():
        variable = f"WORKSPACE_{variable.upper()}"
    if problem["type"] == "missing":
        return f"Set {variable}: {_PURPOSE.get(variable, 'it has no default')}."
    return f"Correct {variable}: {words}."


def _plain(value: object) -> object:
    return int(value) if isinstance(value, float) and value.is_integer() else value


_WORDS = {
    "int_parsing": "must be a whole number",
    "int_parsing_size": "must be a whole number, and a smaller one",
    "int_from_float": "must be a whole number",
    "float_parsing": "must be a number",
    "finite_number": "must be a number",
    "greater_than": "must be more than {gt}",
    "greater_than_equal": "must be at least {ge}",
    "less_than_equal": "must be at most {le}",
    "literal_error": "must be {expected}",
}
"""The words for what a value must be, by the validation library's name of the mistake."""

_PURPOSE = {
    "DATABASE_URL": "the PostgreSQL database, for example postgresql://user@host/workspace",
    "WORKSPACE_SECRET_KEY": "a master secret of at least 32 bytes; `openssl rand -base64 48`"
    " makes one",
}

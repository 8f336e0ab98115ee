"""Errors of making a value from data (`binding_error` is never retried: interface.md#retries)."""

from runtime.errors import InvalidError


class BindingError(InvalidError):
    """A binding, path, template or filter cannot be read, or cannot be evaluated on the data."""

    code = "binding_error"


class ExpressionError(BindingError):
    """A CEL expression does not compile, or its evaluation failed."""


class MissingKeyError(ExpressionError):
    """The evaluation selected a key that a map does not have."""


class OptionalResultError(ExpressionError):
    """The result is an optional, which has no JSON form."""

    def __init__(
        self, message: str = "The result is an optional value; end it with .orValue(…)."
    ) -> None:
        super().__init__(message)


class ExpressionLimitError(ExpressionError):
    """The evaluation takes too much time or memory, or gives too much."""

    code = "expression_limit"

    def __init__(
        self,
        message: str = "The expression exceeds the time or memory limit. Read less data, or split"
        " it.",
    ) -> None:
        super().__init__(message)

"""Why a value could not be made from data (decisions C8, D2: `binding_error` is never retried)."""

from runtime.errors import InvalidError


class BindingError(InvalidError):
    """A binding, path, template or filter cannot be read, or cannot be evaluated on the data."""

    code = "binding_error"


class ExpressionError(BindingError):
    """A CEL expression does not compile, or its evaluation failed."""

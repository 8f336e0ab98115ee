"""The bindings by which a button gives input to its action (decisions C6, Button binding)."""

from models.core.expressions.rules.cel_text import names
from models.core.expressions.rules.errors import ExpressionError
from models.core.expressions.rules.expressions import compile_expression
from models.data.fields.rules.field_keys import FieldHints, no_field
from models.data.fields.rules.fields import FieldSpec, FieldSpecs
from models.data.fields.rules.kinds import FieldKind
from runtime.errors import Detail

RECORD_FACTS = frozenset({"id", "title", "databaseId"})


def button_problems(spec: FieldSpec, fields: FieldSpecs, hints: FieldHints) -> list[Detail]:
    """The problems of a button's bindings; `fields` are the fields of its database."""
    if spec.kind is not FieldKind.BUTTON:
        return []
    found = (
        (name, _problem(binding["type"], binding["value"], fields, hints))
        for name, binding in spec.settings["bindings"].items()
    )
    return [
        Detail(f"settings.bindings.{name}.value", problem) for name, problem in found if problem
    ]


def _problem(kind: str, value: object, fields: FieldSpecs, hints: FieldHints) -> str | None:
    match kind:
        case "field":
            if not isinstance(value, str):
                return no_field(value, fields)
            return None if value in fields else hints.no_field(value)
        case "record":
            known = isinstance(value, str) and value in RECORD_FACTS
            return None if known else f"must be one of: {', '.join(sorted(RECORD_FACTS))}"
        case "expression":
            return _expression_problem(value)
        case _:
            return None


def _expression_problem(value: object) -> str | None:
    if not isinstance(value, str):
        return "must be a CEL expression"
    try:
        compile_expression(value)
    except ExpressionError as problem:
        return problem.message
    if "trigger" in names(value):
        return (
            "reads trigger, which a button does not have: it reads record.<key>, and the action "
            "reads as trigger.<name> what these bindings pass"
        )
    return None

"""Trying a formula when it is saved, on a record without values."""

from collections.abc import Callable, Iterable
from functools import partial

from models.core.expressions.rules.errors import ExpressionLimitError
from models.data.databases.rules.plan import refuse
from models.data.fields.rules.fields import FieldSpec, FieldSpecs
from models.data.fields.rules.kinds import FieldKind
from models.data.records.rules.write.computed_order import formula_of
from runtime.bounded_processes import evaluate_bounded
from runtime.errors import Detail


async def refuse_endless(
    specs: Iterable[FieldSpec], fields: FieldSpecs, path_of: Callable[[str], str]
) -> None:
    """Raise `ValidationError` for a formula that goes over the limit of one evaluation.

    `path_of` gives the path in the request of the field with a key.
    """
    problems = []
    for spec in specs:
        formula = formula_of(spec, fields) if spec.kind is FieldKind.FORMULA else None
        if formula is None:
            continue
        try:
            await evaluate_bounded(partial(formula.evaluate, {}))
        except ExpressionLimitError as error:
            problems.append(Detail(f"{path_of(spec.key)}settings.expression", error.message))
    refuse(problems)

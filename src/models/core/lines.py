"""The first rows of each of several owners, read from where an index has them."""

from collections.abc import Callable, Collection
from typing import Any

from sqlalchemy import ARRAY, ColumnElement, Select, Uuid, func, literal, select, true

from models.core.base import Id


def of_each(ids: Collection[Id], own: Callable[[ColumnElement[Id]], Select[Any]]) -> Select[Any]:
    """The rows that `own` selects of each id, in one statement.

    Where they are ordered and limited, the past of one owner is not read for another's.
    """
    each = select(func.unnest(literal([*ids], ARRAY(Uuid))).label("id")).subquery("each")
    line = own(each.c.id).correlate(each).lateral("line")
    return select(line).select_from(each.join(line, true()))

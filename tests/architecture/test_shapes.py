"""Every shape can be built: processes build one only when it is first used."""

from collections.abc import Iterator
from importlib import import_module

import pytest
from pydantic import BaseModel
from sqlmodel import SQLModel

from api.routers.registry import ROUTERS
from tests.architecture.source import SRC, files

pytestmark = pytest.mark.takes(seconds=8)


def _shapes(base: type[BaseModel]) -> Iterator[type[BaseModel]]:
    """All below a base that are our own, but tables: rows are read and written, never checked."""
    for shape in base.__subclasses__():
        if shape is SQLModel:
            continue
        if (SRC / shape.__module__.partition(".")[0]).is_dir():
            yield shape
        yield from _shapes(shape)


def test_every_shape_can_be_built() -> None:
    for path in files():
        parts = path.relative_to(SRC).with_suffix("").parts
        if parts[-1] not in {"__init__", "env"}:
            import_module(".".join(parts))
    shapes = set(_shapes(BaseModel))
    assert len(shapes) > 500
    for shape in shapes:
        shape.model_rebuild(raise_errors=True)


def test_the_values_of_every_operation_can_be_read_and_written() -> None:
    operations = [route.operation for router in ROUTERS for route in router.routes]
    for operation in operations:
        body = [] if operation.body is None else [operation.body.adapter]
        result = [] if operation.result is None else [operation.result]
        for adapter in (*body, *result, *(one.adapter for one in operation.query.values())):
            adapter.rebuild(raise_errors=True)

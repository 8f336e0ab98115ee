"""Names and ids of copies."""

import pytest
from sqlalchemy import literal, select

from models.data.database_copies.copying import Copy, copied_id, copy_label
from runtime.database import Database
from runtime.ids import new_id


@pytest.mark.parametrize(
    ("label", "taken", "copy"),
    [
        ("Tasks", [], "Tasks copy"),
        ("Tasks", ["Tasks", "Tasks copy"], "Tasks copy 2"),
        ("Tasks", ["Tasks copy", "Tasks copy 2"], "Tasks copy 3"),
        ("Tasks copy", ["Tasks copy"], "Tasks copy 2"),
        ("Tasks copy 7", [], "Tasks copy"),
        ("copy", [], "copy copy"),
        ("x" * 200, [], "x" * 195 + " copy"),
        ("x" * 200, ["x" * 195 + " copy"], "x" * 193 + " copy 2"),
    ],
)
def test_a_copy_is_called_after_its_source(label: str, taken: list[str], copy: str) -> None:
    assert copy_label(label, taken) == copy
    assert len(copy) <= 200


async def test_ids_of_copies_are_the_same_in_python_and_in_sql(database: Database) -> None:
    copy = Copy(new_id(), new_id(), new_id())
    sources = [new_id() for _ in range(50)]
    async with database.transaction() as work:
        by_sql = [await work.scalar(select(copy.id_of(literal(source)))) for source in sources]
    by_python = [copied_id(copy.copy_id, source) for source in sources]
    assert by_sql == by_python
    assert len(set(by_python)) == 50
    assert {one.version for one in by_python} == {7}
    assert by_python == sorted(by_python), "what is sorted by ids stays sorted"
    assert copied_id(new_id(), sources[0]) != by_python[0]

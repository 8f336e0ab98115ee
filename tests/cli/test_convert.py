"""What other products export comes in as bundles, with a word on what does not."""

import csv
import io
import json
import zipfile
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from cli.main import app
from models.workspace.bundles.unpacking import unpack
from runtime.ids import new_id
from runtime.object_store import ObjectStore
from tests.support.bundles import bring_in, target_of
from tests.support.client import Client
from tests.support.spaces import Space

HEX = "0123456789abcdef0123456789abcdef"
PAGE = """# Plan

Some **bold** words and a [link](https://example.test/).

- [x] Done
- [ ] Open

| A | B |
| --- | --- |
| 1 | 2 |

```python
print(1)
```

![A drawing](Plan%20x/drawing.png)
![Gone](nowhere.png)
"""
ROW = "# Tea\n\nPrice: 3\nDue: January 5, 2026\n\nHot water.\n"
SHEET = "Name,Price,Due,Tags\n" + "".join(
    f'{name},{price},"January {price}, 2026",{tag}\n'
    for price, (name, tag) in enumerate([("Tea", "hot"), ("Ice", "cold")] * 6, start=3)
)


def _notion(path: Path) -> Path:
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(f"Plan {HEX}.md", PAGE)
        archive.writestr(f"Plan {HEX}/drawing.png", b"png")
        archive.writestr(f"Plan {HEX}/Below {HEX}.md", "# Below\n\nWords.\n")
        archive.writestr(f"Goods {HEX}.csv", SHEET.splitlines()[0] + "\n")
        archive.writestr(f"Goods {HEX}_all.csv", SHEET)
        archive.writestr(f"Goods {HEX}/Tea {HEX}.md", ROW)
    return path


def _base(path: Path) -> Path:
    path.mkdir()
    fields = [
        {"id": "f1", "name": "Name", "type": "singleLineText"},
        {"id": "f2", "name": "Price", "type": "currency"},
        {"id": "f3", "name": "Done", "type": "checkbox"},
        {"id": "f4", "name": "Tags", "type": "multipleSelects"},
        {"id": "f5", "name": "Twice", "type": "formula"},
        {"id": "f6", "name": "Press", "type": "button"},
        {
            "id": "f7",
            "name": "Maker",
            "type": "multipleRecordLinks",
            "options": {"linkedTableId": "t2", "inverseLinkFieldId": "f9"},
        },
    ]
    makers = [
        {"id": "f8", "name": "Name", "type": "singleLineText"},
        {
            "id": "f9",
            "name": "Goods",
            "type": "multipleRecordLinks",
            "options": {"linkedTableId": "t1", "inverseLinkFieldId": "f7"},
        },
    ]
    tables = [
        {"id": "t1", "name": "Goods", "primaryFieldId": "f1", "fields": fields},
        {"id": "t2", "name": "Makers", "primaryFieldId": "f8", "fields": makers},
    ]
    (path / "schema.json").write_text(json.dumps({"tables": tables}))
    goods = io.StringIO()
    writer = csv.writer(goods)
    writer.writerow(["Name", "Price", "Done", "Tags", "Twice", "Press", "Maker"])
    writer.writerow(["Tea", "$3.50", "checked", "hot, dry", "7", "", "Ann,Nobody"])
    (path / "Goods.csv").write_text(goods.getvalue())
    (path / "Makers.csv").write_text("Name,Goods\nAnn,Tea\n")
    return path


def _converted(product: str, source: Path, bundle: Path) -> str:
    done = CliRunner().invoke(app, ["convert", product, str(source), str(bundle), "--name", "Old"])
    assert done.exit_code == 0, done.output
    return done.output


def _bytes(path: Path) -> bytes:
    return path.read_bytes()


async def _imported(space: Space, content: bytes) -> None:
    store = ObjectStore("memory://")
    contents = await unpack(store, io.BytesIO(content), len(content), new_id())
    findings = await bring_in(space.database, store, contents, target_of(space))
    assert findings.to_json()["errors"] == []
    codes = {one["message"] for one in findings.to_json()["warnings"]}
    assert codes <= {"file: created_by_user_id is who imports."}


async def _records(client: Client, space: Space, label: str) -> list[dict[str, Any]]:
    listed = (await client.get(f"{space.path}/databases")).json()["data"]["databases"]
    (found,) = [one for one in listed if one["label"] == label]
    answer = await client.get(f"/v1/databases/{found['id']}/records")
    records: list[dict[str, Any]] = answer.json()["data"]["records"]
    return records


async def test_an_export_of_notion(space: Space, client: Client, tmp_path: Path) -> None:
    told = _converted("notion", _notion(tmp_path / "export.zip"), tmp_path / "bundle.zip")
    assert "images that are not in the export (1)" in told
    await _imported(space, _bytes(tmp_path / "bundle.zip"))
    items = (await client.get(f"/v1/items?workspaceId={space.id}")).json()["data"]["items"]
    assert {(one["kind"], one["title"]) for one in items} == {
        ("page", "Plan"),
        ("page", "Below"),
        ("file", "drawing.png"),
        ("database", "Goods"),
    }
    (plan,) = [one for one in items if one["title"] == "Plan"]
    (below,) = [one for one in items if one["title"] == "Below"]
    assert below["parentItemId"] == plan["id"]
    surface = (await client.get(f"/v1/surfaces/{plan['targetId']}")).json()["data"]
    kinds = [one["kind"] for one in surface["blocks"]]
    assert kinds == ["paragraph", "to_do", "to_do", "table", "code", "image"]
    records = await _records(client, space, "Goods")
    assert len(records) == 12
    tea = next(one for one in records if one["data"]["price"] == 3)
    assert tea["title"] == "Tea"
    assert tea["data"]["due"] == "2026-01-03"
    content = [one["contentSurfaceId"] for one in records if "contentSurfaceId" in one]
    (words,) = (await client.get(f"/v1/surfaces/{content[0]}")).json()["data"]["blocks"]
    assert words["content"]["text"] == [{"text": "Hot water."}]


async def test_a_base(space: Space, client: Client, tmp_path: Path) -> None:
    told = _converted("airtable", _base(tmp_path / "base"), tmp_path / "bundle.zip")
    assert "formulas come in as the text they last gave (1)" in told
    assert "buttons are left out (1)" in told
    assert "links of Maker to records that are not there (1)" in told
    await _imported(space, _bytes(tmp_path / "bundle.zip"))
    (tea,) = await _records(client, space, "Goods")
    (ann,) = await _records(client, space, "Makers")
    assert tea["title"] == "Tea"
    assert tea["data"] == {
        "title": "Tea",
        "price": 3.5,
        "done": True,
        "tags": ["hot", "dry"],
        "twice": "7",
    }
    assert [one["id"] for one in tea["related"]["maker"]] == [ann["id"]]
    assert [one["id"] for one in ann["related"]["goods"]] == [tea["id"]]


@pytest.mark.parametrize("product", ["notion", "airtable"])
def test_what_is_no_export_is_told(product: str, tmp_path: Path) -> None:
    source = tmp_path / "source.zip"
    with zipfile.ZipFile(source, "w"):
        pass
    bundle = tmp_path / "bundle.zip"
    done = CliRunner().invoke(app, ["convert", product, str(source), str(bundle)])
    assert done.exit_code == 1
    assert f"is no export of {product}" in " ".join(done.output.split())
    assert not bundle.exists()

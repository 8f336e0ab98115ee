"""Exports of other products become bundles, with a note on each omission."""

import csv
import io
import json
import zipfile
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from cli.commands import app
from models.workspace.bundles.unpacking import unpack
from runtime.ids import new_id
from runtime.object_store import ObjectStore
from tests.support.bundles import bring_in, target_of
from tests.support.client import Client
from tests.support.spaces import Space

HEX = "0123456789abcdef0123456789abcde"
PLAN, BELOW, GOODS, MAKERS, VIEW, TEA, ANN, LEFT = (f"{HEX}{digit}" for digit in "01234567")
PAGE = f"""# Plan

Some **bold** words, a [link](https://example.test/) and [Below](Pla%CC%88n%20x/Below%20{BELOW}.md).

[Below](Plan%20{PLAN}/Below%20{BELOW}.md)

- [x]  Done

    - Inside

    ```python
    print(1)
    ```

- [ ]  Open

<aside>
💡 **Mind** this

- and that

</aside>

<details>
<summary>More</summary>

Words.
</details>

$$
e=mc^2
$$

| A | B |
| --- | --- |
| 1 | 2 |

![A drawing](Plan/sk%C3%A4rm%201.png)
![Gone](nowhere.png)

[Goods](Plan%20{PLAN}/View%20{VIEW}.csv)

[Gone](Gone%20{"f" * 32}.md)
"""
ROW = (
    "# Tea\n\nPrice: 3\nDue: January 3, 2026\n"
    f"Maker: Ann (../Makers%20{MAKERS}/Ann%20{ANN}.md)\n\nHot.\n"
)
ANNS = f"Ann (Makers%20{MAKERS}/Ann%20{ANN}.md)"
SHEET = "\ufeffName,Price,Due,Tags,Maker\n" + "".join(
    f'{name},{price},"January {price}, 2026",{tag},{ANNS if tag == "hot" else ""}\n'
    for price, (name, tag) in enumerate([("Tea", "hot"), ("Ice", "cold")] * 6, start=3)
)
OWNERS = f"Name,Goods\nAnn,Tea (Goods%20{GOODS}/Tea%20{TEA}.md)\n"


def _notion(path: Path) -> Path:
    """A zip in a zip, as large exports are, packed once more by a desktop."""
    inner = io.BytesIO()
    top = "Export-1/Private & Shared"
    with zipfile.ZipFile(inner, "w") as archive:
        archive.writestr("Export-1/index.html", "<html>")
        archive.writestr(f"__MACOSX/{top}/._Plan {PLAN}.md", b"\0\1")
        archive.writestr(f"{top}/Plan {PLAN}.md", PAGE)
        # The folder of a page has no id in newer exports; marks may stand apart from letters.
        archive.writestr(f"{top}/Plan/ska\u0308rm 1.png", b"png")
        archive.writestr(f"{top}/Plan/Below {BELOW}.md", "# Below\n\nWords.\n")
        archive.writestr(f"{top}/Plan/View {VIEW}.csv", "Name,Price\nTea,3\n")
        archive.writestr(f"{top}/Goods {GOODS}.csv", SHEET.splitlines()[0] + "\n")
        archive.writestr(f"{top}/Goods {GOODS}_all.csv", SHEET)
        archive.writestr(f"{top}/Goods {GOODS}/Tea {TEA}.md", ROW)
        archive.writestr(f"{top}/Goods {GOODS}/New {LEFT}.md", "# New\n\nA template.\n")
        archive.writestr(f"{top}/Makers {MAKERS}.csv", OWNERS)
        archive.writestr(f"{top}/Makers {MAKERS}/Ann {ANN}.md", "# Ann\n")
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("Export-1-Part-1.zip", inner.getvalue())
    return path


GOODS_FIELDS = [
    {"id": "f1", "name": "Name", "type": "singleLineText"},
    {"id": "f2", "name": "Price", "type": "currency"},
    {"id": "f3", "name": "Done", "type": "checkbox"},
    {
        "id": "f4",
        "name": "Tags",
        "type": "multipleSelects",
        "options": {"choices": [{"name": "wet", "color": "blueLight2"}]},
    },
    {
        "id": "f5",
        "name": "Twice",
        "type": "formula",
        "options": {"result": {"type": "number", "options": {"precision": 0}}},
    },
    {
        "id": "f10",
        "name": "Since",
        "type": "date",
        "options": {"dateFormat": {"name": "european", "format": "D/M/YYYY"}},
    },
    {"id": "f6", "name": "Press", "type": "button"},
    {
        "id": "f7",
        "name": "Maker",
        "type": "multipleRecordLinks",
        "options": {"linkedTableId": "t2", "inverseLinkFieldId": "f9"},
    },
]
MAKERS_FIELDS = [
    {"id": "f8", "name": "Name", "type": "singleLineText"},
    {
        "id": "f9",
        "name": "Goods",
        "type": "multipleRecordLinks",
        "options": {"linkedTableId": "t1", "inverseLinkFieldId": "f7"},
    },
]


def _base(path: Path) -> Path:
    path.mkdir()
    views = [{"name": "Grid view", "type": "grid"}]
    tables = [
        {
            "id": "t1",
            "name": "Goods",
            "primaryFieldId": "f1",
            "fields": GOODS_FIELDS,
            "views": views,
        },
        {"id": "t2", "name": "Makers", "primaryFieldId": "f8", "fields": MAKERS_FIELDS},
    ]
    (path / "schema.json").write_text(json.dumps({"tables": tables}))
    goods = io.StringIO()
    writer = csv.writer(goods)
    writer.writerow(["Name", "Price", "Done", "Tags", "Twice", "Press", "Maker", "Since"])
    writer.writerow(["Tea", "$3.50", "checked", "hot, dry", "7", "", "Ann,Nobody", "5/1/2026"])
    (path / "Goods-Grid view.csv").write_text(goods.getvalue())
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
    assert codes <= {"file: created_by_user_id was replaced by the importing user."}


async def _records(client: Client, space: Space, label: str) -> list[dict[str, Any]]:
    listed = (await client.get(f"{space.path}/databases")).json()["data"]["databases"]
    (found,) = [one for one in listed if one["label"] == label]
    answer = await client.get(f"/v1/databases/{found['id']}/records")
    records: list[dict[str, Any]] = answer.json()["data"]["records"]
    return records


@pytest.mark.long
async def test_an_export_of_notion(space: Space, client: Client, tmp_path: Path) -> None:
    told = _converted("notion", _notion(tmp_path / "export.zip"), tmp_path / "bundle.zip")
    for lost in (
        "images missing from the export (1)",
        "links to pages missing from the export become text (1)",
        "View: a view of Goods, which has its rows (1)",
        "Goods: pages without a row become pages below it (1)",
    ):
        assert lost in told
    await _imported(space, _bytes(tmp_path / "bundle.zip"))
    items = (await client.get(f"/v1/items?workspaceId={space.id}")).json()["data"]["items"]
    found = {one["title"]: one for one in items}
    assert {title: one["kind"] for title, one in found.items()} == {
        "Plan": "page",
        "Below": "page",
        "Goods": "database",
        "New": "page",
        "Makers": "database",
    }
    assert found["Below"]["parentItemId"] == found["Plan"]["id"]
    _look_at_plan(await _blocks(client, found["Plan"]["targetId"]), found)
    records = await _records(client, space, "Goods")
    assert len(records) == 12
    tea = next(one for one in records if one["data"]["price"] == 3)
    assert tea["title"] == "Tea"
    assert (tea["data"]["due"], tea["data"]["tags"]) == ("2026-01-03", "hot")
    (ann,) = await _records(client, space, "Makers")
    assert [one["id"] for one in tea["related"]["maker"]] == [ann["id"]]
    (words,) = await _blocks(client, tea["contentSurfaceId"])
    assert words["content"]["text"] == [{"text": "Hot."}]


async def _blocks(client: Client, surface_id: str) -> list[dict[str, Any]]:
    answer = await client.get(f"/v1/surfaces/{surface_id}")
    blocks: list[dict[str, Any]] = answer.json()["data"]["blocks"]
    return blocks


def _look_at_plan(blocks: list[dict[str, Any]], items: dict[str, Any]) -> None:
    """Check the blocks of the page, and that they lead to the items of these titles."""
    assert [
        (one["kind"], [each["kind"] for each in one.get("children", [])]) for one in blocks
    ] == [
        ("paragraph", []),
        ("item_link", []),
        ("to_do", ["bulleted_list_item", "code"]),
        ("to_do", []),
        ("callout", ["bulleted_list_item"]),
        ("toggle", ["paragraph"]),
        ("equation", []),
        ("table", []),
        ("image", []),
        ("database_view", []),
        ("paragraph", []),
    ]
    assert blocks[0]["content"]["text"][-2]["mention"] == {"itemId": items["Below"]["id"]}
    assert blocks[1]["content"] == {"itemId": items["Below"]["id"]}
    assert blocks[4]["content"]["icon"] == "💡"
    assert blocks[9]["content"] == {"databaseId": items["Goods"]["targetId"]}


async def test_a_base(space: Space, client: Client, tmp_path: Path) -> None:
    told = _converted("airtable", _base(tmp_path / "base"), tmp_path / "bundle.zip")
    assert "formulas become their last values (1)" in told
    assert "views: a schema only has their names (1)" in told
    assert "buttons are left out (1)" in told
    assert "links in Maker to missing records (1)" in told
    await _imported(space, _bytes(tmp_path / "bundle.zip"))
    (tea,) = await _records(client, space, "Goods")
    (ann,) = await _records(client, space, "Makers")
    assert tea["title"] == "Tea"
    assert tea["data"] == {
        "title": "Tea",
        "price": 3.5,
        "done": True,
        "tags": ["hot", "dry"],
        "twice": 7,
        "since": "2026-01-05",
    }
    assert [one["id"] for one in tea["related"]["maker"]] == [ann["id"]]
    assert [one["id"] for one in ann["related"]["goods"]] == [tea["id"]]


@pytest.mark.parametrize("product", ["notion", "airtable"])
def test_an_invalid_export_is_reported(product: str, tmp_path: Path) -> None:
    source = tmp_path / "source.zip"
    with zipfile.ZipFile(source, "w"):
        pass
    bundle = tmp_path / "bundle.zip"
    done = CliRunner().invoke(app, ["convert", product, str(source), str(bundle)])
    assert done.exit_code == 1
    assert f"is not a valid {product}" in " ".join(done.output.split())
    assert not bundle.exists()


TIMES = [
    ("March 3, 2026 9:00 AM (GMT+1)", "2026-03-03T08:00:00.000Z"),
    ("March 3, 2026 9:00 AM (GMT-5)", "2026-03-03T14:00:00.000Z"),
    ("March 3, 2026 9:00 AM (GMT+5:30)", "2026-03-03T03:30:00.000Z"),
    ("@March 3, 2026 9:00 AM (UTC)", "2026-03-03T09:00:00.000Z"),
    ("July 3, 2026 9:00 PM (CEST)", "2026-07-03T19:00:00.000Z"),
    ("2026/03/03 21:00 (EST)", "2026-03-04T02:00:00.000Z"),
    ("March 3, 2026 9:00 AM (GMT+1) → March 4, 2026 9:00 AM (GMT+1)", "2026-03-03T08:00:00.000Z"),
    ("March 3, 2026 9:00 AM → 10:00 AM (GMT+1)", "2026-03-03T08:00:00.000Z"),
    ("March 3, 2026", "2026-03-03T00:00:00.000Z"),
]


def _times(tmp_path: Path, *written: str, zone: str | None = None) -> tuple[list[Any], str]:
    """The values of a column of times in an export of Notion, and the report."""
    with zipfile.ZipFile(tmp_path / "export.zip", "w") as archive:
        table = io.StringIO()
        csv.writer(table).writerows([("Name", "At"), *(("A", each) for each in written)])
        archive.writestr(f"Times {GOODS}.csv", table.getvalue())
    return _values("notion", tmp_path / "export.zip", tmp_path / "bundle.zip", zone)


def _values(product: str, source: Path, bundle: Path, zone: str | None) -> tuple[list[Any], str]:
    chosen = [] if zone is None else ["--timezone", zone]
    done = CliRunner().invoke(app, ["convert", product, str(source), str(bundle), *chosen])
    assert done.exit_code == 0, done.output
    with zipfile.ZipFile(bundle) as archive:
        (name,) = (name for name in archive.namelist() if "/records/" in name)
        rows = [json.loads(line) for line in archive.read(name).splitlines()]
    records = [row for row in rows if row["type"] == "record"]
    return [row["data"].get("at") for row in records], " ".join(done.output.split())


def test_times_of_notion_keep_the_zone_beside_them(tmp_path: Path) -> None:
    found, told = _times(tmp_path, *(written for written, _ in TIMES))
    assert found == [moment for _, moment in TIMES]
    assert "time zone" not in told
    assert "end dates of date ranges (2)" in told


@pytest.mark.parametrize(
    ("zone", "moment"),
    [(None, "2026-07-03T09:00:00.000Z"), ("Europe/Berlin", "2026-07-03T07:00:00.000Z")],
)
def test_times_without_a_zone_are_read_in_a_reported_one(
    tmp_path: Path, zone: str | None, moment: str
) -> None:
    # That all of them are alike makes them no choices.
    found, told = _times(tmp_path, *["July 3, 2026 9:00 AM"] * 30, zone=zone)
    assert found == [moment] * 30
    assert ("Times: times without a time zone, read as UTC" in told) is (zone is None)


def test_a_zone_that_is_not_known_is_reported(tmp_path: Path) -> None:
    written = ["July 3, 2026 9:00 AM (XYZ)"] * 4
    found, told = _times(tmp_path, *written)
    assert found == written
    assert "Times: times with an unknown time zone, such as (XYZ) (4)" in told


def test_a_zone_that_does_not_exist_is_refused(tmp_path: Path) -> None:
    source, bundle = _notion(tmp_path / "export.zip"), tmp_path / "bundle.zip"
    chosen = ["convert", "notion", str(source), str(bundle), "--timezone", "Mars/Base"]
    done = CliRunner().invoke(app, chosen)
    assert done.exit_code == 2
    assert "Mars/Base is not an IANA time zone" in done.output
    assert not bundle.exists()


@pytest.mark.parametrize(
    ("options", "zone", "written", "moment", "told"),
    [
        ({}, None, "7/3/2026 9:00am", "2026-07-03T09:00:00.000Z", True),
        ({"timeZone": "client"}, None, "7/3/2026 9:00am", "2026-07-03T09:00:00.000Z", True),
        ({"timeZone": "utc"}, None, "7/3/2026 9:00am", "2026-07-03T09:00:00.000Z", False),
        ({"timeZone": "Europe/Berlin"}, None, "7/3/2026 09:00", "2026-07-03T07:00:00.000Z", False),
        ({}, "Europe/Berlin", "July 3, 2026 9:00am", "2026-07-03T07:00:00.000Z", False),
        ({}, None, "7/3/2026 9:00am CEST", "2026-07-03T07:00:00.000Z", False),
        ({}, None, "2026-07-03 9:00pm (GMT+2)", "2026-07-03T19:00:00.000Z", False),
        (
            {"dateFormat": {"name": "european"}},
            None,
            "3/7/2026 9:00am -05:00",
            "2026-07-03T14:00:00.000Z",
            False,
        ),
        ({}, None, "7/3/2026 9:00am (XYZ)", None, True),
    ],
)
def test_times_of_airtable_are_meant_in_their_zone(
    tmp_path: Path,
    options: dict[str, Any],
    zone: str | None,
    written: str,
    moment: str | None,
    told: bool,
) -> None:
    fields = [
        {"id": "f1", "name": "Name", "type": "singleLineText"},
        {"id": "f2", "name": "At", "type": "dateTime", "options": options},
    ]
    table = {"id": "t1", "name": "Times", "primaryFieldId": "f1", "fields": fields}
    source = tmp_path / "base"
    source.mkdir()
    (source / "schema.json").write_text(json.dumps({"tables": [table]}))
    (source / "Times.csv").write_text(f'Name,At\nA,"{written}"\n')
    found, report = _values("airtable", source, tmp_path / "bundle.zip", zone)
    assert found == [moment]
    assert ("time zone" in report) is told


def test_a_table_with_an_open_quotation_mark_is_reported(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "export.zip", "w") as archive:
        archive.writestr(f"Times {GOODS}.csv", 'Name,At\nA,"5 inch\nB,1\n')
    chosen = ["convert", "notion", str(tmp_path / "export.zip"), str(tmp_path / "bundle.zip")]
    done = CliRunner().invoke(app, chosen)
    assert done.exit_code == 1
    assert "in line 2 is not closed" in " ".join(done.output.split())

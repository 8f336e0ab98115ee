"""Tables of the clipboard, as spreadsheets write them: each is read right, pasted once, or told."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.support.browser import Page
from tests.support.grid import CONTROL, SHIFT, Table, table_of
from tests.support.person import Json
from tests.support.server import Server
from tests.support.spaces import Space

pytestmark = [pytest.mark.takes(seconds=25), pytest.mark.long]

TABLE: Json = json.loads((Path(__file__).parent / "clipboard.json").read_text(encoding="utf-8"))
"""`shapes` of the clipboard with their cells; `numbers` and `days`: a text, a language, a value;
`exact`: a text with the number of a spreadsheet; `moments`: a day, a time, a zone."""
EXCEL = (
    '<html xmlns:x="urn:schemas-microsoft-com:office:excel"><head><style>td {{color:red}}</style>'
    "</head><body><table>{}</table></body></html>"
)


async def test_shapes_of_the_clipboard(page: Page, server: Server) -> None:
    await page.open(f"{server.url}/sign-in")
    shapes = TABLE["shapes"]
    assert len({one["name"] for one in shapes}) == len(shapes) >= 40
    parsed = await page.evaluate(
        "import('/pages/grid/clipboard.js').then(({ parse }) =>"
        f" {json.dumps([one['clipboard'] for one in shapes])}.map((one) =>"
        " parse(one).map((row) => row.map((cell) => cell.text))))"
    )
    for shape, cells in zip(shapes, parsed, strict=True):
        assert cells == shape["cells"], shape["name"]


async def test_copied_tables_are_read_again(page: Page, server: Server) -> None:
    await page.open(f"{server.url}/sign-in")
    texts = [
        "plain",
        "",
        'say "hi"',
        "one\ntwo",
        "a\tb",
        "=1+1",
        "-2",
        "+3",
        "@x",
        "a, b; c",
        "<b>&",
        "  x",
    ]
    rows = [[{"text": text, "isText": True} for text in texts], [{"text": "-2"} for _ in texts]]
    found = await page.evaluate(
        "import('/pages/grid/clipboard.js').then(({ parseText, parseHtml, written }) => {"
        f" const {{ text, html }} = written({json.dumps(rows)});"
        " const plain = (rows) => rows.map((row) => row.map((cell) => cell.text));"
        " return { text, plain: plain(parseText(text)), html: plain(parseHtml(html)) }; })"
    )
    assert found["plain"] == [texts, ["-2"] * len(texts)]
    # White space at the beginning is none in HTML.
    assert found["html"] == [
        [one.replace("\t", " ").lstrip() for one in texts],
        ["-2"] * len(texts),
    ]
    assert "\t'=1+1\t'-2\t'+3\t'@x\t" in found["text"]


async def test_numbers_and_days_are_read_in_the_way_of_the_reader(
    page: Page, server: Server, space: Space
) -> None:
    table = await table_of(page, server, space, [], [])
    await table.open()
    for name, reader in (("numbers", "readNumber"), ("days", "readDay")):
        asked = json.dumps([one[:2] for one in TABLE[name]])
        found = await page.evaluate(
            f"import('/pages/grid/values.js').then((values) => {asked}.map((one) =>"
            f" values.{reader}(...one)))"
        )
        assert [[*one[:2], value] for one, value in zip(TABLE[name], found, strict=True)] == TABLE[
            name
        ]


async def test_exact_values_and_clocks_that_change(
    page: Page, server: Server, space: Space
) -> None:
    table = await table_of(page, server, space, [], [])
    await table.open()
    found = await page.evaluate(
        "import('/pages/grid/values.js').then((values) => ["
        f"{json.dumps(TABLE['exact'])}.map(([, kind, text, exact]) => values.readExact("
        "{ kind, options: [], settings: { timezone: 'UTC' } }, { text, exact }, null, 'en-US')),"
        f"{json.dumps(TABLE['moments'])}.map((one) => values.momentOf(...one.slice(0, 3)))])"
    )
    assert found == [[one[-1] for one in TABLE[name]] for name in ("exact", "moments")]


FIELDS: list[Json] = [
    {"label": "Price", "kind": "number", "settings": {"max": 100_000}},
    {"label": "State", "kind": "select", "options": [{"name": "Open"}, {"name": "Shut"}]},
    {"label": "Due", "kind": "date"},
    {"label": "Sold", "kind": "checkbox"},
]
ROWS: list[Json] = [{"title": title, "price": 1} for title in ("Tea", "Milk", "Rice")]


@pytest.fixture
async def table(page: Page, server: Server, space: Space) -> Table:
    return await table_of(page, server, space, FIELDS, ROWS)


def batches(page: Page) -> int:
    return sum(one.endswith("/records/batch") for one in page.requests)


async def test_a_table_of_excel_is_pasted_as_one_batch_and_undone(table: Table) -> None:
    await table.open()
    await table.choose(0, "price")
    rows = [("1,200.50", "Open", "01/31/2026", "TRUE"), ("7", "shut", "2/1/26", "FALSE")]
    shown = [*rows, *rows]
    cells = "".join(f"<tr>{''.join(f'<td>{text}</td>' for text in row)}</tr>" for row in shown)
    await table.clip(html=EXCEL.format(cells), text="ignored")
    await table.says("Pasted 4 records")
    assert batches(table.page) == 2, "one for the records, one for the new row"
    record = await table.stored(0)
    assert (
        record["data"] | {"price": 1200.5, "state": "open", "due": "2026-01-31", "sold": True}
        == record["data"]
    )
    await table.holds(1, "due", "2026-02-01")
    listed = await table.person.call("GET", f"{table.path}/records")
    assert len(listed["records"]) == 4
    await table.key("z", CONTROL)
    await table.says("Undone: Paste")
    listed = await table.person.call("GET", f"{table.path}/records")
    assert len(listed["records"]) == 3
    await table.holds(0, "price", 1)
    assert (await table.stored(0))["data"].get("state") is None
    await table.key("y", CONTROL)
    await table.says("Repeated: Paste")
    await table.holds(0, "price", 1200.5)
    listed = await table.person.call("GET", f"{table.path}/records")
    assert len(listed["records"]) == 4


async def test_values_that_do_not_fit_are_shown_before_and_the_rest_is_pasted(table: Table) -> None:
    await table.open()
    await table.choose(0, "price")
    await table.clip(text="2\tOpen\ncheap\tNever\n200000\tShut")
    await table.page.until("document.querySelector('#paste') !== null")
    asked = await table.page.text("#paste")
    assert "2 values don\u2019t fit" in asked
    assert "“Never” is not an option of State." in asked
    await table.page.click("#paste .primary")
    # The API refuses one more, which stays in its cell with the reason.
    await table.page.until("document.querySelectorAll('.cell.refused').length === 1")
    await table.holds(0, "price", 2)
    await table.holds(2, "state", "shut")
    await table.shows(2, "price", "200000")
    assert (await table.stored(2))["data"]["price"] == 1
    table.page.problems.clear()  # the browser notes each answer of 400
    await table.page.evaluate("document.querySelector('.table-foot .said').textContent")
    await table.choose(2, "price")
    await table.page.click(".cell-fault .link")


async def test_a_range_is_copied_filled_down_and_cleared(table: Table) -> None:
    await table.open()
    await table.choose(0, "price")
    await table.keys("5", "Enter")
    await table.holds(0, "price", 5)
    await table.choose(0, "title")
    for _ in range(2):
        await table.key("ArrowDown", SHIFT)
    await table.key("ArrowRight", SHIFT)
    assert (await table.copied())["text"] == "Tea\t5\nMilk\t1\nRice\t1"
    await table.choose(0, "price")
    for _ in range(2):
        await table.key("ArrowDown", SHIFT)
    await table.key("d", CONTROL)
    await table.holds(2, "price", 5)
    await table.key("Delete")
    await table.holds(0, "price", None)
    await table.key("z", CONTROL)
    await table.holds(0, "price", 5)
    await table.key("z", CONTROL)
    await table.holds(2, "price", 1)
    await table.holds(0, "price", 5)


async def test_a_single_cell_takes_what_is_above_it(table: Table) -> None:
    await table.open()
    await table.choose(0, "title")
    above = (await table.stored(0))["title"]
    await table.key("d", CONTROL)
    await table.choose(1, "title")
    await table.key("d", CONTROL)
    await table.shows(1, "title", above)
    await table.key("z", CONTROL)
    await table.says("Undone: Fill down")


async def test_copies_of_the_table_itself_keep_their_values(table: Table) -> None:
    await table.open()
    await table.choose(0, "due")
    await table.clip(text="2026-03-01")
    await table.holds(0, "due", "2026-03-01")
    parts: Any = await table.copied()
    await table.choose(2, "due")
    await table.clip(**parts)
    await table.holds(2, "due", "2026-03-01")

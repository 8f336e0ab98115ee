"""The filter builder in a real browser: any filter that the API takes is shown, and stays."""

import json
from datetime import UTC, datetime
from random import Random
from typing import Any
from uuid import UUID

import pytest

from models.core.filters.grammar import OPERATORS, Op, ValueForm
from models.core.filters.operands import PERIODS, Unit
from models.data.fields.queries import load_schema
from models.data.fields.rules.fields import FieldSpecs
from models.data.fields.rules.values import value_form
from models.data.records.rules.query.filters import read_filter
from tests.pages.daily_acts.view_acts import opened
from tests.support.browser import Page
from tests.support.person import Json, Person
from tests.support.server import Server
from tests.support.spaces import Space

pytestmark = [pytest.mark.takes(seconds=40), pytest.mark.long]

OPTIONS = [{"name": "Red"}, {"name": "Blue"}]
FIELDS: list[Json] = [
    {"label": "Text", "kind": "text"},
    {"label": "Number", "kind": "number"},
    {"label": "Rating", "kind": "rating"},
    {"label": "Check", "kind": "checkbox"},
    {"label": "Day", "kind": "date"},
    {"label": "Moment", "kind": "datetime"},
    {"label": "Time", "kind": "time"},
    {"label": "One", "kind": "select", "options": OPTIONS},
    {"label": "Many", "kind": "multi_select", "options": OPTIONS},
    {"label": "Person", "kind": "person"},
    {"label": "File", "kind": "file"},
    {"label": "Json", "kind": "json"},
    {"label": "Made", "kind": "created_at"},
    {"label": "Maker", "kind": "created_by"},
]
MOMENTS = ["2026-10-25T01:30:00Z", "2026-11-03T10:00:00.250+05:30"]
MOUNT = """(async () => {
  const { FilterBuilder, countOf } = await import('/pages/views/filters.js');
  const problems = window.faults = [];
  window.count = countOf;
  window.filter = () => JSON.parse(JSON.stringify(window.state.filter));
  window.show = async (filter) => {
    window.mounted?.unmount();
    document.getElementById('view-body').innerHTML = '<div id="mounted"></div>';
    const state = window.state = Vue.reactive({ filter });
    window.changes = [];
    window.mounted = Vue.createApp({ render: () => Vue.h(FilterBuilder, {
      filter: state.filter,
      onChange: (next) => {
        const plain = next && JSON.parse(JSON.stringify(next));
        window.changes.push(plain);
        state.filter = plain;
      } }) });
    window.mounted.config.errorHandler = (error) => problems.push(String(error.stack));
    window.mounted.mount('#mounted');
    await Vue.nextTick();
  };
  // Every control is touched as if its value was entered once more.
  window.touch = async () => {
    for (const one of document.querySelectorAll('#mounted :is(select, input)')) {
      if (one.value === '' && one.tagName === 'SELECT') continue;
      if (one.tagName === 'SELECT' && one.classList.contains('filter-field')) continue;
      one.dispatchEvent(new Event('input', { bubbles: true }));
      one.dispatchEvent(new Event('change', { bubbles: true }));
      await Vue.nextTick();
    }
  };
  // A condition is added to the outermost group, and removed again.
  window.addAndRemove = async () => {
    const buttons = () => [...document.querySelectorAll('#mounted button')];
    const add = buttons().filter((one) => one.innerText === 'Add condition').at(-1);
    if (add.disabled) return false;
    add.click();
    await Vue.nextTick();
    const row = [...document.querySelectorAll('#mounted .filter-group.root > .filter-row')].at(-1);
    row.querySelector('button[aria-label^="Remove condition"]').click();
    await Vue.nextTick();
    return true;
  };
  return true;
})()"""


class Maker:
    """Filters of all operators and forms of operands, nested at random."""

    def __init__(self, seed: int, fields: FieldSpecs, user_id: UUID) -> None:
        self._random = Random(seed)  # noqa: S311  # the same filters in every run
        self._fields = list(fields.values())
        self._user_id = str(user_id)

    def tree(self, depth: int = 0) -> Json:
        shape = self._random.choice(["leaf", "leaf", "leaf", "and", "or", "not"])
        if depth > 3 or shape == "leaf":
            return self._leaf()
        if shape == "not":
            return {"not": self.tree(depth + 1)}
        return {shape: [self.tree(depth + 1) for _ in range(self._random.randint(0, 3))]}

    def _leaf(self) -> Json:
        spec = self._random.choice(self._fields)
        form = value_form(spec)
        op = self._random.choice(OPERATORS[form])
        leaf: Json = {"field": spec.key, "op": op.value}
        if op in {Op.IS_EMPTY, Op.IS_NOT_EMPTY}:
            return leaf | self._random.choice([{}, {"value": True}, {"value": None}])
        if form in {ValueForm.DAY, ValueForm.MOMENT} and self._random.random() < 0.2:
            leaf["timezone"] = "Europe/Berlin"
        return leaf | {"value": self._operand(op, form)}

    def _operand(self, op: Op, form: ValueForm) -> Any:
        match op:
            case Op.IN | Op.NOT_IN | Op.HAS_ANY | Op.HAS_ALL | Op.HAS_NONE:
                if form is ValueForm.MOMENT:
                    return self._random.sample(MOMENTS, self._random.randint(0, 2))
                return [self._value(form) for _ in range(self._random.randint(0, 3))]
            case Op.BETWEEN:
                return sorted(self._value(form, whole=True) for _ in range(2))
            case Op.WITHIN:
                units = [*Unit] if form is ValueForm.MOMENT else [Unit.DAY, Unit.MONTH]
                return {
                    "unit": self._random.choice(units).value,
                    "count": self._random.randint(1, 40),
                    "direction": self._random.choice(["past", "future"]),
                }
            case Op.RELATIVE:
                return self._random.choice(PERIODS)
        return self._value(form)

    def _value(self, form: ValueForm, *, whole: bool = False) -> Any:
        pick = self._random.choice
        match form:
            case ValueForm.NUMBER:
                return pick([0, -1, 2.5, 1e21, 1e-7, 10**15, 3])
            case ValueForm.BOOLEAN:
                return pick([True, False])
            case ValueForm.DAY:
                return pick(["2026-11-03", "2027-02-28", "0999-01-01"])
            case ValueForm.MOMENT:
                days = ["2026-11-03", "2027-02-28"]
                return pick(days if whole else [*days, *MOMENTS])
            case ValueForm.TIME:
                return pick(["09:30", "00:00", "23:59:58"])
            case ValueForm.OPTION | ValueForm.OPTIONS:
                return pick(["red", "blue"])
            case ValueForm.USER | ValueForm.USERS:
                return pick([self._user_id, "0190d4b2-0000-7000-8000-000000000001"])
            case ValueForm.FILES:
                return "0190d4b2-0000-7000-8000-000000000002"
        return pick(["", "a", " b ", '<img src=x onerror="alert(1)">', "10", "ü\nn"])


@pytest.fixture
async def built(page: Page, server: Server, space: Space) -> FieldSpecs:
    """The fields of a database, on whose page filters can be shown."""
    person = Person(server, space)
    body = {"label": "All", "fields": FIELDS}
    made = await person.call("POST", f"{space.path}/databases", body)
    await opened(page, person, made["id"])
    assert await page.evaluate(MOUNT)
    async with space.database.reading() as work:
        schema = await load_schema(work, space.id, UUID(made["id"]))
    return schema.fields


async def test_every_filter_of_the_api_comes_back_as_it_was(
    page: Page, space: Space, built: FieldSpecs
) -> None:
    operators: set[tuple[str, str]] = set()
    kept = drawn = 0
    for seed in range(150):
        tree = Maker(seed, built, space.user_id).tree()
        read_filter(tree, built, datetime.now(UTC))
        await page.evaluate(f"window.show({json.dumps(tree)})")
        rows = "document.querySelectorAll('#mounted .filter-row')"
        shown = await page.evaluate(
            f"[{rows}.length, document.querySelectorAll('.filter-kept').length,"
            " window.count(window.state.filter)]"
        )
        assert shown[0] == shown[2], f"{seed}: every condition is shown: {tree}"
        kept, drawn = kept + shown[1], drawn + shown[0] - shown[1]
        operators |= {(one["field"], one["op"]) for one in leaves(tree)}
        await page.evaluate("window.touch()")
        assert await page.evaluate("window.changes") == [], f"{seed}: {tree}"
        whole = tree if set(tree) & {"and", "or"} or nested(tree) else {"and": [tree]}
        if parts_of(whole) and await page.evaluate("window.addAndRemove()"):
            assert await page.evaluate("window.filter()") == whole, f"{seed}"
        assert await page.evaluate("window.faults") == []
    assert len(operators) > 90
    assert drawn > 5 * kept, "few conditions are beyond the builder"


def leaves(tree: Json) -> list[Json]:
    if "field" in tree:
        return [tree]
    (inner,) = tree.values()
    return [
        leaf for part in (inner if isinstance(inner, list) else [inner]) for leaf in leaves(part)
    ]


def nested(tree: Json) -> bool:
    """True for a negation of a group, which is a group of the builder."""
    return isinstance(tree.get("not"), dict) and bool(set(tree["not"]) & {"and", "or"})


def parts_of(tree: Json) -> list[Json]:
    inner = tree.get("not", tree)
    parts: list[Json] = next(iter(inner.values()))
    return parts


async def test_every_operator_of_every_field_can_be_entered(page: Page, built: FieldSpecs) -> None:
    """From a fresh condition each operator leads to one that the API takes, once it is complete."""
    for spec in built.values():
        for op in OPERATORS[value_form(spec)]:
            first = {"field": spec.key, "op": "is_empty"}
            fresh = {"and": [first]}
            await page.evaluate(f"window.show({json.dumps(fresh)})")
            await page.evaluate(
                "(async () => { const one = document.querySelector('.filter-op');"
                f" one.value = {json.dumps(op.value)};"
                " one.dispatchEvent(new Event('change', { bubbles: true }));"
                " await Vue.nextTick(); })()"
            )
            if value_form(spec) is ValueForm.FILES and "empty" not in op.value:
                continue
            (condition,) = (await page.evaluate("window.filter()"))["and"]
            assert condition["op"] == op.value
            assert await page.evaluate("document.querySelector('.filter-kept')") is None
    assert await page.evaluate("window.faults") == []

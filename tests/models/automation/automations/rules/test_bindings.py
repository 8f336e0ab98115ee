"""Bindings: which objects are bindings, what they give, what they read."""

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from models.automation.automations.rules.language.bindings import (
    BindingContext,
    BindingError,
    holds_binding,
    is_binding,
    marked_names,
    problems,
    resolve,
    revealed,
    without_literals,
)
from models.automation.automations.rules.language.static_reads import references, secret_names

CONTEXT = BindingContext(
    trigger={"name": "Ada", "n": 2, "list": [{"x": 1}], "null": None},
    nodes={"q": {"records": [{"id": "r1"}]}, "a.b": {"v": 5}},
    run={"id": "run-1", "source": "manual"},
    item={"sku": "s"},
    index=3,
    vars={"rate": 2, "deep": {"er": [7]}},
)


def bind(kind: str, value: Any) -> dict[str, Any]:
    return {"type": kind, "value": value}


@pytest.mark.parametrize(
    ("value", "result"),
    [
        (bind("literal", {"any": [1]}), {"any": [1]}),
        (bind("literal", bind("trigger", "name")), bind("trigger", "name")),
        (bind("trigger", "name"), "Ada"),
        (bind("trigger", "$.list[0].x"), 1),
        (bind("trigger", "nowhere.at.all"), None),
        (bind("trigger", ""), CONTEXT.trigger),
        (bind("trigger", "__class__.__init__.__globals__"), None),
        (bind("node", "q.records[0].id"), "r1"),
        (bind("node", "$.q.records[*].id"), ["r1"]),
        (bind("node", "['a.b'].v"), 5),
        (bind("node", "gone.x"), None),
        (bind("node", "q"), CONTEXT.nodes["q"]),
        (bind("run", "id"), "run-1"),
        (bind("item", "sku"), "s"),
        (bind("variable", "rate"), 2),
        (bind("variable", "deep.er[0]"), 7),
        (bind("variable", "gone"), None),
        (bind("item", "$index"), 3),
        (bind("expression", "trigger.n * vars.rate + index"), 7),
        (bind("template", "plain"), "plain"),
        (bind("template", "Hi {{ trigger.name }}{{trigger.n}}!"), "Hi Ada2!"),
        (bind("template", "{{ null }}{{ true }}{{ {'a': {'b': 'ü'}} }}"), 'true{"a": {"b": "ü"}}'),
        (bind("template", "{{ '}}' }}"), "}}"),
        (bind("template", ""), ""),
        (
            {"deep": [{"er": bind("trigger", "n")}], "kept": "{{ 1 }}"},
            {"deep": [{"er": 2}], "kept": "{{ 1 }}"},
        ),
    ],
)
def test_a_binding_gives_its_value(value: Any, result: object) -> None:
    assert resolve(value, CONTEXT) == result


@pytest.mark.parametrize(
    "value",
    [
        {"type": "bearer", "value": "x"},
        {"type": "literal"},
        {"type": "literal", "value": 1, "more": 2},
        {"type": ["literal"], "value": 1},
        {"type": {}, "value": 1},
        ["literal", 1],
        "{{ trigger.name }}",
        None,
    ],
)
def test_objects_that_are_no_bindings_are_plain_data(value: Any) -> None:
    assert not is_binding(value)
    assert resolve(value, CONTEXT) == value


@pytest.mark.parametrize(
    "value",
    [
        bind("secret", "KEY"),
        bind("variable", 1),
        bind("trigger", 5),
        bind("trigger", None),
        bind("trigger", "a" * 10_000),
        bind("node", ""),
        bind("node", "[0].x"),
        bind("expression", "1 +"),
        bind("expression", "trigger.gone"),
        bind("template", "{{ 1"),
        bind("template", "{{ }}"),
        bind("template", "{{ 'a }}"),
        bind("template", "{{ 1 } }"),
        bind("template", "{{1}}" * 101),
        bind("template", "x" * 20_001),
    ],
)
def test_a_binding_that_cannot_be_read_is_a_binding_error(value: object) -> None:
    with pytest.raises(BindingError) as refusal:
        resolve({"a": [value]}, CONTEXT)
    assert refusal.value.code == "binding_error"


@pytest.mark.parametrize(
    ("value", "path"),
    [
        ({"url": bind("secret", 1)}, "url"),
        ({"a": [{"b": bind("variable", "")}]}, "a.0.b"),
        ({"a": bind("run", "password")}, "a"),
        ({"a": bind("expression", "1 +")}, "a"),
        ({"a": bind("node", "..")}, "a"),
        ({"a": bind("template", "{{")}, "a"),
        (bind("trigger", 1), ""),
    ],
)
def test_problems_are_found_before_a_run(value: object, path: str) -> None:
    ((place, message),) = problems(value)
    assert place == path
    assert message


@pytest.mark.parametrize("value", [{"a": bind("item", "$index")}, bind("run", "source"), [1, "x"]])
def test_a_binding_that_can_be_resolved_has_no_problems(value: object) -> None:
    assert list(problems(value)) == []


@pytest.mark.parametrize(
    ("value", "nodes"),
    [
        ({"a": bind("node", "q.x"), "b": [bind("node", "['p.q']")]}, {"q", "p.q"}),
        (bind("trigger", "nodes.q"), set()),
        (bind("literal", bind("node", "q.x")), set()),
        (bind("expression", "nodes.a.x || nodes.b"), {"a", "b"}),
        (bind("template", "nodes.z {{ nodes.a }} {{ nodes['b'] }}"), {"a", "b"}),
        (bind("template", "{{ size(nodes) }}"), None),
        ({"expression": "nodes.c.ok"}, {"c"}),
        ({"cases": [{"key": "x", "expression": "nodes.d == 1"}]}, {"d"}),
        (
            {
                "filter": {
                    "and": [{"field": "nodes.e.total", "op": "gt", "value": bind("node", "f")}]
                }
            },
            {"e", "f"},
        ),
        ({"filter": {"field": "price", "op": "eq", "value": 1}}, set()),
        ({"filter": {"field": "nodes", "op": "is_empty"}}, None),
        ({"a": bind("node", "q"), "b": bind("expression", "nodes[trigger.x]")}, None),
    ],
)
def test_the_nodes_a_config_reads_are_known(value: object, nodes: set[str] | None) -> None:
    assert references(value) == nodes


@pytest.mark.parametrize(
    ("value", "keys"),
    [
        (
            {"a": bind("variable", "x.y"), "b": bind("expression", "vars.z + vars['w']")},
            {"x", *"zw"},
        ),
        ({"a": bind("template", "vars.q {{ vars.p }}"), "field": "vars.f"}, {"p", "f"}),
        (bind("node", "vars.x"), set()),
        (bind("expression", "vars[trigger.key]"), None),
    ],
)
def test_the_variables_a_config_reads_are_known(value: object, keys: set[str] | None) -> None:
    assert references(value, "vars") == keys


def test_a_secret_is_a_mark_until_it_is_sent() -> None:
    config = {
        "auth": {"type": "bearer", "token": bind("secret", "KEY")},
        "x": [bind("secret", "B")],
    }
    assert secret_names(config) == {"KEY", "B"}
    marked = resolve(config, replace(CONTEXT, sends_secrets=True))
    shown = {"auth": {"type": "bearer", "token": "[secret KEY]"}, "x": ["[secret B]"]}
    assert json.loads(json.dumps(marked)) == shown
    assert set(marked_names(marked)) == {"KEY", "B"}
    sent = revealed(marked, {"KEY": "k", "B": "b"})
    assert sent == {"auth": {"type": "bearer", "token": "k"}, "x": ["b"]}
    assert revealed(shown, {"KEY": "k", "B": "b"}) == shown
    with pytest.raises(BindingError, match="Only nodes and steps"):
        resolve(config, CONTEXT)


@pytest.mark.parametrize("text", ["{{ secrets.KEY }}", "{{ secret.KEY }}", "{{ KEY }}"])
def test_no_expression_reads_secrets(text: str) -> None:
    with pytest.raises(BindingError):
        resolve(bind("template", text), replace(CONTEXT, sends_secrets=True))


def test_a_config_nested_too_deep_is_refused() -> None:
    deep: Any = 1
    for _ in range(5_000):
        deep = {"a": deep}
    for read in (
        lambda: resolve(deep, CONTEXT),
        lambda: references(deep),
        lambda: list(problems(deep)),
    ):
        with pytest.raises(BindingError, match="deeper"):
            read()


def test_a_template_cannot_grow_without_end() -> None:
    context = BindingContext(trigger="x" * 100_000, nodes={}, run={})
    with pytest.raises(BindingError, match="at most"):
        resolve(bind("template", "{{ trigger }}" * 20), context)


@pytest.mark.parametrize(
    "read",
    [
        lambda value: resolve(value, CONTEXT),
        without_literals,
        holds_binding,
        references,
        secret_names,
    ],
)
@pytest.mark.parametrize("around", [lambda value: {"a": value}, lambda value: [value]])
def test_a_config_is_nested_100_levels_deep_at_most(
    read: Callable[[Any], object], around: Callable[[Any], Any]
) -> None:
    value: Any = "x"
    for _ in range(100):
        value = around(value)
    read(value)
    with pytest.raises(BindingError, match="deeper than 100 levels"):
        read(around(value))

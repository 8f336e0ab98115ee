"""Runs on the real engine: what each node does, and how runs end."""

from tests.support.engine import Engine, by_node, graph, node


async def test_a_chain_of_quick_nodes_succeeds(engine: Engine) -> None:
    run = await engine.run(
        graph(
            node(
                "shout",
                "transform",
                output={"text": {"type": "template", "value": "{{ trigger.name }}!"}},
            ),
            node("check", "condition", expression="nodes.shout.text == 'Ada!'"),
            node("yes", "transform", output={"ok": True}),
            node("no", "transform", output={"ok": False}),
            edges=[("shout", "check"), ("check", "yes", "true"), ("check", "no", "false")],
        ),
        {"name": "Ada"},
    )
    assert run.status == "succeeded", run.error
    assert run.output == {"yes": {"ok": True}}
    nodes = by_node(run)
    assert nodes["shout"].output == {"text": "Ada!"}
    assert {name: one.status for name, one in nodes.items()} == {
        "shout": "succeeded",
        "check": "succeeded",
        "yes": "succeeded",
        "no": "skipped",
    }

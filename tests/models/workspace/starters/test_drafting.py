"""Drafts by rules: useful for common trades, in the words and the language of the description."""

import pytest

from models.workspace.starters.seeding import draft_by_rules, plan_by_rules, vocabulary
from models.workspace.starters.shapes import NodeType, StarterPlan


def databases(plan: StarterPlan) -> list[str]:
    return [node.label for node in plan.nodes if node.type is NodeType.DATABASE]


@pytest.mark.parametrize(
    ("description", "headline", "expected"),
    [
        (
            "A small bakery with clients, orders and suppliers.",
            "A workspace for your bakery",
            {"Clients", "Orders", "Suppliers", "Products", "Shifts"},
        ),
        (
            "Wir sind eine Zahnarztpraxis und verwalten Patienten und Termine.",
            "Ein Arbeitsbereich für Zahnarztpraxis",
            {"Patienten", "Termine", "Rechnungen", "Team"},
        ),
        (
            "Une boulangerie avec des commandes et des fournisseurs",
            "Un espace de travail pour boulangerie",
            {"Commandes", "Fournisseurs", "Produits", "Clients", "Plannings"},
        ),
        (
            "Una fundación con voluntarios y donaciones para los eventos",
            "Un espacio de trabajo para fundación",
            {"Voluntarios", "Donaciones", "Eventos", "Campañas", "Tareas"},
        ),
        (
            "Zxcvb qwerty asdfgh",
            "A workspace for your team",
            {"Projects", "Tasks", "Customers"},
        ),
    ],
)
def test_a_draft_speaks_as_its_description(
    description: str, headline: str, expected: set[str]
) -> None:
    plan = draft_by_rules(description, None)
    assert plan.headline == headline
    assert set(databases(plan)) == expected
    kinds = {node.type for node in plan.nodes}
    assert {NodeType.FOLDER, NodeType.PAGE, NodeType.DASHBOARD} <= kinds


def test_a_locale_says_the_language() -> None:
    assert draft_by_rules("Yoga studio in Berlin", "de-DE").headline.startswith(
        "Ein Arbeitsbereich"
    )
    assert draft_by_rules("Yoga studio in Berlin", "xx").headline.startswith("A workspace")


@pytest.mark.parametrize("trade", vocabulary()["trades"])
def test_every_trade_is_drafted_in_every_language(trade: str) -> None:
    words = vocabulary()
    for code in words["languages"]:
        stem = words["trades"][trade]["words"][code][0]
        plan = draft_by_rules(f"We are a {stem} today", code)
        assert len(databases(plan)) >= 3
        assert all(len(node.fields) >= 3 for node in plan.nodes if node.type is NodeType.DATABASE)


def test_relations_join_what_is_drafted_together() -> None:
    plan = draft_by_rules("orders of our customers", "en")
    orders = next(node for node in plan.nodes if node.ref == "orders")
    assert [(one.label, one.target) for one in orders.fields if one.target] == [
        ("Customer", "customers")
    ]


def test_an_instruction_adds_what_it_names_and_no_more() -> None:
    assert databases(plan_by_rules("Add a database for suppliers")) == ["Suppliers"]
    (page,) = plan_by_rules("Write down how we greet").nodes
    assert (page.type, page.label) == (NodeType.PAGE, "Write down how we greet")


def test_a_title_has_up_to_60_characters_of_a_description() -> None:
    (page,) = plan_by_rules("zxcvb " * 20).nodes
    assert page.label == ("zxcvb " * 20)[:60].strip()


def test_a_draft_has_six_databases_at_most_in_the_order_of_their_names() -> None:
    named = ["Suppliers", "Orders", "Shifts", "Clients", "Products", "Invoices", "Events"]
    plan = draft_by_rules(f"We have {', '.join(named)}.", "en")
    assert databases(plan) == named[:6]


def test_an_instruction_that_names_nothing_is_a_page_with_60_characters_of_it() -> None:
    text = "zxcvb " * 20
    (page,) = plan_by_rules(text).nodes
    assert (page.type, page.label) == (NodeType.PAGE, text[:60].strip())

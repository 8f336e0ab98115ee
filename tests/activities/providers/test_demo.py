"""The demo provider, asked as every adapter is."""

import json
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from activities.providers.adapter import Listing, ProblemKind, ProviderAccess, ProviderProblem
from activities.providers.demo import DemoAdapter
from models.sources.connections.providers import PROVIDERS, ProviderName
from models.sources.external_resources.rules.resources import Capability, ProviderResource

DEMO = DemoAdapter()


def access(**config: Any) -> ProviderAccess:
    return ProviderAccess(UUID(int=1), UUID(int=2), UUID(int=3), config, {})


def named(external_id: str, external_type: str = "document") -> ProviderResource:
    return ProviderResource.model_validate(
        {
            "externalType": external_type,
            "externalId": external_id,
            "name": "x",
            "surfaceKind": "generic",
            "capabilities": [],
        }
    )


async def ids(listing: Listing, **config: Any) -> list[str]:
    """What a listing gives, page by page."""
    found, cursor = list[str](), listing.cursor
    while True:
        asked = Listing(
            listing.parent_external_id,
            listing.external_type,
            listing.query,
            listing.limit,
            cursor,
        )
        page = await DEMO.browse(access(**config), asked)
        assert len(page.resources) <= listing.limit
        found += [one.external_id for one in page.resources]
        cursor = page.cursor
        if cursor is None:
            return found


async def test_pages_give_each_resource_once() -> None:
    whole = await ids(Listing())
    assert await ids(Listing(limit=2)) == whole
    assert len(set(whole)) == len(whole)
    generated = await ids(Listing("generated", limit=100), generated=1_234)
    assert (len(set(generated)), generated[-1]) == (1_234, "generated-1234")
    assert await ids(Listing(query="pri")) == ["prices"]
    assert await ids(Listing("finance", external_type="workbook")) == ["budget"]


async def test_resources_that_the_config_withholds_are_missing() -> None:
    assert "welcome" not in await ids(Listing("handbook"), vanished=["welcome"])
    for config, kind in (
        ({"vanished": ["welcome"]}, ProblemKind.GONE),
        ({"denied": ["welcome"]}, ProblemKind.DENIED),
    ):
        with pytest.raises(ProviderProblem) as raised:
            await DEMO.read(access(**config), named("welcome"))
        assert raised.value.kind is kind
    with pytest.raises(ProviderProblem) as raised:
        await DEMO.browse(access(), Listing(cursor="-1"))
    assert raised.value.kind is ProblemKind.INVALID


async def test_everything_that_can_be_read_is_read(tmp_path: Path) -> None:
    formats = {}
    for parent in (None, "handbook", "finance"):
        page = await DEMO.browse(access(), Listing(parent))
        for one in page.resources:
            if Capability.READ in one.capabilities:
                content = await DEMO.read(access(), one)
                formats[one.external_id] = content.format.value
                json.dumps(content.content)
            if Capability.IMPORT in one.capabilities and Capability.READ in one.capabilities:
                got = await DEMO.download(access(), one, tmp_path / "file", {})
                assert (tmp_path / "file").stat().st_size
                again = await DEMO.download(access(), one, tmp_path / "none", got.validators)
                assert again.unchanged
    assert {formats[one] for one in ("welcome", "travel", "prices", "rates", "logo")} == {
        "markdown",
        "html",
        "csv",
        "json",
        "link",
    }


async def test_both_kinds_of_forms_are_described() -> None:
    survey = await DEMO.form(access(), named("survey", "form"))
    kinds = [(one.label, one.kind) for one in survey.questions]
    assert [kind for _, kind in kinds] == ["text", "multi_select", "number", "long_text", None]
    feedback = await DEMO.form(access(), named("feedback", "form"))
    assert [one.kind for one in feedback.questions] == ["email", "select", "rating", None]
    with pytest.raises(ProviderProblem):
        await DEMO.form(access(), named("welcome"))


async def test_a_hostile_name_is_shown_as_text_that_says_what_it_is() -> None:
    hostile = await DEMO.describe(access(), named("hostile", "file"))
    assert hostile.name == "../../etc/gnp.exe"


def test_every_capability_is_declared() -> None:
    assert set(PROVIDERS[ProviderName.DEMO].capabilities) == set(Capability)

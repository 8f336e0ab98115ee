"""Documents that are made to be read for ever, and answers in XML that never end a tag."""

import time

import pytest

from activities.providers import documents
from activities.providers.adapter import ProviderProblem
from activities.providers.contents import MAX_TOKEN, XmlRecords
from runtime.processes.bounded_processes import BoundedProcesses


@pytest.mark.long
def test_a_document_that_is_read_for_ever_is_aborted(monkeypatch: pytest.MonkeyPatch) -> None:
    bounded = BoundedProcesses([documents.__name__], seconds=0.5)
    monkeypatch.setattr(documents, "_processes", bounded)
    with pytest.raises(documents.UnreadableDocumentError, match="too long"):
        documents.markdown_document(b"[" * 200_000)
    assert [one["kind"] for one in documents.markdown_document(b"# Yes")] == ["heading_1"]
    nested = b"<div>" * 20_000
    with pytest.raises(documents.UnreadableDocumentError):
        documents.html_document(nested)
    bounded.close()


def test_a_tag_that_does_not_end_is_aborted() -> None:
    records = XmlRecords(frozenset({"response"}), lambda *_: None)
    records.feed(b'<a b="')
    began = time.process_time()
    with pytest.raises(ProviderProblem):
        records.feed(b"x" * 20_000_000)
    assert time.process_time() - began < 5, "it was given up after a few pieces"


def test_many_small_elements_are_no_endless_tag() -> None:
    found: list[str] = []
    records = XmlRecords(frozenset({"response"}), lambda name, _: found.append(name))
    records.feed(b"<all>" + b"<response></response>" * (MAX_TOKEN // 10) + b"</all>", last=True)
    assert found.count("response") == MAX_TOKEN // 10

"""Parses a guide from Markdown: its topics, and the requests of its example, which a test sends.

The heading `#` has the name of the file, each `##` that of a topic. A topic has paragraphs, facts
(`- name: text`) and requests, in fences `http`, `http as anonymous` or `http as administrator`.
Below a request are a paragraph about it and a fence `answer`, both if need be: the status, lines
`keep path as {name}` and a part of the answer. `{{ shapes: Retry }}` is a placeholder.
"""

import json
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise, takewhile
from pathlib import Path
from typing import Any, Literal, TypeVar

Caller = Literal["key", "anonymous", "administrator"]
Facts = Sequence[tuple[str, str]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One request of an example. `{name}` in it is replaced by a value that an earlier step kept.

    `answers` is a part of the answer; `keeps` has the place in the answer of each kept value.
    """

    request: str
    body: Any = None
    says: str = ""
    headers: Mapping[str, str] = field(default_factory=dict)
    status: int = 200
    answers: Any = None
    keeps: Mapping[str, str] = field(default_factory=dict)
    by: Caller = "key"


@dataclass(frozen=True, slots=True, kw_only=True)
class Topic:
    """One page: paragraphs, facts in a line each, the components it explains, and an example."""

    name: str
    says: str
    facts: Facts = ()
    shapes: Sequence[str] = ()
    steps: Sequence[Step] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Guide:
    """A section. The steps of its topics follow each other."""

    slug: str
    says: str
    topics: Sequence[Topic]


class MalformedGuideError(ValueError):
    """A guide that cannot be read, and where."""

    retryable = False

    def __init__(self, file: str, line: int, problem: str) -> None:
        super().__init__(f"{file}, line {line}: {problem}")


_CALLERS: Mapping[str, Caller] = {
    "http": "key",
    "http as anonymous": "anonymous",
    "http as administrator": "administrator",
}
_BLOCK = re.compile(
    r"^```(?P<fence>.*)\n(?P<content>(?:(?!```).*\n)*)```$"
    r"|^(?P<level>#+) (?P<heading>.+)$"
    r"|^\{\{ (?P<place>\w+): (?P<value>.+) \}\}$"
    r"|^(?P<fact>- .+(?:\n  .+)*)$"
    r"|^(?P<prose>.+(?:\n(?!```|#|\{\{|- ).+)*)$",
    re.MULTILINE,
)
_REQUEST = re.compile(r"(?:GET|POST|PUT|PATCH|DELETE) /\S*")
_HEADER = re.compile(r"([\w-]+): (.+)")
_FACT = re.compile(r"- (.+?): (.+)")
_STATUS = re.compile(r"[1-5]\d\d")
_KEEP = re.compile(r"keep ([\w.]+) as \{(\w+)\}")

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class _Block:
    """A heading, a paragraph, a fact, a fence or a placeholder, and the line it begins on."""

    file: str
    line: int
    kind: str
    text: str

    def error(self, problem: str, below: int = 0) -> MalformedGuideError:
        return MalformedGuideError(self.file, self.line + below, problem)

    def match(self, form: re.Pattern[str], text: str, below: int = 0) -> re.Match[str]:
        if match := form.fullmatch(text):
            return match
        raise self.error(f"{text!r} is not of the form {form.pattern}", below)

    def lookup(self, computed: Mapping[str, T]) -> T:
        if self.text in computed:
            return computed[self.text]
        names = ", ".join(computed)
        raise self.error(f"there are no {self.kind} named {self.text}; known: {names}")

    def content(
        self, first: re.Pattern[str], following: re.Pattern[str]
    ) -> tuple[str, list[tuple[str, str]], Any]:
        """The first line of a fence, two parts of each that follows, and the JSON below them."""
        head, _, body = self.text.partition("\n\n")
        line, *rest = head.rstrip().split("\n")
        begin = self.match(first, line, 1)[0]
        matches = [self.match(following, text, below) for below, text in enumerate(rest, 2)]
        pairs = [(match[1], match[2]) for match in matches]
        try:
            return begin, pairs, json.loads(body) if body else None
        except json.JSONDecodeError as error:
            problem = f"this is not valid JSON: {error.msg}"
            raise self.error(problem, len(rest) + 2 + error.lineno) from error


def read_guide(
    path: Path, facts: Mapping[str, Facts], topics: Mapping[str, Sequence[Topic]]
) -> Guide:
    """The guide in a file. Its placeholders name these `facts` and `topics`.

    Raises MalformedGuideError.
    """
    blocks = list(_blocks(path))
    title = blocks[0] if blocks else _Block(path.name, 1, "", "")
    if (title.kind, title.text) != ("#", path.stem):
        raise title.error(f"a guide begins with the heading # {path.stem}")
    (_, *lead), *sections = _groups(blocks, ("#", "##"))
    _allow(lead, "prose", "topics")
    computed = [topic for block in lead if block.kind == "topics" for topic in block.lookup(topics)]
    names = {topic.name for topic in computed}
    examples: dict[str, Sequence[Step]] = {}
    own_topics: dict[str, Topic] = {}
    for heading, *below in sections:
        name = heading.text
        if heading.kind != "##" or name in examples or name in own_topics:
            raise heading.error("a topic has a heading ## and a name of its own")
        if name in names:
            examples[name] = _steps(below)
        else:
            own_topics[name] = _topic(heading, below, facts)
    all_topics = [replace(topic, steps=examples.get(topic.name, ())) for topic in computed]
    all_topics += own_topics.values()
    return Guide(slug=path.stem, says=_paragraphs(lead), topics=all_topics)


def _blocks(path: Path) -> Iterator[_Block]:
    text = path.read_text("utf-8")
    for match in _BLOCK.finditer(text):
        group = match.lastgroup or ""
        line = text.count("\n", 0, match.start()) + 1
        kind = match["fence"] or match["level"] or match["place"] or group
        content = match[group] if group == "content" else " ".join(match[group].split())
        block = _Block(path.name, line, kind, content)
        if group == "prose" and content.startswith(("```", "{{")):
            raise block.error("this fence or placeholder has no end")
        yield block


def _groups(blocks: Sequence[_Block], kinds: Collection[str]) -> list[list[_Block]]:
    """The blocks, divided before each of some kinds."""
    _allow(blocks[:1], *kinds)
    starts = [index for index, block in enumerate(blocks) if block.kind in kinds]
    return [list(blocks[start:end]) for start, end in pairwise([*starts, len(blocks)])]


def _allow(blocks: Sequence[_Block], *kinds: str) -> None:
    for block in blocks:
        if block.kind not in kinds:
            raise block.error(f"{block.kind} does not belong here, but {', '.join(kinds)}")


def _paragraphs(blocks: Sequence[_Block]) -> str:
    return "\n\n".join(block.text for block in blocks if block.kind == "prose")


def _topic(heading: _Block, blocks: Sequence[_Block], computed: Mapping[str, Facts]) -> Topic:
    above = list(takewhile(lambda block: block.kind not in _CALLERS, blocks))
    _allow(above, "prose", "fact", "facts", "shapes")
    says = _paragraphs(above)
    if not says:
        raise heading.error("a topic says what it is about")
    facts: list[tuple[str, str]] = []
    shapes: list[str] = []
    for block in above:
        if block.kind == "fact":
            match = block.match(_FACT, block.text)
            facts.append((match[1], match[2]))
        elif block.kind == "facts":
            facts += block.lookup(computed)
        elif block.kind == "shapes":
            shapes += block.text.split(", ")
    return Topic(
        name=heading.text,
        says=says,
        facts=facts,
        shapes=shapes,
        steps=_steps(blocks[len(above) :]),
    )


def _steps(blocks: Sequence[_Block]) -> list[Step]:
    return [_step(*group) for group in _groups(blocks, _CALLERS)]


def _step(request: _Block, *below: _Block) -> Step:
    line, headers, body = request.content(_REQUEST, _HEADER)
    by = _CALLERS[request.kind]
    step = Step(request=line, headers=dict(headers), body=body, by=by)
    for block in below:
        if block.kind == "prose" and not step.says:
            step = replace(step, says=block.text)
        elif block.kind == "answer" and block is below[-1]:
            status, pairs, answers = block.content(_STATUS, _KEEP)
            keeps = {name: path for path, name in pairs}
            step = replace(step, status=int(status), answers=answers, keeps=keeps)
        else:
            raise block.error(
                "a request is followed by at most one paragraph and an answer, in this order"
            )
    return step

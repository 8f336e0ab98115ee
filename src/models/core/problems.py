"""Problems of an input, each at its path: one ValidationError, with the nearest known names."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import islice
from typing import Any, TypeVar, get_args

import pydantic
from pydantic import AfterValidator, BaseModel
from pydantic import ValidationError as ShapeError
from pydantic.fields import FieldInfo
from pydantic_core import ErrorDetails, to_json
from typing_extensions import TypeAliasType

from runtime.errors import Detail, ValidationError

MOST_SHOWN = 20
_MOST_COMPARED = 1_000
_LONGEST = 64
_NO_LETTER = re.compile(r"[\W_]+")


def nearest_known(
    name: object, names: Iterable[str], labels: Mapping[str, str] | None = None
) -> str:
    """`known: amount, title`: at most 20 of the names; `none` where there is none."""
    near = nearest_first(name, names, labels)
    named = ", ".join(shown_name(name) for name in near[:MOST_SHOWN])
    return f"known: {named or 'none'}{', …' if len(near) > MOST_SHOWN else ''}"


def nearest_first(
    name: object, names: Iterable[str], labels: Mapping[str, str] | None = None
) -> list[str]:
    """The names, those before that are most like what was asked for, else as they come.

    `labels` has what people call some of the names. Costs little for any name: a client may ask for
    many.
    """
    target = _folded(name) if isinstance(name, str) else ""
    labels = labels or {}

    def distance(candidate: str) -> int:
        label = labels.get(candidate)
        near = _distance(target, candidate)
        return near if label is None else min(near, _distance(target, label))

    return sorted(islice(names, _MOST_COMPARED), key=distance)


def _distance(target: str, name: str) -> int:
    other = _folded(name)
    if not target or target == other:
        return -_LONGEST * 2
    if min(len(target), len(other)) > 2 and (target in other or other in target):
        return -_LONGEST
    alike = min(_same(target, other) + _same(target[::-1], other[::-1]), len(target), len(other))
    return -alike if 2 * alike >= len(target) else 0


def _same(first: str, second: str) -> int:
    """The characters that both begin with."""
    longest = min(len(first), len(second))
    return next((at for at in range(longest) if first[at] != second[at]), longest)


def _folded(text: str) -> str:
    """The letters and digits of a name, however they are written."""
    return _NO_LETTER.sub("", text[:_LONGEST].casefold())


def shown_name(name: str) -> str:
    """A name in a message: bounded and printable."""
    cut = name if len(name) <= _LONGEST else f"{name[: _LONGEST - 1]}…"
    return "".join(char if char.isprintable() else "?" for char in cut)


V = TypeVar("V")

MAX_PROBLEMS = 20


def refused_for(problem_of: Callable[[V], str | None]) -> AfterValidator:
    """Refuse a value with the problem that is found with it."""

    def checked(value: V) -> V:
        problem = problem_of(value)
        if problem is not None:
            raise ValueError(problem)
        return value

    return AfterValidator(checked)


def refuse(problems: Sequence[Detail], most: int = MAX_PROBLEMS) -> None:
    """Raise the `ValidationError` of these problems, if there are any."""
    if problems:
        raise refusal(problems, most)


def refusal(problems: Sequence[Detail], most: int = MAX_PROBLEMS) -> ValidationError:
    """The error that names the first problem in words, and at most `most` in its details."""
    first = problems[0]
    more = f" (and {len(problems) - 1} more)" if len(problems) > 1 else ""
    where = f"{first.path}: " if first.path else ""
    return ValidationError(f"{where}{first.message}{more}", problems[:most])


def located(error: ShapeError, path: str, shape: object = None) -> Iterator[Detail]:
    """The refusals of a shape, each at its place below `path`."""
    for problem in error.errors(include_url=False, include_context=False, include_input=False):
        where = ".".join([path, *(str(part)[:100] for part in problem["loc"])])
        yield Detail(where, sentence(problem, shape))


def place(problem: ErrorDetails, value: object) -> str:
    """The location as the client wrote it: names of union members are not part of the body."""
    parts: list[str] = []
    node: Any = value
    location = problem["loc"]
    for index, part in enumerate(location):
        if _has(node, part):
            node = node[part]
        elif index < len(location) - 1 or problem["type"] != "missing":
            continue
        parts.append(str(part)[:100])
    if problem["type"] in _OF_A_TAG:
        parts.append(problem["ctx"]["discriminator"].strip("'"))
    return ".".join(parts)


_OF_A_TAG = frozenset({"union_tag_invalid", "union_tag_not_found"})
"""The key that tells the members of a union apart is missing or has no known value."""


def _has(node: object, part: str | int) -> bool:
    if isinstance(node, list):
        return isinstance(part, int) and part < len(node)
    return isinstance(node, dict) and part in node


_AN = re.compile(r"[aeiou]|h(ttps?|tml)\b|hour|s(ftp|ms|sh)\b|rss\b|xlsx\b|xml\b", re.IGNORECASE)
_A = re.compile(r"eu|onc?e\b|u(ni|rl|ri|se|tc|uid)", re.IGNORECASE)
"""Words that begin with a vowel, but not with the sound of one."""


def an(word: str) -> str:
    """A word behind its article: `an approval`, `a url`, `an http_request`, by how it sounds."""
    spoken = word.replace("_", " ")
    return f"{'an' if _AN.match(spoken) and not _A.match(spoken) else 'a'} {word}"


_OBJECT = "This must be a JSON object."
_ARRAY = "This must be a JSON array."
_SENTENCES = {
    "missing": "This key is required.",
    "union_tag_not_found": "This key is required.",
    "extra_forbidden": "Unknown key.",
    **dict.fromkeys(("model_type", "model_attributes_type", "dict_type", "mapping_type"), _OBJECT),
    **dict.fromkeys(("list_type", "tuple_type", "set_type", "frozen_set_type"), _ARRAY),
    **dict.fromkeys(("iterable_type", "sequence_str"), _ARRAY),
    "none_required": "This must be null.",
}
_JSON_WORDS = {"List": "Array", "Tuple": "Array", "Set": "Array", "Dictionary": "Object"}
"""The words of JSON by the words of Python with which a message about a size begins."""


def sentence(problem: ErrorDetails, shape: object = None) -> str:
    """The refusal of a shape, in the words of the platform; an unknown key with the known ones."""
    words = _SENTENCES.get(problem["type"])
    if problem["type"] == "union_tag_invalid":
        tags: str = problem["ctx"]["expected_tags"]
        words = f"It must be one of: {tags.replace(chr(39), '')}."
    if shape is not None and problem["type"] == "extra_forbidden":
        keys = known_keys(shape, problem["loc"])
        if keys:
            words = f"Unknown key; {nearest_known(problem['loc'][-1], keys)}."
    return words or _in_json_words(problem["msg"].removeprefix("Value error, "))


def _in_json_words(message: str) -> str:
    subject, space, rest = message.partition(" ")
    if not rest.startswith("should "):
        return message
    return f"{_JSON_WORDS.get(subject, subject)}{space}{rest.replace(' after validation', '')}"


def known_keys(shape: object, location: Sequence[str | int]) -> list[str]:
    """The keys beside an unknown one, in the shape that was read."""
    models = list(_models(shape))
    for step in location[:-1]:
        if isinstance(step, int):
            continue
        fields = [field for model in models for field in _fields(model, step)]
        below = [model for field in fields for model in _models(field.annotation)]
        # A step that names no field is the tag of one of several shapes.
        models = below or [model for model in models if _is_tagged(model, step)] or models
    return list(dict.fromkeys(key for model in models for key in _keys(model)))


def _models(shape: object) -> Iterator[type[BaseModel]]:
    if isinstance(shape, TypeAliasType):
        shape = shape.__value__
    if isinstance(shape, type) and issubclass(shape, BaseModel):
        yield shape
        return
    for part in get_args(shape):
        yield from _models(part)


def _keys(model: type[BaseModel]) -> list[str]:
    return [field.alias or name for name, field in model.model_fields.items()]


def _fields(model: type[BaseModel], key: str) -> list[FieldInfo]:
    return [field for name, field in model.model_fields.items() if key in (field.alias, name)]


def _is_tagged(model: type[BaseModel], tag: str) -> bool:
    fields = model.model_fields.values()
    return any(tag in map(str, get_args(field.annotation)) for field in fields)


M = TypeVar("M", bound=BaseModel)


def read_part(model: type[M], value: object, path: str) -> M:
    """The JSON value at `path` as this model. Raises `ValidationError` with places below it."""
    try:
        return model.model_validate_json(to_json(value))
    except pydantic.ValidationError as error:
        raise refusal(list(located(error, path, model))) from None


@contextmanager
def problems_within(path: str) -> Iterator[None]:
    """Lets a command that read a part of a body name places as the whole body has them."""
    try:
        yield
    except ValidationError as error:
        details = [
            Detail(f"{path}.{detail.path}" if detail.path else path, detail.message)
            for detail in error.details
        ]
        raise (refusal(details) if details else error) from None

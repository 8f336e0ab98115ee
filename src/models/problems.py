"""From what is wrong with an input, place by place, to the refusal of the whole."""

from collections.abc import Iterator, Sequence

from pydantic import ValidationError as ShapeError

from runtime.errors import Detail, ValidationError

MAX_PROBLEMS = 20


def refuse(problems: Sequence[Detail]) -> None:
    """Raise the `ValidationError` of these problems, if there are any."""
    if problems:
        raise refusal(problems)


def refusal(problems: Sequence[Detail]) -> ValidationError:
    """The error that tells the first problem in words and at most 20 in its details."""
    first = problems[0]
    more = f" (and {len(problems) - 1} more)" if len(problems) > 1 else ""
    return ValidationError(f"{first.path}: {first.message}{more}", problems[:MAX_PROBLEMS])


def located(error: ShapeError, path: str) -> Iterator[Detail]:
    """What a shape refuses, each at its place below `path`."""
    for problem in error.errors(include_url=False, include_context=False, include_input=False):
        where = ".".join([path, *(str(part)[:100] for part in problem["loc"])])
        yield Detail(where, problem["msg"].removeprefix("Value error, "))

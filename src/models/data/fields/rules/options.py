"""The options of a field, from those a client describes."""

from collections.abc import Callable, Sequence

from models.core.base import Id
from models.core.keys import first_free, slug
from models.data.fields.rules.fields import Option
from models.data.fields.shapes import MAX_OPTION_NAME, MAX_OPTIONS, ChangeOption, CreateOption
from runtime.errors import Detail

DEFAULT_COLOR = "gray"

STATUS_OPTIONS = (
    CreateOption(name="To do", color="gray"),
    CreateOption(name="In progress", color="blue"),
    CreateOption(name="Done", color="green"),
)
STATUS_GROUPS = {"todo": ["to_do"], "in_progress": ["in_progress"], "done": ["done"]}
"""The options of a status field whose body lists none."""

MakeId = Callable[[], Id]


def keys_of(
    entries: Sequence[tuple[str, str | None]], resource: str, path: str, problems: list[Detail]
) -> list[str]:
    """The given keys, and for the others free keys derived from their names."""
    used_keys: set[str] = set()
    for place, (_, key) in enumerate(entries):
        if key is None:
            continue
        if key in used_keys:
            problems.append(Detail(f"{path}.{place}.key", f"is the key of another {resource}"))
        used_keys.add(key)
    keys = []
    for name, own_key in entries:
        key = own_key or first_free(slug(name, resource), used_keys)
        used_keys.add(key)
        keys.append(key)
    return keys


def new_options(
    bodies: Sequence[CreateOption], make_id: MakeId, path: str, problems: list[Detail]
) -> tuple[Option, ...]:
    """Options in the order given."""
    keys = keys_of([(body.name, body.key) for body in bodies], "option", path, problems)
    return tuple(
        Option(
            id=str(make_id()),
            key=key,
            name=body.name,
            color=body.color or DEFAULT_COLOR,
            order=place,
        )
        for place, (body, key) in enumerate(zip(bodies, keys, strict=True))
    )


def changed_options(
    options: Sequence[Option],
    bodies: Sequence[ChangeOption],
    make_id: MakeId,
    path: str,
    problems: list[Detail],
) -> tuple[Option, ...]:
    """The new list of options: those named by id or key are kept, the others are new."""
    existing = [
        _existing_option(options, body, f"{path}.{place}", problems)
        for place, body in enumerate(bodies)
    ]
    entries = [
        (body.name, option.key if option else body.key)
        for body, option in zip(bodies, existing, strict=True)
    ]
    keys = keys_of(entries, "option", path, problems)
    return tuple(
        Option(
            id=option.id if option else str(make_id()),
            key=key,
            name=body.name,
            color=body.color or (option.color if option else DEFAULT_COLOR),
            order=place if body.order is None else body.order,
        )
        for place, (body, option, key) in enumerate(zip(bodies, existing, keys, strict=True))
    )


class OptionGrowth:
    """A list of options to which values add names, up to the limit."""

    def __init__(self, options: Sequence[Option], make_id: MakeId) -> None:
        self.options = list(options)
        self._make_id = make_id
        self._keys = {option.key for option in options}
        self._names = {option.name.strip().casefold() for option in options}

    def add(self, name: str) -> None:
        """Add an option of this name, unless there is one or the list is full."""
        known = name.casefold() in self._names
        if known or len(name) > MAX_OPTION_NAME or len(self.options) >= MAX_OPTIONS:
            return
        option = Option(
            id=str(self._make_id()),
            key=first_free(slug(name, "option"), self._keys),
            name=name,
            color=DEFAULT_COLOR,
            order=1 + max((option.order for option in self.options), default=-1),
        )
        self.options.append(option)
        self._keys.add(option.key)
        self._names.add(name.casefold())


def _existing_option(
    options: Sequence[Option], body: ChangeOption, path: str, problems: list[Detail]
) -> Option | None:
    """The existing option that a body names; its key stays, because records store it."""
    if body.id is None:
        return next((option for option in options if option.key == body.key), None)
    option = next((option for option in options if option.id == body.id), None)
    if option is None:
        problems.append(Detail(f"{path}.id", "is not the id of an option of this field"))
    elif body.key not in {None, option.key}:
        problems.append(Detail(f"{path}.key", f"cannot change: records hold {option.key}"))
    return option

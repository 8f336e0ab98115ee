"""References: what a definition names, where, and how it is named anew. Pure.

A definition is a graph, a view, a form, a formula: what people write and the platform keeps. Each
resource says how its definitions name things (`Reference`); who asks what would break reads them
all. A reference comes from the place that gives a text its meaning: a typed key, a binding, the
parse tree of an expression, a leaf of a filter. Equal texts elsewhere are none.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any, NamedTuple

from pydantic import TypeAdapter

from models.core.access.rules import Scope
from models.core.base import Id, JsonObject
from models.core.expressions.rules.typed_reads import Read, Reads, renamed_in
from runtime.ids import parse_id


class SubjectKind(StrEnum):
    """A kind of thing that definitions name."""

    FIELD = "field"
    OPTION = "option"
    DATABASE = "database"
    VIEW = "view"
    FORM = "form"
    CONNECTION = "connection"
    WEBHOOK_ENDPOINT = "webhook_endpoint"
    SECRET = "secret"  # noqa: S105  # the name of a kind of thing
    ACTION = "action"
    AUTOMATION = "automation"
    DATA_SOURCE = "data_source"
    MEMBER = "member"
    FILE = "file"
    ITEM = "item"


class Subject(NamedTuple):
    """A thing that definitions name.

    Of a field and an option `id` is that of the database; of a secret it is the name.
    """

    kind: SubjectKind
    id: str
    key: str = ""
    option: str = ""


class Access(StrEnum):
    """The use of what is named."""

    READ = "read"
    WRITE = "write"


class Spelling(StrEnum):
    """The form in which a place holds a key."""

    VALUE = "value"
    """The text at the place is the key."""
    KEY = "key"
    """The object at the place has a member of this key."""
    SPAN = "span"
    """A part of the text at the place."""


Place = tuple[str | int, ...]
"""The keys and indexes that lead to a value of a document."""

_NODES = ("graph", "nodes")
"""The place of the list of nodes in a graph with its trigger."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reference:
    """A thing that a definition names at a place of its document.

    `node` is the node of a graph. With `cleared` the platform takes it out when the thing is
    deleted, so that nothing breaks.
    """

    subject: Subject
    place: Place
    access: Access = Access.READ
    spelling: Spelling = Spelling.VALUE
    read: Read | None = None
    node: str = ""
    cleared: bool = False
    by_id: bool = False
    """A field is named by its id, which no rename changes."""

    def at(self, place: Place, node: str) -> "Reference":
        """The same reference at another place, in a node. Thousands are read for one answer."""
        return Reference(
            subject=self.subject,
            place=place,
            access=self.access,
            spelling=self.spelling,
            read=self.read,
            node=node,
            cleared=self.cleared,
            by_id=self.by_id,
        )

    @property
    def path(self) -> str:
        """The place as people read it, the member included; that of a node is below the node."""
        member = [self.subject.key] if self.spelling is Spelling.KEY else []
        in_node = self.node and self.place[:2] == _NODES
        place = self.place[len(_NODES) + 1 :] if in_node else self.place
        return ".".join(map(str, [*place, *member]))


_REFERENCES = TypeAdapter(list[Reference])


def as_stored(references: Sequence[Reference]) -> list[JsonObject]:
    """References as JSON, without what is as by default."""
    stored: list[JsonObject] = _REFERENCES.dump_python(
        list(references), mode="json", exclude_defaults=True
    )
    return stored


def from_stored(values: Sequence[JsonObject]) -> Sequence[Reference]:
    """References from what `as_stored` made of them."""
    return _REFERENCES.validate_python(values, strict=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Definition:
    """A definition of a workspace with what it names.

    Who may see it follows from `item_id`, from `owner_user_id` of what belongs to one member and
    from `scope`; `hidden` says that the caller may not for another reason. A graph has `version`
    and `state`, and `runs` if open runs execute it.
    """

    kind: str
    id: Id
    label: str
    scope: Scope
    references: Sequence[Reference]
    document: JsonObject = field(default_factory=dict)
    """The content that the places of the references lead into."""
    item_id: Id | None = None
    owner_user_id: Id | None = None
    hidden: bool = False
    database_id: Id | None = None
    """The database that it is a part of, and is deleted with."""
    version_id: Id | None = None
    version: int | None = None
    state: str | None = None
    runs: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Sought:
    """The thing whose references are asked for; a field without a key is each of its database.

    `item_id` is its item: what names that names the thing. `also` are other things and items, for
    queries that are asked once for many.
    """

    subject: Subject
    item_id: Id | None = None
    also: frozenset[Subject] = frozenset()

    @property
    def kind(self) -> SubjectKind:
        return self.subject.kind

    @property
    def database_id(self) -> Id | None:
        """The database of a field or an option, or the database itself."""
        of_database = (SubjectKind.DATABASE, SubjectKind.FIELD, SubjectKind.OPTION)
        return Id(self.subject.id) if self.kind in of_database else None

    @property
    def ids(self) -> list[str]:
        """The texts one of which a definition has in it if it names the thing."""
        own = [self.subject.id, *([] if self.item_id is None else [str(self.item_id)])]
        return [*own, *(one.id for one in self.also)]

    @property
    def item_ids(self) -> list[Id]:
        """The items of all that is sought."""
        items = {one for one in self.subjects if one.kind is SubjectKind.ITEM}
        return [Id(one.id) for one in items]

    @property
    def subjects(self) -> frozenset[Subject]:
        """All that is sought."""
        item = () if self.item_id is None else (Subject(SubjectKind.ITEM, str(self.item_id)),)
        return self.also.union((self.subject, *item))

    def matches(self, subject: Subject) -> bool:
        """True for the thing itself, and for its item."""
        if subject in self.also:
            return True
        if subject.kind is SubjectKind.ITEM:
            return self.item_id is not None and subject.id == str(self.item_id)
        if self.kind is SubjectKind.FIELD and not self.subject.key:
            return subject[:2] == self.subject[:2]
        return subject == self.subject


def field_subject(database: str, key: str) -> Subject:
    return Subject(SubjectKind.FIELD, database, key)


def named_at(kind: SubjectKind, value: object, *place: str | int) -> Iterator[Reference]:
    """The reference of an id, or of a list of ids, at a place; what is no id names nothing."""
    if isinstance(value, list):
        for index, one in enumerate(value):
            yield from named_at(kind, one, *place, index)
    elif isinstance(value, str) and (parsed := parse_id(value)) is not None:
        yield Reference(subject=Subject(kind, str(parsed)), place=place)


def key_at(
    database: str, value: object, *place: str | int, access: Access = Access.READ
) -> Iterator[Reference]:
    """The reference of a field by its key, or of several by a list of keys."""
    if isinstance(value, list):
        for index, one in enumerate(value):
            yield from key_at(database, one, *place, index, access=access)
    elif isinstance(value, str):
        yield Reference(subject=field_subject(database, value), place=place, access=access)


def members_at(
    database: str, value: object, *place: str | int, access: Access = Access.WRITE
) -> Iterator[Reference]:
    """The fields whose keys an object has, and the options that its values may be."""
    if not isinstance(value, dict):
        return
    for key, content in value.items():
        subject = field_subject(database, key)
        yield Reference(subject=subject, place=place, access=access, spelling=Spelling.KEY)
        yield from options_at(database, key, content, *place, key, access=access)


def options_at(
    database: str, key: str, value: object, *place: str | int, access: Access = Access.READ
) -> Iterator[Reference]:
    """The options of a field that a value names: a text, or a list of them."""
    if isinstance(value, list):
        for index, one in enumerate(value):
            yield from options_at(database, key, one, *place, index, access=access)
    elif isinstance(value, str):
        subject = Subject(SubjectKind.OPTION, database, key, value)
        yield Reference(subject=subject, place=place, access=access)


def filter_leaves(tree: object, *place: str | int) -> Iterator[tuple[Place, Mapping[str, Any]]]:
    """The leaves of a filter tree, each with its place."""
    if not isinstance(tree, dict):
        return
    if "field" in tree:
        yield place, tree
        return
    for connective in ("and", "or"):
        parts = tree.get(connective)
        for index, part in enumerate(parts if isinstance(parts, list) else ()):
            yield from filter_leaves(part, *place, connective, index)
    yield from filter_leaves(tree.get("not"), *place, "not")


def filter_references(database: str, tree: object, *place: str | int) -> Iterator[Reference]:
    """The fields and options that a filter over the records of a database names."""
    for at, leaf in filter_leaves(tree, *place):
        yield from key_at(database, leaf["field"], *at, "field")
        if isinstance(leaf["field"], str):
            yield from options_at(database, leaf["field"], leaf.get("value"), *at, "value")


_LISTS_OF_FIELDS = ("sorts", "aggregates", "groupBy")


def query_references(database: str, query: object, *place: str | int) -> Iterator[Reference]:
    """The fields, options and the view that a query of records names."""
    if not isinstance(query, dict):
        return
    yield from filter_references(database, query.get("filter"), *place, "filter")
    for name in _LISTS_OF_FIELDS:
        part = query.get(name)
        for at, entry in _entries(part, *place, name):
            yield from key_at(database, entry.get("field"), *at, "field")
    for at, rule in _entries(query.get("colors"), *place, "colors"):
        yield from filter_references(database, rule.get("filter"), *at, "filter")
    if isinstance(query.get("fields"), list):
        yield from key_at(database, query["fields"], *place, "fields")
    yield from named_at(SubjectKind.VIEW, query.get("viewId"), *place, "viewId")


def _entries(value: object, *place: str | int) -> Iterator[tuple[Place, Mapping[str, Any]]]:
    """The objects of a list, or the one object in place of a list."""
    if isinstance(value, dict):
        yield place, value
    elif isinstance(value, list):
        for index, one in enumerate(value):
            if isinstance(one, dict):
                yield (*place, index), one


def question_references(database: str, questions: object) -> Iterator[Reference]:
    """The fields that the questions of a form ask for or depend on."""
    for index, question in enumerate(questions if isinstance(questions, list) else ()):
        yield from key_at(database, question.get("key"), index, "key", access=Access.WRITE)
        visible_if = question.get("visibleIf")
        yield from filter_references(database, visible_if, index, "visibleIf")


def text_references(reads: Reads, *place: str | int) -> Iterator[Reference]:
    """The fields and options that an expression at a place reads."""
    for read in reads.reads:
        subject = field_subject(read.database, read.key)
        if read.option:
            subject = Subject(SubjectKind.OPTION, read.database, read.key, read.option)
        yield Reference(subject=subject, place=place, spelling=Spelling.SPAN, read=read)


def below(references: Iterable[Reference], *place: str | int) -> Iterator[Reference]:
    """References with their places below another."""
    return (one.at((*place, *one.place), one.node) for one in references)


def in_node(references: Iterable[Reference], node: str) -> Iterator[Reference]:
    """References of a node of a graph."""
    return (one.at(one.place, node) for one in references)


def cleared(references: Iterable[Reference]) -> Iterator[Reference]:
    """References that the platform takes out when the thing is deleted."""
    return (replace(one, cleared=True) for one in references)


class UnknownPlaceError(Exception):
    """A reference whose place in a text is unknown, so that it cannot be written anew."""

    retryable = False


def rewritten(document: JsonObject, references: Iterable[Reference], key: str) -> JsonObject:
    """A copy of a document in which these references of one thing have a new key.

    Raises UnknownPlaceError.
    """
    copy = deepcopy(document)
    spans: dict[Place, list[Read]] = {}
    members: list[Reference] = []
    for reference in references:
        if reference.spelling is Spelling.KEY:
            members.append(reference)
        elif reference.read is not None:
            spans.setdefault(reference.place, []).append(reference.read)
        else:
            _write(copy, reference.place, key)
    for place, reads in spans.items():
        text = renamed_in(str(_holder(copy, (*place, ""))), reads, key)
        if text is None:
            raise UnknownPlaceError
        _write(copy, place, text)
    # The deepest first: a renamed member is no longer found under its old key.
    for reference in sorted(members, key=lambda one: -len(one.place)):
        holder = _holder(copy, (*reference.place, reference.subject.key))
        renamed = {key if name == reference.subject.key else name: holder[name] for name in holder}
        holder.clear()
        holder.update(renamed)
    return copy


def _holder(document: JsonObject, place: Sequence[Any]) -> JsonObject:
    """The object, or the list, that holds what is at a place."""
    holder = document
    for step in place[:-1]:
        holder = holder[step]
    return holder


def _write(document: JsonObject, place: Sequence[Any], text: str) -> None:
    _holder(document, place)[place[-1]] = text

"""A cache in the memory of a process: the values used last, within a limit of bytes."""

import json
from collections import OrderedDict
from collections.abc import Hashable
from typing import Generic, TypeVar

KEPT_BYTES = 64 * 1024 * 1024
"""As JSON; what is beyond is read again when needed."""
ENTRY_BYTES = 500
"""The bytes an entry takes beside its JSON."""

_Key = TypeVar("_Key", bound=Hashable)
_Value = TypeVar("_Value")


class LruCache(Generic[_Key, _Value]):
    """A mapping that drops the values used longest ago."""

    def __init__(self, limit: int = KEPT_BYTES) -> None:
        self._limit = limit
        self._bytes = 0
        self._entries: OrderedDict[_Key, tuple[_Value, int]] = OrderedDict()

    def known(self, key: _Key) -> _Value | None:
        """The value, if this process has it."""
        entry = self._entries.get(key)
        if entry is None:
            return None
        self._entries.move_to_end(key)
        return entry[0]

    def keep(self, key: _Key, value: _Value, weighed: object) -> None:
        """Keep a value whose size is that of `weighed` as JSON."""
        self.forget(key)
        size = ENTRY_BYTES + len(json.dumps(weighed))
        self._entries[key] = value, size
        self._bytes += size
        while self._bytes > self._limit and len(self._entries) > 1:
            _, (_, dropped) = self._entries.popitem(last=False)
            self._bytes -= dropped

    def forget(self, key: _Key) -> None:
        """Drop a value."""
        _, size = self._entries.pop(key, (None, 0))
        self._bytes -= size

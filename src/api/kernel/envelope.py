"""The envelope of every success body (interface, general rule 2)."""

from typing import Generic, TypeVar

from pydantic import BaseModel

T = TypeVar("T")


class Data(BaseModel, Generic[T]):
    """`{"data": …}`."""

    data: T

    def __init__(self, data: T) -> None:
        super().__init__(data=data)

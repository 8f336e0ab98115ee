"""Plain data that is shipped inside our packages, as YAML."""

from importlib.resources import files
from typing import Any

import yaml

_READER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
"""Reads plain values alone; the one in C where there is one."""


def read_yaml(package: str, name: str) -> Any:
    """The content of a file in the folder `data` of a package."""
    text = (files(package) / "data").joinpath(name).read_text("utf-8")
    return _READER(text).get_single_data()

"""The OpenAPI document as it is committed: rendering it takes a second for each file of tests.

tests/api/test_openapi.py holds it to what the code says.
"""

import json
from pathlib import Path
from typing import Any

TEXT = (Path(__file__).parents[2] / "openapi.json").read_text()
DOCUMENT: dict[str, Any] = json.loads(TEXT)

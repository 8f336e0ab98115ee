"""The HTTP door: the request pipeline, and routers grouped by wing."""

from pydantic import BaseModel

# FastAPI's own models are a twentieth of a start, and serve the OpenAPI document alone: they are
# built with it, as ours are when they are first used.
BaseModel.model_config["defer_build"] = True

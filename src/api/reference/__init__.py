"""The platform's knowledge, described by the models that check it.

`document` makes the OpenAPI document: to what FastAPI reads from the endpoints it adds the parts of
bodies that are checked apart, such as the config of a node.
"""

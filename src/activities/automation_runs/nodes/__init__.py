"""The acts of each kind of node, once its bindings are resolved."""

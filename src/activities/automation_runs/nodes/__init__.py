"""What each kind of node does, once its bindings are resolved."""

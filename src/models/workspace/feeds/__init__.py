"""Events of a workspace, as far as the readers of its log may see them."""

"""Resources of providers: what they are, how they are named, what forms ask. Pure."""

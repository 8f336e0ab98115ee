"""Change sets: operations on a workspace that are proposed first, then approved and applied."""

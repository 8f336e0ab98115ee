"""The log of a workspace: what happened in it, numbered in the order of commits."""

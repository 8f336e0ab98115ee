"""A bound for the memory of processes that evaluate expressions."""

import resource


def bound_memory(limit: int) -> None:
    """Let an allocation past `limit` bytes fail instead of taking the machine down.

    CEL bounds the steps of an expression, not the size of its values: one that multiplies texts
    then fails its own node or formula with a MemoryError. 0 sets no limit.
    """
    if limit:
        resource.setrlimit(resource.RLIMIT_AS, (limit, resource.RLIM_INFINITY))

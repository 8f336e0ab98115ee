"""`workspace demo`: the main job on real data."""


def demo() -> None:
    """Run an automation over a real table, and kill the worker in the middle."""

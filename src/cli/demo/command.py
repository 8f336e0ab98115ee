"""`workspace demo`: an automation on real data, whose worker is killed in the middle."""

import asyncio

from cli.console import reported


def demo() -> None:
    """Run an automation over a real table and kill the worker in the middle.

    Starts a platform for it on free ports, and removes it and its data afterwards.
    """
    from cli.demo.platform import run_demo

    with reported():
        asyncio.run(run_demo())

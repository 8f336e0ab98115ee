"""The fork server of the processes that read foreign files and ask foreign databases."""

import multiprocessing

PRELOADED = (
    "runtime.fork_server_garbage",
    "activities.sources.reading_process",
    "activities.sources.databases.process",
)

context = multiprocessing.get_context("forkserver")
"""Starts them from a server that has loaded what they need, and nothing that is secret."""
context.set_forkserver_preload(list(PRELOADED))

"""The `workspace` command."""

import contextlib
import gc
import logging
import os
import sys

_LOGGING = (["api"], ["worker"])
"""Commands whose output is a log."""


def main() -> None:
    """Run one command, and end the process without taking the interpreter down.

    Temporal's native threads may still ask for an interpreter that is being finalized, which
    would abort a command after its work is done (temporalio/sdk-python#300).
    """
    # Garbage collection during the imports takes a seventh of the time: a command that is loaded
    # enables it.
    gc.disable()
    from runtime.observability import process_output

    if sys.argv[1:2] in _LOGGING and "--help" not in sys.argv:
        process_output.take_over()
    from cli.commands import COMPLETES, app

    if COMPLETES in os.environ:
        from typer._completion_classes import completion_init

        completion_init()
    try:
        app(prog_name="workspace")
    except Exception as error:
        if not process_output.is_taken_over():
            raise
        # Typer has its own hook by now, which draws boxes.
        process_output.tell_failure("the process ends with an error", error)
        os._exit(1)
    except SystemExit as ended:
        if not isinstance(ended.code, int):
            raise
        logging.shutdown()
        for stream in (sys.stdout, sys.stderr):
            with contextlib.suppress(OSError):
                stream.flush()
        os._exit(ended.code)


if __name__ == "__main__":
    main()

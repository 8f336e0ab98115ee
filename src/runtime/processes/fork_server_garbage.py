"""First import of a fork server: no search for garbage in what it and its children loaded.

A first search takes a child 50 to 200 ms, and copies the memory that it shares with the server (the
documentation of `gc.freeze`).
"""

import gc
import os

gc.disable()
os.register_at_fork(before=gc.freeze, after_in_child=gc.enable)

"""Commands for a terminal: runs of any platform that answers to a key."""

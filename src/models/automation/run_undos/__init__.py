"""Undoes of runs: what their nodes wrote to records goes back where nobody wrote since."""

"""Undos of runs: the records that nodes wrote get their earlier values, unless changed since."""

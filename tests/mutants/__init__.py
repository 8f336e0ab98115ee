"""Lines of the rules broken one at a time, to see that a test fails: `make mutants`."""

"""Legacy imports from the command line: `workspace legacy-import …`."""

"""Commands that change legacy import runs."""

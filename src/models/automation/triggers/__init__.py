"""Events that triggers listen to, written by the transaction that made them happen."""

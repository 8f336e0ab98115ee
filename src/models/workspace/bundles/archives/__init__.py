"""Reading archives that somebody else made."""

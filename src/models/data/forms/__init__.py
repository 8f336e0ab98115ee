"""Forms: questions that any visitor may answer, each answer a record."""

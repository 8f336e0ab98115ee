"""Forms: questions that anybody may answer, each answer a record."""

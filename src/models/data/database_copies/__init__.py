"""Copies of databases: made by a job, seen by nobody until they are whole."""

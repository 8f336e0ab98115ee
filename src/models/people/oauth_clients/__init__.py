"""The workspace that a person chose for a client that signs in for them by OAuth."""

"""What a view may say."""

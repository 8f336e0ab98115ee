"""What a provider is asked while somebody waits: a page of a listing, a content, a test."""

"""What every endpoint stands on: from the bytes of a request to the bytes of its answer."""

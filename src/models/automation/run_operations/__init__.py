"""Operations over many runs: cancel, retry and resume them as one piece of durable work."""

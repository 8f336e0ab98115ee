"""What knows the whole of a workspace: items with what stands behind them, search, share links."""

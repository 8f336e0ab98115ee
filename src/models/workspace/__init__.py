"""Parts that know a whole workspace: items with what stands behind them, search, share links."""

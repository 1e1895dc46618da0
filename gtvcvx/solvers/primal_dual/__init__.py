"""The default solver's iteration: over-relaxed primal-dual, restarted."""

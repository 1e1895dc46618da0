"""Rows whose scores are those of several classes, many nodes at once."""

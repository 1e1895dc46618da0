"""Solutions in rational numbers, with a gap of zero."""

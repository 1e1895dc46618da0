"""Exit status of the commands."""

PROVED, NOT_PROVED, BAD_INPUT = 0, 1, 2

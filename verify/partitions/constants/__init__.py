"""The constants of Theorem 2, from floats, enclosures and rationals."""

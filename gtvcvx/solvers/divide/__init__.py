"""Divide and conquer by maximum flows, where coordinates are scalar problems."""

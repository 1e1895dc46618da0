"""Better points and flows by way of coarser problems, clusters and Newton's method."""

"""Whether the solution is constant on a partition, and the smallest such lambda."""

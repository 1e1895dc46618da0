"""An interior-point method whose linear systems have a block for each node, and nothing else."""

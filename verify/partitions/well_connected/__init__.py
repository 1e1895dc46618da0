"""Definition 1 decided by maximum flow, with witnesses."""

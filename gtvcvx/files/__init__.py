"""Files: CSV tables and partitions, npz archives, and writing that is whole or not at all."""

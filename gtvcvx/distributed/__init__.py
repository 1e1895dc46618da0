"""Problems in shards, solved by several workers."""

"""``mpiexec -n 4 python -m gtvcvx.distributed SHARDS``: ``gtvcvx solve-shards`` in ranks of MPI."""

import sys

from gtvcvx.cli import main

if __name__ == "__main__":
    sys.exit(main(["solve-shards", "--engine", "mpi", *sys.argv[1:]]))

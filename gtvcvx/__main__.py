"""``python -m gtvcvx``: the command line."""

import sys

from gtvcvx.cli import main

if __name__ == "__main__":
    sys.exit(main())

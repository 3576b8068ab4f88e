"""``python -m ompb``, the same as the command ``ompb``."""

import sys

from ompb.cli import main

if __name__ == "__main__":
    sys.exit(main())

"""``python -m declip`` is the command ``declip``."""

import sys

from declip.cli import main

if __name__ == "__main__":
    sys.exit(main())

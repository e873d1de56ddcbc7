"""``python -m declip`` is the command ``declip``."""

import sys

from declip.extras import MissingExtra, needs


def main() -> int:
    """Run the command, or say which extra it needs."""
    try:
        with needs("cli"):
            from declip.cli import main as run
    except MissingExtra as error:
        print(f"declip: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    return run()


if __name__ == "__main__":
    sys.exit(main())

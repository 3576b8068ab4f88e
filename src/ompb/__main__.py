"""The command ``ompb``, also as ``python -m ompb``."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from ompb.errors import OmpbError


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line, by default that of the process; returns the exit code.

    Bad input of any kind, or a part that is not installed, gives one line on stderr and exit code 2; an interrupt one
    line and 130.
    """
    try:
        from ompb.cli import run_command  # here, so that what goes wrong while it is imported ends in one line too

        return run_command(arguments)
    except KeyboardInterrupt:
        return _end("interrupted", 130)
    except OmpbError as error:
        return _end(str(error), 2)
    except OSError as error:
        return _end(f"{error.strerror or error}: {error.filename}" if error.filename else str(error), 2)


def _end(message: str, code: int) -> int:
    print(f"ompb: {' '.join(message.split())}", file=sys.stderr)
    return code


if __name__ == "__main__":
    sys.exit(main())

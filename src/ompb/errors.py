"""Every error this package raises on purpose.

::

    OmpbError
    ├── InputError            data handed in cannot be used
    │   ├── ShapeError        wrong number of dimensions, rows, leads or channels
    │   ├── DtypeError        not numbers
    │   ├── NotFiniteError    infinite, or missing where a value is required
    │   ├── TooShortError     not enough rows
    │   ├── TimeOrderError    times unsorted, repeated or not found
    │   │   └── GapError      a tick of a fleet that lies beyond the next one
    │   └── StaleRowError     a row too old, or not yet due, to be used
    ├── OptionError           an option that does not exist or is out of range
    ├── ForecasterError       the wrapped forecaster broke its contract
    │   └── CheckError        ompb.check found one fault, which it names
    ├── BusyError             a stream that is at work was called a second time
    ├── NoFolderError         a file was to be written into a folder that is not there
    ├── MissingExtraError     a part of the package that is not installed
    ├── AddedCodeError        a user's method, forecaster or file of them failed
    ├── WorkerError           a process that works for another died again and again
    └── FormatError           a file is not one of ours, or is damaged
        └── VersionError      a file written by a newer version

A message says what was wrong (with the value), what is accepted, and what to do next. Raising one of these
never changes the state of the object that raised it.
"""

from __future__ import annotations


class OmpbError(Exception):
    """Root of every error raised on purpose by this package."""


class InputError(OmpbError, ValueError):
    """Data handed in cannot be used."""


class ShapeError(InputError):
    """Wrong number of dimensions, rows, leads or channels."""


class DtypeError(InputError):
    """Not numbers."""


class NotFiniteError(InputError):
    """Infinite, or missing where a value is required."""


class TooShortError(InputError):
    """Not enough rows."""


class TimeOrderError(InputError):
    """Times unsorted, repeated or not found."""


class GapError(TimeOrderError):
    """A tick of a fleet that lies beyond the next one; ``expected`` is the next one, for a log to go back to."""

    def __init__(self, message: str, expected: object) -> None:
        super().__init__(message)
        self.expected = expected

    def __reduce__(self) -> tuple[type[GapError], tuple[str, object]]:
        return type(self), (str(self), self.expected)


class StaleRowError(InputError):
    """A row too old, or not yet due, to be used."""


class OptionError(OmpbError, ValueError):
    """An option that does not exist or is out of range."""


class ForecasterError(OmpbError, RuntimeError):
    """The wrapped forecaster broke its contract."""


class CheckError(ForecasterError):
    """`ompb.check` found one fault of a forecaster. ``fault`` is its name: see `ompb.checkup`."""

    def __init__(self, fault: str, message: str) -> None:
        super().__init__(message)
        self.fault = fault

    def __reduce__(self) -> tuple[type[CheckError], tuple[str, str]]:
        return type(self), (self.fault, str(self))


class BusyError(OmpbError, RuntimeError):
    """A stream that is at work was called a second time: by another thread, or by its own forecaster."""


class NoFolderError(OmpbError, FileNotFoundError):
    """A file was to be written into a folder that is not there."""


class MissingExtraError(OmpbError, ImportError):
    """A part of the package whose dependencies are not installed; the message names the command that installs them."""


class AddedCodeError(OmpbError, RuntimeError):
    """A user's method, forecaster or file of them failed."""


class WorkerError(OmpbError, RuntimeError):
    """A process that works for another died again and again."""


class FormatError(OmpbError, ValueError):
    """A file is not one of ours, or is damaged."""


class VersionError(FormatError):
    """A file written by a newer version of the format."""

"""Every error this package raises on purpose.

::

    OmpbError
    ├── InputError            data handed in cannot be used
    │   ├── ShapeError        wrong number of dimensions, rows, leads or channels
    │   ├── DtypeError        not numbers
    │   ├── NotFiniteError    infinite, or missing where a value is required
    │   ├── TooShortError     not enough rows
    │   ├── TimeOrderError    times unsorted, repeated or not found
    │   └── StaleRowError     a row too old, or not yet due, to be used
    ├── OptionError           an option that does not exist or is out of range
    ├── ForecasterError       the wrapped forecaster broke its contract
    ├── BusyError             a stream that is at work was called a second time
    ├── MissingExtraError     a part of the package that is not installed
    ├── AddedCodeError        a user's method, forecaster or file of them failed
    └── FormatError           a file is not one of ours, or is damaged
        └── VersionError      a file written by a newer version

A message says what was wrong (with the value), what is accepted, and what to do next. Raising one of these
never changes the state of the object that raised it.
"""


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


class StaleRowError(InputError):
    """A row too old, or not yet due, to be used."""


class OptionError(OmpbError, ValueError):
    """An option that does not exist or is out of range."""


class ForecasterError(OmpbError, RuntimeError):
    """The wrapped forecaster broke its contract."""


class BusyError(OmpbError, RuntimeError):
    """A stream that is at work was called a second time: by another thread, or by its own forecaster."""


class MissingExtraError(OmpbError, ImportError):
    """A part of the package whose dependencies are not installed; the message names the command that installs them."""


class AddedCodeError(OmpbError, RuntimeError):
    """A user's method, forecaster or file of them failed."""


class FormatError(OmpbError, ValueError):
    """A file is not one of ours, or is damaged."""


class VersionError(FormatError):
    """A file written by a newer version of the format."""

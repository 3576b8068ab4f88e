"""Published settings with some of them replaced by name, as options of a method's name bring them."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from ompb.errors import OptionError

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

    Settings = TypeVar("Settings", bound=DataclassInstance)


def with_options(published: Settings, options: Mapping[str, Any]) -> Settings:
    """The settings with options in the place of the published values; a mapping replaces inside nested settings.

    Raises `OptionError` for an option that there is not, and whatever the settings raise for a value.

    >>> from ompb.baselines.cosa import CosaSettings
    >>> with_options(CosaSettings(), {"steps": 5}).steps
    5
    """
    accepted = {field.name for field in dataclasses.fields(published) if field.init}
    unknown = sorted(options.keys() - accepted)
    if unknown:
        raise OptionError(
            f"{type(published).__name__} has no option {', '.join(map(repr, unknown))}; accepted: "
            f"{', '.join(sorted(accepted))}."
        )
    changes = dict(options)
    for name, value in options.items():
        nested = getattr(published, name)
        if dataclasses.is_dataclass(nested) and not isinstance(nested, type) and isinstance(value, Mapping):
            changes[name] = with_options(nested, value)
    return dataclasses.replace(published, **changes)

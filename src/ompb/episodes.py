"""Episodes of warnings: one change is one episode, however many signals see it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from ompb.types import Alert


@dataclass(frozen=True, slots=True)
class Episode:
    """A time with warnings; it ends once none is in force. ``str()`` gives its strongest warning as a sentence."""

    since: int  # the row at which its first warning began
    newest: int  # the last row at which any signal was above its line
    alerts: tuple[Alert, ...]  # of each signal the strongest reading, strongest first

    def __str__(self) -> str:
        others = [alert.signal for alert in self.alerts[1:]]
        return str(self.alerts[0]) + (f" Also seen: {', '.join(others)}." if others else "")

    def with_alerts(self, alerts: Iterable[Alert]) -> Episode:
        """Once these are in force, too."""
        strongest = {alert.signal: alert for alert in self.alerts}
        newest = self.newest
        for alert in alerts:
            known = strongest.get(alert.signal)
            newest = max(newest, alert.newest)
            if known is None or alert.rows_between > known.rows_between:
                strongest[alert.signal] = alert
        ordered = sorted(strongest.values(), key=lambda alert: -alert.rows_between)
        since = min(self.since, *(alert.since for alert in ordered))
        return Episode(since, newest, tuple(ordered))


def episodes(warnings: Iterable[tuple[Alert, ...]]) -> tuple[Episode, ...]:
    """Those that the warnings of forecasts in time order tell of."""
    found: list[Episode] = []
    goes_on = False
    for alerts in warnings:
        if alerts:
            last = found.pop() if goes_on else Episode(alerts[0].since, alerts[0].newest, ())
            found.append(last.with_alerts(alerts))
        goes_on = bool(alerts)
    return tuple(found)

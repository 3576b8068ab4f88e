import pytest

from ompb.bench.protocols import Clock
from ompb.errors import OptionError

PROTOCOLS = ("honest", "full", "delay=1", "delay=2", "delay=3", "delay=7", "one-step")
FIRST, LAST = 5, 30


def may_be_seen(protocol: str, horizon: int, origin: int, lead: int, now: int) -> bool:
    """The table of the protocols, word by word."""
    if protocol == "honest":
        return origin + lead <= now
    if protocol == "full":
        return origin <= now - horizon
    if protocol == "one-step":
        return origin <= now - 1
    return origin <= now - int(protocol.removeprefix("delay="))


def labels(clock: Clock, now: int) -> list[tuple[int, int]]:
    origins, leads = clock.revealed(now)
    return list(zip(origins.tolist(), leads.tolist(), strict=True))


@pytest.mark.parametrize("horizon", [1, 3, 6])
@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_clock_equals_its_brute_force_twin(protocol: str, horizon: int) -> None:
    clock = Clock(protocol, horizon, FIRST)
    seen: set[tuple[int, int]] = set()
    for now in range(FIRST, LAST):
        new = labels(clock, now)
        assert len(set(new)) == len(new)
        assert seen.isdisjoint(new), "each label is revealed once"
        seen.update(new)
        assert seen == {
            (origin, lead)
            for origin in range(FIRST, now + 1)
            for lead in range(1, horizon + 1)
            if may_be_seen(protocol, horizon, origin, lead, now)
        }


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_labels_come_oldest_first_and_leads_in_order(protocol: str) -> None:
    clock = Clock(protocol, 4, FIRST)
    leads_of: dict[int, list[int]] = {}
    for now in range(FIRST, LAST):
        new = labels(clock, now)
        assert new == sorted(new, key=lambda label: label[0])
        assert len({lead for _, lead in new}) == len(new), "no lead comes twice"
        for origin, lead in new:
            leads_of.setdefault(origin, []).append(lead)
    assert all(leads == list(range(1, len(leads) + 1)) for leads in leads_of.values())


@pytest.mark.parametrize("horizon", [1, 3, 6])
@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_clock_leaks_exactly_if_it_shows_rows_that_have_not_come(protocol: str, horizon: int) -> None:
    clock = Clock(protocol, horizon)
    shown = [(origin + lead, now) for now in range(40) for origin, lead in labels(clock, now)]
    assert clock.leaks == any(row > now for row, now in shown)
    assert not (protocol in ("honest", "full") and clock.leaks)


@pytest.mark.parametrize(
    "protocol", ["", "Honest", "leak1", "delay", "delay=", "delay=0", "delay=-1", "delay=1.5", "delay=01"]
)
def test_other_protocols_are_refused(protocol: str) -> None:
    with pytest.raises(OptionError, match=r"accepted: honest, full, delay=D \(D from 1\), one-step"):
        Clock(protocol, 4)


def test_a_horizon_is_positive() -> None:
    with pytest.raises(OptionError, match="horizon = 0"):
        Clock("honest", 0)

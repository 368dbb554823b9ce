"""The command `tc qdisc` for a container's one interface: read as tc reads it, answered likewise.

What cannot be obeyed is refused by its name, never ignored.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final

from .qdisc import Chance, Netem, Qdisc, Tbf

__all__ = ["BadCommand", "Interface"]

DEVICE: Final = "eth0"
FRAME_BYTES: Final = 1514
TIMES: Final = {"": 1e-6, "us": 1e-6, "usec": 1e-6, "ms": 1e-3, "msec": 1e-3, "s": 1.0, "sec": 1.0}
RATES: Final = {
    **{"": 1.0, "bit": 1.0, "kbit": 1e3, "mbit": 1e6, "gbit": 1e9},
    **{"bps": 8.0, "kbps": 8e3, "mbps": 8e6, "gbps": 8e9},
}
"""In bits per second."""
SIZES: Final = {
    **{"": 1.0, "b": 1.0, "k": 1024.0, "kb": 1024.0, "m": 1024.0**2, "mb": 1024.0**2},
    **{"kbit": 1024.0 / 8, "mbit": 1024.0**2 / 8},
}
"""In bytes; tc's kilo is 1024 in sizes, and 1000 in rates."""
NUMBER: Final = re.compile(r"(\d+(?:\.\d*)?)([a-z]*)", re.IGNORECASE)


class BadCommand(Exception):
    """tc refuses; the text is its standard error."""


class Interface:
    """The device `eth0` of a container, and the rule for what leaves there.

    Args:
        draw_seed: gives a seed to a rule that names none.
    """

    def __init__(self, draw_seed: Callable[[], int]) -> None:
        self.rule: Qdisc | None = None
        self._draw_seed = draw_seed

    def tc(self, arguments: Sequence[str]) -> str:
        """Obey the arguments of `tc`; return its output.

        Raises:
            BadCommand: it is not known, cannot be obeyed, or does not fit the rule that is there.
        """
        match list(arguments):
            case [*flags, "qdisc", "show", "dev", device] if set(flags) <= {"-s"}:
                _known(device)
                return self._show(statistics=bool(flags))
            case ["qdisc", "del", "dev", device, "root"]:
                _known(device)
                if self.rule is None:
                    raise BadCommand("Error: Cannot delete qdisc with handle of zero.")
                self.rule = None
            case ["qdisc", "add" | "replace" as verb, "dev", device, "root", kind, *words]:
                _known(device)
                if self.rule is not None and verb == "add":
                    raise BadCommand("Error: Exclusivity flag on, cannot modify.")
                self.rule = self._read(kind, words)
            case _:
                raise BadCommand(f"tc {' '.join(arguments)} cannot be obeyed: use qdisc {USAGE}")
        return ""

    def _show(self, *, statistics: bool) -> str:
        if self.rule is None:
            return f"qdisc noqueue 0: dev {DEVICE} root refcnt 2\n"
        kind, _, rule = str(self.rule).partition(" ")
        counted = f" {self.rule.statistics()}\n" if statistics else ""
        return f"qdisc {kind} 8001: dev {DEVICE} root refcnt 2 {rule}\n{counted}"

    def _read(self, kind: str, words: Sequence[str]) -> Qdisc:
        match kind:
            case "netem":
                return _netem(iter(words), self._draw_seed)
            case "tbf":
                return _tbf(words)
        raise BadCommand(f"qdisc {kind} cannot be obeyed: use netem or tbf")


USAGE: Final = f"add|replace|del dev {DEVICE} root (netem|tbf) …, or [-s] qdisc show dev {DEVICE}"


def _known(device: str) -> None:
    if device != DEVICE:
        raise BadCommand(f'Cannot find device "{device}"')


def _netem(words: Iterator[str], draw_seed: Callable[[], int]) -> Netem:
    options = dict(_grouped(words))
    seed = int(_only("seed", options.pop("seed", None)) or draw_seed())
    rule = Netem(seed)
    for name, values in options.items():
        match name, values:
            case "delay", [delay, *rest] if len(rest) <= 2:
                rule.delay_s = _amount(delay, TIMES, "delay")
                rule.jitter_s = _amount(rest[0], TIMES, "jitter") if rest else 0.0
                rule.jitter_draws = Chance(1.0, *(_share(word, "delay") for word in rest[1:]))
            case "loss" | "duplicate" | "reorder", [_, *rest] if len(rest) <= 1:
                setattr(rule, name, Chance(*(_share(word, name) for word in values)))
            case "rate", [rate]:
                rule.rate_bits = _amount(rate, RATES, "rate")
            case "limit" | "gap", [number] if number.isdecimal() and int(number):
                setattr(rule, "limit_packets" if name == "limit" else name, int(number))
            case _:
                raise BadCommand(f"netem {' '.join([name, *values])} cannot be obeyed")
    if rule.reorder.probability and not rule.delay_s:
        raise BadCommand("reordering not possible without specifying some delay")
    return rule


def _grouped(words: Iterator[str]) -> Iterator[tuple[str, list[str]]]:
    """Yield each option with the values that follow it: names begin with a letter."""
    name, values = "", list[str]()
    for word in words:
        if word[:1].isdigit():
            values.append(word)
            continue
        if name or values:
            yield name, values
        name, values = word, []
    if name or values:
        yield name, values


def _tbf(words: Sequence[str]) -> Tbf:
    options = dict(zip(words[::2], words[1::2], strict=False))
    if len(words) % 2 or options.keys() != {"rate", "burst", "limit"}:
        raise BadCommand(f"tbf {' '.join(words)} cannot be obeyed: use rate, burst and limit")
    burst = _amount(options["burst"], SIZES, "burst")
    rate = _amount(options["rate"], RATES, "rate")
    if not rate or burst < FRAME_BYTES:
        raise BadCommand(f"tbf needs a rate, and a burst of {FRAME_BYTES} bytes: a frame")
    return Tbf(rate, burst, _amount(options["limit"], SIZES, "limit"))


def _only(name: str, values: list[str] | None) -> str | None:
    if values is None:
        return None
    if len(values) != 1 or not values[0].isdecimal():
        raise BadCommand(f"netem {' '.join([name, *values])} cannot be obeyed: use a number")
    return values[0]


def _amount(text: str, units: Mapping[str, float], name: str) -> float:
    found = NUMBER.fullmatch(text)
    if found is None or found[2].lower() not in units:
        raise BadCommand(f'Illegal "{name}" {text}: use a number with {", ".join(units)}')
    return float(found[1]) * units[found[2].lower()]


def _share(text: str, name: str) -> float:
    found = NUMBER.fullmatch(text.removesuffix("%"))
    if found is None or found[2] or float(found[1]) > 100:
        raise BadCommand(f'Illegal "{name}" {text}: use 0% to 100%')
    return float(found[1]) / 100

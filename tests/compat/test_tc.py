"""The command `tc qdisc`: what the official harness asks for, and what is refused by its name."""

from __future__ import annotations

import pytest

from interop.compat.qdisc import Netem, Tbf
from interop.compat.tc import BadCommand, Interface


def interface() -> Interface:
    return Interface(lambda: 7)


def after(words: str) -> str:
    """The rule after a command, in tc's words."""
    made = interface()
    assert made.tc(["qdisc", "add", "dev", "eth0", "root", *words.split()]) == ""
    return str(made.rule)


@pytest.mark.parametrize(
    ("asked", "rule"),
    [
        # The five of the official harness, `src/steps/network_conditions.py`.
        ("netem delay 5000ms", "netem limit 1000 delay 5000ms seed 7"),
        ("netem loss 30.0%", "netem limit 1000 loss 30.00% seed 7"),
        ("netem loss 50.0% 75.0%", "netem limit 1000 loss 50.00% 75.00% seed 7"),
        (
            "netem delay 10ms reorder 25% 50%",
            "netem limit 1000 delay 10ms reorder 25.00% 50.00% gap 1 seed 7",
        ),
        (
            "tbf rate 256kbit burst 32kbit limit 12500",
            "tbf rate 256000bit burst 4096b limit 12500b",
        ),
        # What else there is.
        ("netem delay 1s 250ms 20%", "netem limit 1000 delay 1000ms 250ms seed 7"),
        ("netem delay 500", "netem limit 1000 delay 0.5ms seed 7"),
        ("netem duplicate 1%", "netem limit 1000 duplicate 1.00% seed 7"),
        ("netem rate 1mbit limit 5", "netem limit 5 rate 1000000bit seed 7"),
        ("netem loss 5% seed 99", "netem limit 1000 loss 5.00% seed 99"),
        (
            "netem delay 1ms reorder 100% gap 5",
            "netem limit 1000 delay 1ms reorder 100.00% gap 5 seed 7",
        ),
        ("tbf rate 1mbps limit 10kb burst 2k", "tbf rate 8000000bit burst 2048b limit 10240b"),
    ],
)
def test_a_rule_is_read_as_tc_reads_it(asked: str, rule: str) -> None:
    assert after(asked) == rule


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ("netem corrupt 5%", "netem corrupt 5% cannot be obeyed"),
        ("netem delay 1ms 1ms distribution normal", "netem distribution cannot be obeyed"),
        ("netem loss random 5%", "netem loss cannot be obeyed"),
        ("netem loss 5% 5% 5%", "netem loss 5% 5% 5% cannot be obeyed"),
        ("netem 5%", "netem  5% cannot be obeyed"),
        ("netem limit 0", "netem limit 0 cannot be obeyed"),
        ("netem seed 1.5", "netem seed 1.5 cannot be obeyed"),
        ("netem delay 5parsec", 'Illegal "delay" 5parsec'),
        ("netem loss 101%", 'Illegal "loss" 101%'),
        ("netem loss 5ms", 'Illegal "loss" 5ms'),
        ("netem reorder 5%", "reordering not possible without specifying some delay"),
        ("tbf rate 1mbit", "tbf rate 1mbit cannot be obeyed: use rate, burst and limit"),
        ("tbf rate 1mbit burst 2k limit", "cannot be obeyed"),
        ("tbf rate 1mbit burst 100 limit 100", "a burst of 1514 bytes"),
        ("tbf rate 0 burst 2k limit 100", "tbf needs a rate"),
        ("htb default 30", "qdisc htb cannot be obeyed: use netem or tbf"),
    ],
)
def test_what_cannot_be_obeyed_is_refused_by_its_name(asked: str, said: str) -> None:
    with pytest.raises(BadCommand) as refused:
        after(asked)
    assert said in str(refused.value)


def test_a_refused_rule_leaves_the_one_that_is_there() -> None:
    made = interface()
    made.tc(["qdisc", "add", "dev", "eth0", "root", "netem", "delay", "1ms"])
    with pytest.raises(BadCommand):
        made.tc(["qdisc", "replace", "dev", "eth0", "root", "netem", "corrupt", "1%"])
    assert isinstance(made.rule, Netem)


def test_a_rule_is_added_once_replaced_shown_and_deleted() -> None:
    made = interface()
    add = ["dev", "eth0", "root", "netem", "delay", "1ms"]
    made.tc(["qdisc", "add", *add])
    with pytest.raises(BadCommand, match="Exclusivity flag on"):
        made.tc(["qdisc", "add", *add])
    bucket = "qdisc replace dev eth0 root tbf rate 8kbit burst 2k limit 5k"
    made.tc(bucket.split())
    assert isinstance(made.rule, Tbf)
    made.rule.leaves_at(1000, 0.0)
    shown = made.tc(["-s", "qdisc", "show", "dev", "eth0"])
    assert shown.splitlines() == [
        "qdisc tbf 8001: dev eth0 root refcnt 2 rate 8000bit burst 2048b limit 5120b",
        " Sent 1000 bytes 1 pkt (dropped 0, overlimits 0 requeues 0)",
    ]
    made.tc(["qdisc", "del", "dev", "eth0", "root"])
    assert made.tc(["qdisc", "show", "dev", "eth0"]).startswith("qdisc noqueue 0:")


@pytest.mark.parametrize(
    ("command", "said"),
    [
        # The harness looks for the first one.
        ("qdisc del dev eth0 root", "Cannot delete qdisc with handle of zero"),
        ("qdisc del dev eth1 root", 'Cannot find device "eth1"'),
        ("qdisc add dev eth1 root netem delay 1ms", 'Cannot find device "eth1"'),
        ("filter show dev eth0", "tc filter show dev eth0 cannot be obeyed: use qdisc"),
        ("-j qdisc show dev eth0", "cannot be obeyed"),
        ("qdisc add dev eth0 ingress", "cannot be obeyed"),
    ],
)
def test_other_commands_are_refused(command: str, said: str) -> None:
    with pytest.raises(BadCommand) as refused:
        interface().tc(command.split())
    assert said in str(refused.value)

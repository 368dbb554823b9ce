"""The command as people run it."""

import json
from subprocess import CompletedProcess

from tests.cli.in_process import run
from tests.cli.processes import Node


def doctor(*arguments: str, **environment: str) -> CompletedProcess[str]:
    return run("doctor", "--sender-id", "alice", *arguments, **environment)


def test_a_sound_set_up_ends_with_0_and_json_lines() -> None:
    with Node() as node:
        done = doctor("--node", node.address, "--json")
    found = [json.loads(line) for line in done.stdout.splitlines()]
    assert done.returncode == 0, done.stderr
    assert {"check", "level", "where", "text", "advice"} == set(found[0])
    assert "round_trip" in {one["check"] for one in found}


def test_a_problem_ends_with_1_and_says_what_to_do() -> None:
    done = doctor("--node", "http://127.0.0.1:9")
    assert done.returncode == 1
    assert "✗ http://127.0.0.1:9: nothing listens there" in done.stdout
    assert "    → start a node" in done.stdout


def test_an_option_outside_its_limits_is_a_finding() -> None:
    done = doctor("-o", "retry_interval_ms=0")
    assert done.returncode == 1 and "`retry_interval_ms` must be at least 1" in done.stdout


def test_a_network_that_nobody_knows_is_a_finding() -> None:
    done = doctor("-o", "network=nowhere")
    assert done.returncode == 1 and "nowhere" in done.stdout


def test_service_peers_on_a_network_with_rln() -> None:
    peer = "/ip4/127.0.0.1/tcp/9/p2p/16Uiu2HAmPLe7Mzm8TsYUubgCAW1aJoeFScxrLj8ppHFivPo97bUZ"
    done = doctor("--node", peer, "--network", "twn", "--json")
    found = {one["check"]: one["level"] for one in map(json.loads, done.stdout.splitlines())}
    assert done.returncode == 1
    assert found["network.rln"] == "warning" and found["node.reachable"] == "problem"


def test_a_group_without_a_node_opens() -> None:
    done = doctor("--node", "memory://doctor")
    assert done.returncode == 0 and "the channel opens" in done.stdout


def test_without_a_sender_all_but_the_state_is_examined() -> None:
    done = run("doctor", "--node", "memory://doctor", "--json")
    found = {one["check"]: one for one in map(json.loads, done.stdout.splitlines())}
    assert done.returncode == 0, done.stdout + done.stderr
    assert found["state"]["level"] == "note" and "--sender-id" in found["state"]["advice"]
    assert "transport" in found


def test_plugins_that_were_left_out_are_one_note() -> None:
    done = doctor("--node", "memory://doctor", RELIABLE_CHANNEL_PLUGINS="none")
    (note,) = [line for line in done.stdout.splitlines() if "left out" in line]
    assert note.startswith("· plugins: left out by RELIABLE_CHANNEL_PLUGINS: ")

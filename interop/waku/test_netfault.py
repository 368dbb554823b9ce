"""Each fault is what it is called: measured between two containers."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from .bench import Bench
from .container import Container

COUNT = 200
INTERVAL_S = 0.005


@pytest.fixture(scope="module")
def pair(bench: Bench) -> Iterator[tuple[Container, Container]]:
    from . import probe

    with bench.network("embedded") as network:
        source = Path(probe.__file__)
        yield network.program("here", source), network.program("there", source)


@pytest.fixture
def here(pair: tuple[Container, Container]) -> Iterator[Container]:
    with pair[0].faults:
        yield pair[0]


@pytest.fixture
def there(pair: tuple[Container, Container]) -> Container:
    return pair[1]


def trips_ms(here: Container, there: Container, count: int = COUNT) -> list[float]:
    trips: list[float] = _echo(here, there, count)["trips_ms"]
    return trips


def came_to(here: Container, there: Container) -> str:
    return str(here.command("connect", to=there.address)["came_to"])


def heard(container: Container) -> int:
    return int(container.command("heard")["heard"])


def _echo(here: Container, there: Container, count: int) -> dict[str, list[float]]:
    return here.command("echo", to=there.address, count=count, interval_s=INTERVAL_S)


def test_without_faults_all_comes_back(here: Container, there: Container) -> None:
    trips = trips_ms(here, there)
    assert len(trips) == COUNT
    assert min(trips) < 20
    assert came_to(here, there) == "connected"


def test_loss(here: Container, there: Container) -> None:
    here.faults.lose(0.3)
    assert 0.55 * COUNT < len(trips_ms(here, there)) < 0.85 * COUNT
    here.faults.heal()
    assert len(trips_ms(here, there)) == COUNT


def test_delay(here: Container, there: Container) -> None:
    here.faults.delay(100)
    result = _echo(here, there, COUNT)
    assert len(result["trips_ms"]) == COUNT
    assert 95 < min(result["trips_ms"]) < 200
    assert result["order"] == sorted(result["order"])


def test_jitter_reorders(here: Container, there: Container) -> None:
    here.faults.delay(60, jitter_ms=50)
    result = _echo(here, there, COUNT)
    trips = result["trips_ms"]
    assert len(trips) == COUNT
    assert max(trips) - min(trips) > 50
    assert result["order"] != sorted(result["order"])


def test_a_cut_one_way_lets_the_other_way_through(here: Container, there: Container) -> None:
    before = heard(there)
    here.faults.cut(there.address, outgoing=False)
    assert trips_ms(here, there, 20) == []
    assert heard(there) == before + 20
    here.faults.heal()
    here.faults.cut(there.address, incoming=False)
    assert trips_ms(here, there, 20) == []
    assert heard(there) == before + 20


def test_a_cut_is_of_one_peer(here: Container, there: Container) -> None:
    here.faults.cut("172.30.0.200")
    assert len(trips_ms(here, there, 20)) == 20
    here.faults.cut(there.address)
    assert came_to(here, there) == "silence"


def test_a_refusal_comes_at_once(here: Container, there: Container) -> None:
    here.faults.refuse(there.address)
    assert came_to(here, there) == "refused"


def test_a_paused_container_answers_later(here: Container, there: Container) -> None:
    there.pause()
    assert trips_ms(here, there, 20) == []
    there.unpause()
    assert len(trips_ms(here, there, 20)) == 20


def test_a_disconnected_container_comes_back_with_its_address(
    here: Container, there: Container
) -> None:
    there.disconnect()
    assert came_to(here, there) != "connected"
    there.reconnect()
    assert any(came_to(here, there) == "connected" for _ in range(10))


def test_a_killed_container_starts_again_with_its_address(
    here: Container, there: Container
) -> None:
    there.kill()
    assert came_to(here, there) != "connected"
    there.restart()
    assert there.lives == 2
    assert len(trips_ms(here, there, 20)) == 20


def test_faults_end_with_a_life(here: Container, there: Container) -> None:
    there.faults.cut()
    assert came_to(here, there) == "silence"
    there.kill()
    there.restart()
    assert came_to(here, there) == "connected"

"""The node answers as its own description says: a few examples of each operation.

`make hunt WHAT=fuzz` asks thousands.
"""

import pytest

from .rest import MODES, NODES, serving

EXAMPLES = 2


@pytest.mark.slow
@pytest.mark.parametrize("name", NODES)
def test_the_node_answers_as_described(name: str) -> None:
    with serving(NODES[name]) as served:
        operations = served.operations()
        assert len(operations) > 20
        for operation in operations:
            for mode in MODES:
                try:
                    served.ask(operation, mode, examples=EXAMPLES, derandomize=True)
                except BaseException as error:
                    error.add_note(f"{operation.label}, {mode.name}")
                    raise
        assert served.requests > len(operations)


def test_an_exception_in_the_node_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    def breaks(*_: object) -> None:
        raise ZeroDivisionError("planted")

    with serving(NODES["serves all"]) as served:
        (version,) = (o for o in served.operations() if o.label == "GET /health")
        monkeypatch.setattr("waku.node.debug_api.protocols_health", breaks)
        with pytest.raises(AssertionError, match="Exception in ASGI application"):
            served.ask(version, MODES[0], examples=1, derandomize=True)

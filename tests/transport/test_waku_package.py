"""`waku` of another distribution is an error that names what to do."""

import pytest

import waku
from reliable_channel.transport.waku_package import require_own_waku


def test_our_own_is_accepted_and_another_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    require_own_waku()
    monkeypatch.delattr(waku, "__distribution__")
    with pytest.raises(ImportError, match="pip uninstall waku") as caught:
        require_own_waku()
    assert str(waku.__file__) in str(caught.value)

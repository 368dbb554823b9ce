"""What a machine has run out of has a name of ours."""

import errno
import os

import pytest

from reliable_channel._resources import resources_named
from reliable_channel.errors import (
    ChannelUnavailable,
    OutOfResources,
    PluginError,
    StateUnavailable,
)


@pytest.mark.parametrize(
    ("number", "told"),
    [
        (errno.EMFILE, r"raise `ulimit -n` \(now \d+\)"),
        (errno.ENFILE, "fs.file-max"),
        (errno.ENOSPC, "no space is left on the disk"),
        (errno.EDQUOT, "quota"),
    ],
)
def test_the_cause_is_named_however_deep(number: int, told: str) -> None:
    with pytest.raises(ChannelUnavailable, match=f"^it cannot be made.*: .*{told}") as raised:
        with resources_named("it cannot be made"):
            try:
                raise OSError(number, os.strerror(number))
            except OSError as error:
                raise PluginError("plugin 'built in': import failed") from error
    assert isinstance(raised.value, OutOfResources)


@pytest.mark.parametrize("kind", [PluginError, StateUnavailable, ValueError])
def test_other_errors_and_those_of_the_state_stay(kind: type[Exception]) -> None:
    cause = OSError(errno.ENOSPC if kind is StateUnavailable else errno.EPERM, "")
    with pytest.raises(kind), resources_named("it"):
        raise kind("as it is") from cause

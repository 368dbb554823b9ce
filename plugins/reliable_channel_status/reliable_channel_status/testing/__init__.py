"""Tests of bots: a bot, an embedded node and scripted users in virtual time."""

from .fake_client import FakeClient
from .fake_direct import FakeDirect
from .fake_owner import FakeOwner
from .fake_user import FakeUser
from .tester import BotTester

__all__ = ["BotTester", "FakeClient", "FakeDirect", "FakeOwner", "FakeUser"]

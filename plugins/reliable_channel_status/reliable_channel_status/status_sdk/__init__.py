"""The names of the package `status-sdk`, blocking, over a `StatusBot`: to move a program over.

    account = Account(StatusBot(network="status.prod", community="https://status.app/c/…"))
    account.login()
    for message in account.listen_messages():
        account.send_message(message.chat_id, "hello")

docs/how-to/from-status-sdk.md lists what is there, and what is different.
"""

from .account import Account, NotLoggedIn
from .community import Channel, Community
from .group_chat import GroupChat
from .models import Chat, CommunityRequest, ContactRequest, Content, Event, Message

__all__ = [
    "Account",
    "Channel",
    "Chat",
    "Community",
    "CommunityRequest",
    "ContactRequest",
    "Content",
    "Event",
    "GroupChat",
    "Message",
    "NotLoggedIn",
]

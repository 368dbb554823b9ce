"""Enumerations of Status payloads, with the names and numbers of status-go.

Each enumeration accepts unknown numbers of newer clients, as in `ContentType(77)`.
"""

from enum import IntEnum
from typing import Final, Self


class OpenEnum(IntEnum):
    """Enumeration of protobuf 3, which accepts any number as a value."""

    @classmethod
    def _missing_(cls, value: object) -> Self | None:
        if not isinstance(value, int):
            return None
        member = int.__new__(cls, value)
        member._name_ = f"UNKNOWN_{value}"
        member._value_ = value
        return member


class MessageType(OpenEnum):
    """Kind of the chat that a message belongs to."""

    UNKNOWN_MESSAGE_TYPE = 0
    ONE_TO_ONE = 1
    PUBLIC_GROUP = 2
    PRIVATE_GROUP = 3
    SYSTEM_MESSAGE_PRIVATE_GROUP = 4
    COMMUNITY_CHAT = 5
    SYSTEM_MESSAGE_GAP = 6


class ContentType(OpenEnum):
    """Kind of content of a chat message."""

    UNKNOWN_CONTENT_TYPE = 0
    TEXT_PLAIN = 1
    STICKER = 2
    STATUS = 3
    EMOJI = 4
    TRANSACTION_COMMAND = 5
    SYSTEM_MESSAGE_CONTENT_PRIVATE_GROUP = 6
    IMAGE = 7
    AUDIO = 8
    COMMUNITY = 9
    SYSTEM_MESSAGE_GAP = 10
    CONTACT_REQUEST = 11
    DISCORD_MESSAGE = 12
    IDENTITY_VERIFICATION = 13
    SYSTEM_MESSAGE_PINNED_MESSAGE = 14
    SYSTEM_MESSAGE_MUTUAL_EVENT_SENT = 15
    SYSTEM_MESSAGE_MUTUAL_EVENT_ACCEPTED = 16
    SYSTEM_MESSAGE_MUTUAL_EVENT_REMOVED = 17
    BRIDGE_MESSAGE = 18


class ImageFormat(OpenEnum):
    """Encoding of an image in a message."""

    UNKNOWN_IMAGE_FORMAT = 0
    PNG = 1
    JPEG = 2
    WEBP = 3
    GIF = 4


class AudioType(OpenEnum):
    """Encoding of an audio recording in a message."""

    UNKNOWN_AUDIO_TYPE = 0
    AAC = 1
    AMR = 2


class LinkType(OpenEnum):
    """Kind of a link's target, a page or an image."""

    LINK = 0
    IMAGE = 1


class Reaction(OpenEnum):
    """Kind of a reaction (`EmojiReaction.Type`)."""

    UNKNOWN_EMOJI_REACTION_TYPE = 0
    LOVE = 1
    THUMBS_UP = 2
    THUMBS_DOWN = 3
    LAUGH = 4
    SAD = 5
    ANGRY = 6


SIX_EMOJI: Final = {
    Reaction.LOVE: "❤️",
    Reaction.THUMBS_UP: "👍",
    Reaction.THUMBS_DOWN: "👎",
    Reaction.LAUGH: "😂",
    Reaction.SAD: "😢",
    Reaction.ANGRY: "😡",
}
"""Reactions that are sent as numbers, which every client reads."""


class StatusType(OpenEnum):
    """Status of a user (`StatusUpdate.StatusType`)."""

    UNKNOWN_STATUS_TYPE = 0
    AUTOMATIC = 1
    DO_NOT_DISTURB = 2
    ALWAYS_ONLINE = 3
    INACTIVE = 4


class Role(OpenEnum):
    """Rights of a community's member beyond writing."""

    ROLE_NONE = 0
    ROLE_OWNER = 1
    ROLE_ADMIN = 4
    ROLE_TOKEN_MASTER = 5


class ChannelRole(OpenEnum):
    """Rights of a member in a channel."""

    CHANNEL_ROLE_POSTER = 0
    CHANNEL_ROLE_VIEWER = 1


class Access(OpenEnum):
    """Rule for joining a community. DIVERGES from 56/STATUS-COMMUNITIES, which calls 1
    NO_MEMBERSHIP and 3 ON_REQUEST."""

    UNKNOWN_ACCESS = 0
    AUTO_ACCEPT = 1
    INVITATION_ONLY = 2
    MANUAL_ACCEPT = 3


class TokenType(OpenEnum):
    """Kind of a token (`CommunityTokenType`)."""

    UNKNOWN_TOKEN_TYPE = 0
    ERC20 = 1
    ERC721 = 2
    ENS = 3


class TokenPermissionType(OpenEnum):
    """Kind of a token permission (`CommunityTokenPermission.Type`)."""

    UNKNOWN_TOKEN_PERMISSION = 0
    BECOME_ADMIN = 1
    BECOME_MEMBER = 2
    CAN_VIEW_CHANNEL = 3
    CAN_VIEW_AND_POST_CHANNEL = 4
    BECOME_TOKEN_MASTER = 5
    BECOME_TOKEN_OWNER = 6

    @property
    def lets_members_in(self) -> bool:
        """True if a permission of this kind makes its holders members."""
        return self is TokenPermissionType.BECOME_MEMBER


class PayloadType(OpenEnum):
    """Type of the inner payload (`ApplicationMetadataMessage.Type`)."""

    UNKNOWN = 0
    CHAT_MESSAGE = 1
    CONTACT_UPDATE = 2
    MEMBERSHIP_UPDATE_MESSAGE = 3
    SYNC_PAIR_INSTALLATION = 4
    REQUEST_ADDRESS_FOR_TRANSACTION = 6
    ACCEPT_REQUEST_ADDRESS_FOR_TRANSACTION = 7
    DECLINE_REQUEST_ADDRESS_FOR_TRANSACTION = 8
    REQUEST_TRANSACTION = 9
    SEND_TRANSACTION = 10
    DECLINE_REQUEST_TRANSACTION = 11
    SYNC_INSTALLATION_CONTACT_V2 = 12
    SYNC_INSTALLATION_ACCOUNT = 13
    CONTACT_CODE_ADVERTISEMENT = 15
    PUSH_NOTIFICATION_REGISTRATION = 16
    PUSH_NOTIFICATION_REGISTRATION_RESPONSE = 17
    PUSH_NOTIFICATION_QUERY = 18
    PUSH_NOTIFICATION_QUERY_RESPONSE = 19
    PUSH_NOTIFICATION_REQUEST = 20
    PUSH_NOTIFICATION_RESPONSE = 21
    EMOJI_REACTION = 22
    GROUP_CHAT_INVITATION = 23
    CHAT_IDENTITY = 24
    COMMUNITY_DESCRIPTION = 25
    COMMUNITY_INVITATION = 26
    COMMUNITY_REQUEST_TO_JOIN = 27
    PIN_MESSAGE = 28
    EDIT_MESSAGE = 29
    STATUS_UPDATE = 30
    DELETE_MESSAGE = 31
    SYNC_INSTALLATION_COMMUNITY = 32
    ANONYMOUS_METRIC_BATCH = 33
    SYNC_CHAT_REMOVED = 34
    SYNC_CHAT_MESSAGES_READ = 35
    BACKUP = 36
    SYNC_ACTIVITY_CENTER_READ = 37
    SYNC_ACTIVITY_CENTER_ACCEPTED = 38
    SYNC_ACTIVITY_CENTER_DISMISSED = 39
    SYNC_BOOKMARK = 40
    SYNC_CLEAR_HISTORY = 41
    SYNC_SETTING = 42
    COMMUNITY_MESSAGE_ARCHIVE_MAGNETLINK = 43
    SYNC_PROFILE_PICTURES = 44
    SYNC_ACCOUNT = 45
    ACCEPT_CONTACT_REQUEST = 46
    RETRACT_CONTACT_REQUEST = 47
    COMMUNITY_REQUEST_TO_JOIN_RESPONSE = 48
    SYNC_COMMUNITY_SETTINGS = 49
    REQUEST_CONTACT_VERIFICATION = 50
    ACCEPT_CONTACT_VERIFICATION = 51
    DECLINE_CONTACT_VERIFICATION = 52
    SYNC_TRUSTED_USER = 53
    SYNC_VERIFICATION_REQUEST = 54
    SYNC_CONTACT_REQUEST_DECISION = 56
    COMMUNITY_REQUEST_TO_LEAVE = 57
    SYNC_DELETE_FOR_ME_MESSAGE = 58
    SYNC_SAVED_ADDRESS = 59
    COMMUNITY_CANCEL_REQUEST_TO_JOIN = 60
    CANCEL_CONTACT_VERIFICATION = 61
    SYNC_KEYPAIR = 62
    SYNC_ENS_USERNAME_DETAIL = 64
    COMMUNITY_EVENTS_MESSAGE = 67
    COMMUNITY_EDIT_SHARED_ADDRESSES = 68
    SYNC_ACCOUNT_CUSTOMIZATION_COLOR = 69
    SYNC_ACCOUNTS_POSITIONS = 70
    COMMUNITY_PRIVILEGED_USER_SYNC_MESSAGE = 72
    COMMUNITY_SHARD_KEY = 73
    SYNC_CHAT = 74
    SYNC_ACTIVITY_CENTER_DELETED = 75
    SYNC_ACTIVITY_CENTER_UNREAD = 76
    SYNC_ACTIVITY_CENTER_COMMUNITY_REQUEST_DECISION = 77
    SYNC_TOKEN_PREFERENCES = 78
    COMMUNITY_PUBLIC_SHARD_INFO = 79
    SYNC_COLLECTIBLE_PREFERENCES = 80
    COMMUNITY_USER_KICKED = 81
    SYNC_PROFILE_SHOWCASE_PREFERENCES = 82
    COMMUNITY_PUBLIC_STORENODES_INFO = 83
    COMMUNITY_REEVALUATE_PERMISSIONS_REQUEST = 84
    DELETE_COMMUNITY_MEMBER_MESSAGES = 85
    COMMUNITY_UPDATE_GRANT = 86
    COMMUNITY_ENCRYPTION_KEYS_REQUEST = 87
    COMMUNITY_TOKEN_ACTION = 88
    COMMUNITY_SHARED_ADDRESSES_REQUEST = 89
    COMMUNITY_SHARED_ADDRESSES_RESPONSE = 90

"""Status chats and communities: topics, keys, envelopes and payloads, and bots that use them."""

from typing import TYPE_CHECKING

from reliable_channel.spi import lazy_names

if TYPE_CHECKING:
    from .community.control_node import (
        ControlNode,
        JoinRefusal,
        NotControlNode,
        RefusedRequest,
        Request,
    )
    from .community.edits import CommunityProfile
    from .community.group_keys import GroupKeys
    from .community.invite_links import InviteData, InviteLink
    from .community.join_requests import ethereum_address, join_request, wallet_of, why_refused
    from .community.rules import why_closed, why_invalid, why_not_heard
    from .key_file import KeyFileError, needs_passphrase, read_key, write_key
    from .wire.application import from_protocol, message_id, to_protocol, unwrap, wrap
    from .wire.chats import (
        Community,
        Derivation,
        carries,
        contact_code_topic,
        negotiated_topic_id,
        partitioned_topic,
        personal_discovery_topic,
    )
    from .wire.codec import PAYLOADS, decode_payload, encode_payload
    from .wire.community_payloads import (
        ChatIdentity,
        CommunityAdminSettings,
        CommunityBanInfo,
        CommunityCategory,
        CommunityChat,
        CommunityDescription,
        CommunityEncryptionKeysRequest,
        CommunityMember,
        CommunityPermissions,
        CommunityRequestToJoin,
        CommunityRequestToJoinResponse,
        CommunityRequestToLeave,
        CommunityTokenPermission,
        CommunityUserKicked,
        IdentityImage,
        RevealedAccount,
        Shard,
        TokenCriteria,
    )
    from .wire.conversation import (
        Applied,
        Conversation,
        ConversationLimits,
        MessageState,
        Privileged,
        Waiting,
    )
    from .wire.enums import (
        Access,
        AudioType,
        ChannelRole,
        ContentType,
        ImageFormat,
        LinkType,
        MessageType,
        PayloadType,
        Reaction,
        Role,
        StatusType,
        TokenPermissionType,
        TokenType,
    )
    from .wire.envelope import (
        EnvelopeError,
        MalformedEnvelope,
        NotForThisKey,
        Opened,
        open_ecies,
        open_symmetric,
        seal_ecies,
        seal_symmetric,
    )
    from .wire.hash_ratchet import NoGroupKey
    from .wire.keys import PrivateKey, PublicKey, SymmetricKey, keccak256, recover
    from .wire.mentioning import EVERYONE, mention, mentions, mentions_everyone
    from .wire.opening import Opener, Outcome
    from .wire.outcomes import Ignored, MessageId, Received, RefusalReason, Refused, SignedPayload
    from .wire.payloads import (
        AcceptContactRequest,
        AudioMessage,
        BridgeMessage,
        ChatMessage,
        ChatPayload,
        ContactRequestPropagatedState,
        ContactUpdate,
        DeleteMessage,
        EditMessage,
        EmojiReaction,
        ImageMessage,
        MembershipUpdateMessage,
        Payload,
        PinMessage,
        RetractContactRequest,
        StatusUpdate,
        StickerMessage,
        UnfurledLink,
    )
    from .wire.rules import ChatClock, invalid, review
    from .wire.sds import STATUS_SDS, SdsArrival, SdsWrapper, read_sds, sds_message_id
    from .wire.sealing import Outgoing, Sealer, WakuVersion
    from .wire.topics import (
        CONTENT_SHARD,
        CONTROL_SHARD,
        DEFAULT_SHARD,
        NON_PROTECTED_SHARD,
        Topic,
        content_topic,
        symmetric_key,
        topic_bytes,
    )
else:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "key_file": "KeyFileError needs_passphrase read_key write_key".split(),
            "community.control_node": (
                "ControlNode JoinRefusal NotControlNode RefusedRequest Request"
            ).split(),
            "community.edits": ["CommunityProfile"],
            "community.group_keys": ["GroupKeys"],
            "community.invite_links": "InviteData InviteLink".split(),
            "community.join_requests": (
                "ethereum_address join_request wallet_of why_refused"
            ).split(),
            "community.rules": "why_closed why_invalid why_not_heard".split(),
            "wire.application": "from_protocol message_id to_protocol unwrap wrap".split(),
            "wire.chats": (
                "Community Derivation carries contact_code_topic negotiated_topic_id "
                "partitioned_topic personal_discovery_topic"
            ).split(),
            "wire.codec": "PAYLOADS decode_payload encode_payload".split(),
            "wire.community_payloads": (
                "ChatIdentity CommunityAdminSettings CommunityBanInfo CommunityCategory "
                "CommunityChat CommunityDescription CommunityEncryptionKeysRequest "
                "CommunityMember CommunityPermissions CommunityRequestToJoin "
                "CommunityRequestToJoinResponse CommunityRequestToLeave "
                "CommunityTokenPermission CommunityUserKicked IdentityImage "
                "RevealedAccount Shard TokenCriteria"
            ).split(),
            "wire.conversation": (
                "Applied Conversation ConversationLimits MessageState Privileged Waiting"
            ).split(),
            "wire.enums": (
                "Access AudioType ChannelRole ContentType ImageFormat LinkType MessageType "
                "PayloadType Reaction Role StatusType TokenPermissionType TokenType"
            ).split(),
            "wire.envelope": (
                "EnvelopeError MalformedEnvelope NotForThisKey Opened open_ecies "
                "open_symmetric seal_ecies seal_symmetric"
            ).split(),
            "wire.hash_ratchet": ["NoGroupKey"],
            "wire.keys": "PrivateKey PublicKey SymmetricKey keccak256 recover".split(),
            "wire.mentioning": "EVERYONE mention mentions mentions_everyone".split(),
            "wire.opening": "Opener Outcome".split(),
            "wire.outcomes": (
                "Ignored MessageId Received RefusalReason Refused SignedPayload"
            ).split(),
            "wire.payloads": (
                "AcceptContactRequest AudioMessage BridgeMessage ChatMessage ChatPayload "
                "ContactRequestPropagatedState ContactUpdate DeleteMessage EditMessage "
                "EmojiReaction ImageMessage MembershipUpdateMessage Payload PinMessage "
                "RetractContactRequest StatusUpdate StickerMessage UnfurledLink"
            ).split(),
            "wire.rules": "ChatClock invalid review".split(),
            "wire.sds": "STATUS_SDS SdsArrival SdsWrapper read_sds sds_message_id".split(),
            "wire.sealing": "Outgoing Sealer WakuVersion".split(),
            "wire.topics": (
                "CONTENT_SHARD CONTROL_SHARD DEFAULT_SHARD NON_PROTECTED_SHARD Topic "
                "content_topic symmetric_key topic_bytes"
            ).split(),
        },
    )

__all__ = [
    "CONTENT_SHARD",
    "CONTROL_SHARD",
    "DEFAULT_SHARD",
    "EVERYONE",
    "NON_PROTECTED_SHARD",
    "PAYLOADS",
    "STATUS_SDS",
    "AcceptContactRequest",
    "Access",
    "Applied",
    "AudioMessage",
    "AudioType",
    "BridgeMessage",
    "ChannelRole",
    "ChatClock",
    "ChatIdentity",
    "ChatMessage",
    "ChatPayload",
    "Community",
    "CommunityAdminSettings",
    "CommunityBanInfo",
    "CommunityCategory",
    "CommunityChat",
    "CommunityDescription",
    "CommunityEncryptionKeysRequest",
    "CommunityMember",
    "CommunityPermissions",
    "CommunityProfile",
    "CommunityRequestToJoin",
    "CommunityRequestToJoinResponse",
    "CommunityRequestToLeave",
    "CommunityTokenPermission",
    "CommunityUserKicked",
    "ContactRequestPropagatedState",
    "ContactUpdate",
    "ContentType",
    "ControlNode",
    "Conversation",
    "ConversationLimits",
    "DeleteMessage",
    "Derivation",
    "EditMessage",
    "EmojiReaction",
    "EnvelopeError",
    "GroupKeys",
    "IdentityImage",
    "Ignored",
    "ImageFormat",
    "ImageMessage",
    "InviteData",
    "InviteLink",
    "JoinRefusal",
    "KeyFileError",
    "LinkType",
    "MalformedEnvelope",
    "MembershipUpdateMessage",
    "MessageId",
    "MessageState",
    "MessageType",
    "NoGroupKey",
    "NotControlNode",
    "NotForThisKey",
    "Opened",
    "Opener",
    "Outcome",
    "Outgoing",
    "Payload",
    "PayloadType",
    "PinMessage",
    "PrivateKey",
    "Privileged",
    "PublicKey",
    "Reaction",
    "Received",
    "RefusalReason",
    "Refused",
    "RefusedRequest",
    "Request",
    "RetractContactRequest",
    "RevealedAccount",
    "Role",
    "SdsArrival",
    "SdsWrapper",
    "Sealer",
    "Shard",
    "SignedPayload",
    "StatusType",
    "StatusUpdate",
    "StickerMessage",
    "SymmetricKey",
    "TokenCriteria",
    "TokenPermissionType",
    "TokenType",
    "Topic",
    "UnfurledLink",
    "Waiting",
    "WakuVersion",
    "carries",
    "contact_code_topic",
    "content_topic",
    "decode_payload",
    "encode_payload",
    "ethereum_address",
    "from_protocol",
    "invalid",
    "join_request",
    "keccak256",
    "mention",
    "mentions",
    "mentions_everyone",
    "message_id",
    "needs_passphrase",
    "negotiated_topic_id",
    "open_ecies",
    "open_symmetric",
    "partitioned_topic",
    "personal_discovery_topic",
    "read_key",
    "read_sds",
    "recover",
    "review",
    "sds_message_id",
    "seal_ecies",
    "seal_symmetric",
    "symmetric_key",
    "to_protocol",
    "topic_bytes",
    "unwrap",
    "wallet_of",
    "why_closed",
    "why_invalid",
    "why_not_heard",
    "why_refused",
    "wrap",
    "write_key",
]

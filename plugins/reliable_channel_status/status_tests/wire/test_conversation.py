"""Edits, deletions, pins and reactions: the last writer wins, and only who may write."""

from dataclasses import replace
from itertools import permutations

import pytest

from reliable_channel_status import (
    Applied,
    Conversation,
    ConversationLimits,
    DeleteMessage,
    EditMessage,
    EmojiReaction,
    MessageState,
    Payload,
    PinMessage,
    PrivateKey,
    PublicKey,
    Reaction,
    Received,
    RefusalReason,
    Refused,
    SignedPayload,
    StatusType,
    StatusUpdate,
    Waiting,
    unwrap,
    wrap,
)
from reliable_channel_status.wire.conversation import everybody
from status_tests.world import (
    ALICE,
    BOB,
    CHAT_ID,
    COMMUNITY,
    MALLORY,
    NOW_MS,
    OTHER,
    received,
    said,
)

MESSAGE = received(said())
ID = MESSAGE.message_id


def edit(text: str, clock: int = NOW_MS + 1, key: PrivateKey = ALICE) -> Received:
    return received(EditMessage(clock=clock, text=text, chat_id=CHAT_ID, message_id=ID), key)


def delete(key: PrivateKey = ALICE, clock: int = NOW_MS + 1) -> Received:
    return received(DeleteMessage(clock=clock, chat_id=CHAT_ID, message_id=ID), key)


def pin(clock: int, pinned: bool = True, key: PrivateKey = ALICE) -> Received:
    return received(PinMessage(clock=clock, chat_id=CHAT_ID, message_id=ID, pinned=pinned), key)


def react(clock: int, retracted: bool = False, key: PrivateKey = BOB) -> Received:
    return received(
        EmojiReaction(
            clock=clock, chat_id=CHAT_ID, message_id=ID, type=Reaction.LOVE, retracted=retracted
        ),
        key,
    )


def is_bob(signer: PublicKey, chat_id: str) -> bool:
    return signer == BOB.public_key and chat_id == CHAT_ID


def reason(outcome: object) -> RefusalReason:
    assert isinstance(outcome, Refused), outcome
    return outcome.reason


def now(conversation: Conversation) -> MessageState:
    message = conversation.message(ID)
    assert message is not None
    return message


def test_a_message_and_its_edit() -> None:
    conversation = Conversation()
    added = conversation.apply(MESSAGE, NOW_MS)
    assert isinstance(added, Applied)
    assert (added.before, added.after) == (None, now(conversation))
    assert added.after is not None
    assert (added.after.text, added.after.author) == ("hello", ALICE.public_key)
    edited = conversation.apply(edit("goodbye"), NOW_MS)
    assert isinstance(edited, Applied)
    assert edited.before == added.after
    assert edited.after == now(conversation)
    assert now(conversation).text == "goodbye"


def test_nobody_changes_what_another_wrote() -> None:
    conversation = Conversation()
    conversation.apply(MESSAGE, NOW_MS)
    for act in (edit("mine", key=MALLORY), delete(MALLORY), pin(NOW_MS)):
        assert reason(conversation.apply(act, NOW_MS)) is RefusalReason.NOT_ALLOWED
    assert now(conversation).text == "hello"
    assert not now(conversation).is_deleted


def test_a_moderator_deletes_and_pins_and_does_not_edit() -> None:
    conversation = Conversation(is_privileged=is_bob)
    conversation.apply(MESSAGE, NOW_MS)
    assert isinstance(conversation.apply(pin(NOW_MS, key=BOB), NOW_MS), Applied)
    assert now(conversation).is_pinned
    assert reason(conversation.apply(edit("mine", key=BOB), NOW_MS)) is RefusalReason.NOT_ALLOWED
    assert isinstance(conversation.apply(delete(BOB), NOW_MS), Applied)
    assert now(conversation).is_deleted


def test_members_pin_where_they_may() -> None:
    conversation = Conversation(may_pin=everybody)
    conversation.apply(MESSAGE, NOW_MS)
    assert isinstance(conversation.apply(pin(2), NOW_MS), Applied)
    outdated = conversation.apply(pin(1, pinned=False, key=BOB), NOW_MS)
    assert reason(outdated) is RefusalReason.OUTDATED
    assert now(conversation).is_pinned
    conversation.apply(pin(3, pinned=False), NOW_MS)
    assert not now(conversation).is_pinned


@pytest.mark.parametrize("order", list(permutations(range(4))))
def test_the_last_word_counts_in_whatever_order_it_arrives(order: tuple[int, ...]) -> None:
    said_here = (MESSAGE, edit("first", NOW_MS + 1), edit("last", NOW_MS + 2), delete())
    conversation = Conversation()
    for at in order:
        conversation.apply(said_here[at], NOW_MS)
    assert (now(conversation).text, now(conversation).is_deleted) == ("last", True)


def test_what_waits_for_a_message_is_refused_there_if_another_wrote_it() -> None:
    conversation = Conversation()
    for act in (edit("theirs", key=MALLORY), edit("mine")):
        assert isinstance(conversation.apply(act, NOW_MS), Waiting)
    earlier = edit("earlier", NOW_MS)
    assert reason(conversation.apply(earlier, NOW_MS)) is RefusalReason.OUTDATED
    added = conversation.apply(MESSAGE, NOW_MS)
    assert isinstance(added, Applied)
    assert [refused.signer for refused in added.refused] == [MALLORY.public_key]
    assert added.after is not None
    assert added.after.text == "mine"


def test_the_same_signed_payload_counts_once_whatever_it_is_wrapped_in() -> None:
    conversation = Conversation()
    conversation.apply(MESSAGE, NOW_MS)
    assert reason(conversation.apply(MESSAGE, NOW_MS)) is RefusalReason.REPEATED
    signed = MESSAGE.signed
    rewrapped = Received(
        type(signed)(signed.payload, signed.signer, ID, signed.fingerprint, signed.data + b"x"),
        *(MESSAGE.topic, NOW_MS, None, False, False),
    )
    assert reason(conversation.apply(rewrapped, NOW_MS)) is RefusalReason.REPEATED
    assert wrap(said(), BOB).fingerprint != signed.fingerprint


@pytest.mark.parametrize("is_edit_first", [True, False])
def test_who_wraps_anothers_message_anew_and_is_faster_keeps_no_edit_away(
    is_edit_first: bool,
) -> None:
    rewrapped = unwrap(MESSAGE.signed.data + b"\xf8\x07\x01")
    assert isinstance(rewrapped, SignedPayload)
    faster = replace(MESSAGE, signed=rewrapped)
    conversation = Conversation()
    assert isinstance(conversation.apply(faster, NOW_MS), Applied)
    said_later = [edit("goodbye"), MESSAGE] if is_edit_first else [MESSAGE, edit("goodbye")]
    for each in said_later:
        conversation.apply(each, NOW_MS)
    assert now(conversation).text == "goodbye"
    assert conversation.message(faster.message_id) == now(conversation)


def test_a_message_is_not_changed_from_another_chat() -> None:
    conversation = Conversation()
    conversation.apply(MESSAGE, NOW_MS)
    target = {"clock": NOW_MS, "chat_id": COMMUNITY.channel_id(OTHER), "message_id": ID}
    for payload in (
        EditMessage(text="x", **target),  # type: ignore[arg-type]
        EmojiReaction(type=Reaction.LOVE, **target),  # type: ignore[arg-type]
    ):
        outcome = conversation.apply(received(payload), NOW_MS)
        assert reason(outcome) is RefusalReason.WRONG_CHAT


def test_reactions_and_their_retractions() -> None:
    conversation = Conversation()
    conversation.apply(MESSAGE, NOW_MS)
    reacted = conversation.apply(react(2), NOW_MS)
    assert isinstance(reacted, Applied)
    assert reacted.after == now(conversation)
    assert reason(conversation.apply(react(1, retracted=True), NOW_MS)) is RefusalReason.OUTDATED
    assert isinstance(conversation.apply(react(3, retracted=True), NOW_MS), Applied)
    assert isinstance(conversation.apply(react(1, key=ALICE), NOW_MS), Applied)


def test_other_payloads_pass_once_and_wrong_ones_never() -> None:
    conversation = Conversation()
    update = received(StatusUpdate(clock=1, status_type=StatusType.INACTIVE))
    assert conversation.apply(update, NOW_MS) == Applied(update)
    assert reason(conversation.apply(update, NOW_MS)) is RefusalReason.REPEATED
    ahead = received(said(clock=NOW_MS + 500_000))
    assert reason(conversation.apply(ahead, NOW_MS)) is RefusalReason.CLOCK_AHEAD
    assert conversation.message(ahead.message_id) is None


def test_everything_is_bounded_and_the_oldest_goes() -> None:
    limits = ConversationLimits(
        messages=2, waiting=2, waiting_for_one=2, reactions=2, fingerprints=4
    )
    conversation = Conversation(limits=limits)
    messages = [received(said(str(number))) for number in range(3)]
    for message in messages:
        conversation.apply(message, NOW_MS)
    held = [conversation.message(message.message_id) is not None for message in messages]
    assert held == [False, True, True]

    for key in (BOB, MALLORY, ALICE):
        assert isinstance(conversation.apply(edit(repr(key), key=key), NOW_MS), Waiting)
    added = conversation.apply(MESSAGE, NOW_MS)
    assert isinstance(added, Applied)
    assert [refused.signer for refused in added.refused] == [MALLORY.public_key]
    assert isinstance(conversation.apply(messages[0], NOW_MS), Applied)  # its repeat is forgotten


def test_a_limit_below_1_is_refused() -> None:
    with pytest.raises(ValueError, match=r"`waiting` must be at least 1 \(got 0\)"):
        ConversationLimits(waiting=0)


def test_payloads_that_wait_are_bounded_by_message() -> None:
    conversation = Conversation(limits=ConversationLimits(waiting=1))
    conversation.apply(edit("forgotten"), NOW_MS)
    later: Payload = DeleteMessage(clock=1, chat_id=CHAT_ID, message_id="0x5")
    conversation.apply(received(later), NOW_MS)
    conversation.apply(MESSAGE, NOW_MS)
    assert now(conversation).text == "hello"

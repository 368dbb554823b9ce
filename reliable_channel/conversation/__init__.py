"""Conversations in a channel: acknowledgements, questions and answers, typed values, participants
and invitations."""

from .codecs import Codec, JsonValue, json
from .conversation import Request
from .presence import Participant
from .typed import Answer, Answers, Message, Messages, Question, Questions, TypedChannel

__all__ = [
    "Answer",
    "Answers",
    "Codec",
    "JsonValue",
    "Message",
    "Messages",
    "Participant",
    "Question",
    "Questions",
    "Request",
    "TypedChannel",
    "json",
]

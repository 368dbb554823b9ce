"""Conversations in a channel: acknowledgements, questions and answers, typed values, participants
and invitations."""

from .acknowledging import Request
from .codecs import Codec, JsonValue, json
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

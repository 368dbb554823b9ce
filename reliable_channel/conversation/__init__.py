"""What programs do in a channel beside sending: wait for acknowledgements, ask and answer, exchange
typed values, see participants, and invite others.
"""

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

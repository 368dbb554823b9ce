"""Attacks of dishonest members, nodes and Stores; `docs/security.md` says which test shows what.

Every attack shows three things: memory and work stay bounded, an event names it, and an honest
message that is sent alongside arrives.
"""

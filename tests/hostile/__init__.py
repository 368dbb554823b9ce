"""Attacks of dishonest members, nodes and Stores, as docs/security.md lists them.

Every attack shows three things: memory and work stay bounded, an event names it, and an honest
message that is sent alongside arrives.
"""

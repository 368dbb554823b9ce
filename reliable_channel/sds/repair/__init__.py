"""SDS-R: missing messages are requested from participants, and sent by them."""

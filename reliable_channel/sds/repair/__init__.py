"""SDS-R: participants request missing messages and send them again."""

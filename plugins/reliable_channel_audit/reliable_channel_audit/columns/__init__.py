"""Column reader of journals.

`reading` parses lines, and decodes each message once, by its hash. `fast_facts` shows that the
row-by-row audit would find nothing, and returns the same facts. If one of them does not fully
understand the data, it raises `NeedsRowReader`, and the journal is read row by row.
"""

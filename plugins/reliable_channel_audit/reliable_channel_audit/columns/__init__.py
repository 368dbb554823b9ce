"""Column reader of journals, which reads many ordinary lines at a time.

`reading` reads lines, `packing` their packed bytes, and `wire` the messages. `fast_facts` shows
that the row-by-row audit would find nothing, and returns the same facts. If one of them does not
fully understand the data, it raises `NeedsRowReader`, and the journal is read row by row.
"""

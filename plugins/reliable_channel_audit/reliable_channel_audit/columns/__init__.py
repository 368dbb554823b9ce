"""Journals read by columns: many lines at a time, where nothing in them is out of the ordinary.

`reading` takes lines, `packing` their packed bytes, `wire` the messages; `fast_facts` shows that
the row-by-row judgement would find nothing, and gives the facts that it would give. What any of
them does not fully understand raises `NeedsRowReader`, and the journal is read row by row.
"""

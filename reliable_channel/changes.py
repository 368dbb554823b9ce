"""What a sync protocol of a plugin needs to outlive a restart: small tables, and who collects what
changed in them.

A core is given a `Recorder`, puts and deletes rows as it goes, and hands out `Changes` after each
step; its owner writes them in one transaction before anything of that step is let out.
"""

from .sds.changes import NO_RECORDER, Changes, Recorder, Row, Table, Tables, Value

__all__ = ["NO_RECORDER", "Changes", "Recorder", "Row", "Table", "Tables", "Value"]

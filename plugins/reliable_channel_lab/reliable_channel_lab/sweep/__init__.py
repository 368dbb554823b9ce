"""Sweeps: hundreds of seeded simulations, and the resulting curves and answers.

A sweep file describes the runs (`plan.py`). Each run is a pure function from its settings to a
record (`runs.py`). Executors do the runs that a results directory lacks (`execution.py`,
`results.py`). Curves, answers and a page use only the records (`curves.py`, `page.py`).
"""

from .execution import Executor, execute, local_processes
from .page import page_text, pictures
from .plan import Plan, read_plan
from .results import digest, read_results, write_records
from .runs import Record, Run, to_line

__all__ = [
    "Executor",
    "Plan",
    "Record",
    "Run",
    "digest",
    "execute",
    "local_processes",
    "page_text",
    "pictures",
    "read_plan",
    "read_results",
    "to_line",
    "write_records",
]

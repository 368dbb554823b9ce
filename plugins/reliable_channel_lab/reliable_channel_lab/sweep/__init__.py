"""Sweeps: seeded simulations by the hundred, and the curves and answers that they give.

A sweep file says what to run (`plan.py`); each run is a pure function from its settings to a record
(`runs.py`); executors run what a results directory lacks (`execution.py`, `results.py`); curves,
answers and a page are made of the records alone (`curves.py`, `page.py`).
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

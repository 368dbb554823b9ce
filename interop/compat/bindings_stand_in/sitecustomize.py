"""Puts our `wrapper` in the place of the bindings of a checkout, which stays as it is.

Python imports `sitecustomize` when it starts, from `PYTHONPATH`: so also in the processes that a
suite starts. The suite imports the module `wrapper`, which is there already.
"""

import sys

from interop.compat import wrapper

sys.modules["wrapper"] = wrapper

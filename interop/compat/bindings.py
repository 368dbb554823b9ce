"""A pytest plugin that puts our `wrapper` in the place of the bindings of a checkout.

`pytest -p interop.compat.bindings` leaves the checkout as it is: the suite imports the module
`wrapper`, which is there already.
"""

import sys

from interop.compat import wrapper

sys.modules["wrapper"] = wrapper

"""No test loads what happens to be installed; neither do the processes that tests start."""

import os

os.environ["RELIABLE_CHANNEL_PLUGINS"] = "none"

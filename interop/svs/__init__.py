"""ndnd's forwarder and its State Vector Sync, beside ours in one group."""

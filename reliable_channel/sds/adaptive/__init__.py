"""Self-tuning and reconciliation: only channels with `self_tuning` or `reconciliation` use them."""

"""Local log (LIP 109, Participant state): its entries, its archive, and its root hash."""

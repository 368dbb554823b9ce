"""A formal model of SDS and SDS-R: `rules` and `group` are the model, `checker` explores it."""

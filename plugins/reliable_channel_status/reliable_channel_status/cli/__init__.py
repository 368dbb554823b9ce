"""The commands `reliable-channel bot …` and their parts."""

"""The commands of the package, loaded when they are used."""

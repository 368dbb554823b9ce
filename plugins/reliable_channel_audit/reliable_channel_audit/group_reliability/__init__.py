"""How reliably groups got their messages, from the field's logs or from journals, in figures that
are comparable between implementations."""

"""Interfaces that plugins implement. `reliable_channel.spi` exports them."""

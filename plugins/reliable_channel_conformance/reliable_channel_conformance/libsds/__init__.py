"""nim-sds as a peer of the kit: a participant around its C library, loaded with ctypes."""

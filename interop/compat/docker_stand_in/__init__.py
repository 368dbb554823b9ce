"""Put this folder on the path of the official REST harness, and it finds `docker` here."""

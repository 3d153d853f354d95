"""What stands on the wire: bytes from values and values from bytes, without I/O."""

"""Measured figures, one command each: `python -m benchmarks NAME`."""

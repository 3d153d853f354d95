"""Many real writers on one table, held against a serial replay of what they committed. Run: `python -m soak`."""

"""Locks in an object store, by conditional writes."""

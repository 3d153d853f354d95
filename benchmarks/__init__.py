"""Benchmarks: one command each, ratios against peers measured in the same run.

usage: python -m benchmarks NAME [--quick] [--json FILE]
"""

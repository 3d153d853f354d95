"""The project's test run: its parts side by side, and what a person needs to know of them afterwards.

`python -m test_run` with `tools` on the path; `./run test` does that. Tox makes the environments and runs the parts.
"""

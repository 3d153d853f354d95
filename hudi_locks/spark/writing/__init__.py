"""Writing DataFrames into a table: input, file groups, tasks, commit."""

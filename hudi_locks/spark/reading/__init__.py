"""Reading a table as DataFrames."""

"""Lock files on a local file system and on those that fsspec reaches."""

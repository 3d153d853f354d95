"""What the Hive Metastore lock provider is made of."""

"""The ZooKeeper lock provider's parts; everything but `settings` and `place` needs kazoo."""

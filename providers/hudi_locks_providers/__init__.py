"""Lock providers that come with hudi-locks; asked for by name, see the entry points `hudi_locks.providers`."""

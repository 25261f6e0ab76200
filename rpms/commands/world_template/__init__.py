"""A custom environment: ``rpms run --env storeroom``, in the parent folder or installed."""

"""A world of its own: ``rpms run --env storeroom``, in the folder above or where installed."""

"""Tools, a policy and a guard: ``python -m desk_template.agent``, in the parent folder."""

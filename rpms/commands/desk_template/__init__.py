"""A desk with tools, a policy and a guard: ``python -m helpdesk.agent``, in the folder above."""

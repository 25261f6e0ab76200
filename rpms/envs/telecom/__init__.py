"""tau2-bench's telecom domain in solo mode: a support agent that acts by tools under a policy."""

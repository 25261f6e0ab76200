"""Chat models by name; any LangChain ``BaseChatModel`` object works just as well."""

from models.opening import open_model
from models.sim import SimPlanner

__all__ = ["SimPlanner", "open_model"]

"""Open chat models by name; any LangChain ``BaseChatModel`` object works as well."""

from rpms.models.constrained import constrain
from rpms.models.opening import default_timeout, forget_models, open_model
from rpms.models.sim import SimPlanner

__all__ = ["SimPlanner", "constrain", "default_timeout", "forget_models", "open_model"]

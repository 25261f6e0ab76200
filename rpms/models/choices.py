"""Every kind of model that a name can stand for, and what each still needs on this machine.

Nothing is opened and nothing is sent: packages are looked for, not imported, and keys are only
seen to be there.
"""

from __future__ import annotations

import os
from importlib.util import find_spec
from typing import NamedTuple

from rpms.models import local
from rpms.models.opening import LABELS, known_providers
from rpms.models.weights import catalogue, pulled

# Where clients look for a key; a provider that is missing here has one of its own kind, or none.
KEYS = {
    "anthropic": "ANTHROPIC_API_KEY",
    "azure_openai": "AZURE_OPENAI_API_KEY",
    "cohere": "COHERE_API_KEY",
    "deepseek": "DEEPSEEK_API_KEY",
    "fireworks": "FIREWORKS_API_KEY",
    "google_genai": "GOOGLE_API_KEY",
    "groq": "GROQ_API_KEY",
    "langsmith": "LANGSMITH_API_KEY",
    "mistralai": "MISTRAL_API_KEY",
    "nvidia": "NVIDIA_API_KEY",
    "openai": "OPENAI_API_KEY",
    "openrouter": "OPENROUTER_API_KEY",
    "perplexity": "PPLX_API_KEY",
    "together": "TOGETHER_API_KEY",
    "xai": "XAI_API_KEY",
}
ABOUT = {
    "openai": "OpenAI, or with --base-url any server of its protocol",
    "anthropic": "Anthropic",
    "community": "a chat model of langchain-community",
}
OURS = {"anthropic": "'rpms[anthropic]'", "community": "'rpms[community]'"}


class Choice(NamedTuple):
    """A model, or a form that names of models have.

    Attributes:
        name: what to give as ``--model``.
        about: what answers.
        missing: what has to be done before it does; empty if nothing.
    """

    name: str
    about: str
    missing: str = ""


def choices() -> list[Choice]:
    """All of them: ours, those of this machine, the providers, and whatever you write yourself."""
    ours = [Choice(name, label.partition(" (")[2].rstrip(")")) for name, label in LABELS.items()]
    own = Choice("MODULE:NAME", "a chat model of your own, by its import path")
    return [*ours, *_local(), *_providers(), own]


def _local() -> list[Choice]:
    missing = "" if find_spec(local.RUNTIME) else "run 'make local'"
    found = [
        Choice(
            f"local:{name}", "a very small model on this machine's processor",
            missing or ("" if find_spec(module) else "run 'make local'"),
        )
        for name, module in local.SHIPPED.items()
    ]  # fmt: skip
    for name, weights in catalogue().items():
        lacking = [missing, "" if pulled(name) else f"run 'rpms models pull {name}'"]
        found.append(Choice(f"local:{name}", weights.about, " and ".join(filter(None, lacking))))
    return [*found, Choice("local:FILE.gguf", "any GGUF file, on this machine", missing)]


def _providers() -> list[Choice]:
    modules = {**known_providers(), "community": "langchain_community"}
    first = ("openai", "anthropic", "community")
    found = []
    for provider in (*first, *sorted({*modules} - {*first})):
        package = modules[provider].partition(".")[0]
        lacking = []
        if find_spec(package) is None:
            lacking.append(f"pip install {OURS.get(provider, package.replace('_', '-'))}")
        if (key := KEYS.get(provider)) and not os.environ.get(key):
            server = ", or give --base-url" if provider == "openai" else ""
            lacking.append(f"set {key}{server}")
        named = "CLASS:NAME" if provider == "community" else "NAME"
        about = ABOUT.get(provider, "")
        found.append(Choice(f"{provider}:{named}", about, " and ".join(lacking)))
    return found

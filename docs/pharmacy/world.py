"""The world of the pharmacy's guard; its rules lie beside this file."""

from pathlib import Path

import rpms


class Pharmacy(rpms.ToolWorld):
    """Name its tools in ``tools()``, and ``rpms rules check`` compares them with the rules."""

    rules = Path(__file__).parent


WORLD = Pharmacy()

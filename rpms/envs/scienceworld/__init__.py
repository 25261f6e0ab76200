"""ScienceWorld: thirty elementary science tasks in one simulated house, run by a Java program."""

PACKAGE = "scienceworld"
MISSING = (
    "the environment 'scienceworld' needs the package scienceworld; run 'make setup' or "
    "pip install -e '.[scienceworld]' in a clone of RPMS"
)

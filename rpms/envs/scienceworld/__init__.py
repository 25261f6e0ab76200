"""ScienceWorld: thirty elementary science tasks in one simulated house, run by a Java program."""

PACKAGE = "scienceworld"
MISSING = (
    "the world 'scienceworld' needs the package scienceworld; in a clone: make setup; elsewhere: "
    "pip install 'rpms[scienceworld]'"
)

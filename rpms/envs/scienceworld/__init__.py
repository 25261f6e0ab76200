"""ScienceWorld: thirty elementary science tasks in one simulated house, run by a Java program."""

"""The shared data types of the system: belief, goal, turn, signature.

They are plain data (typed dictionaries of strings, numbers and lists), because they are in the
graph's state: a checkpoint, HTTP and LangGraph Studio must handle them without our classes.
"""

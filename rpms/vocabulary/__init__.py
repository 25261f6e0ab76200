"""The shared words of the system: belief, goal, turn, signature.

Everything here is plain data (typed dictionaries of strings, numbers and lists), because it
lives in the graph's state: it must survive a checkpoint, travel over HTTP and read well in
LangGraph Studio without any class of ours being imported on the other side.
"""

"""What the simulator says of three rooms, of a task, and when it asks back."""

HALLWAY = """This room is called the hallway. In it, you see:\x20
\tthe agent
\ta substance called air
\ta picture
You also see:
\tA door to the art studio (that is closed)
\tA door to the kitchen (that is open)"""
KITCHEN = """This room is called the kitchen. In it, you see:\x20
\tthe agent
\ta substance called air
\ta counter. On the counter is: a bowl (containing a red apple, an orange), a drawer.
\ta cupboard. The cupboard door is closed.\x20
\ta sink, which is turned off. In the sink is: nothing.
\ta stove, which is turned off. On the stove is: nothing.
\ta thermometer, currently reading a temperature of 10 degrees celsius
You also see:
\tA door to the bathroom (that is open)
\tA door to the hallway (that is open)"""
OUTSIDE = """This outside location is called the outside. Here you see:\x20
\tthe agent
\tan axe
\ta fire pit (containing nothing)
You also see:
\tA door to the kitchen (that is open)"""
BOIL = (
    "Your task is to boil water. For compounds without a boiling point, combusting the substance "
    "is also acceptable. First, focus on the substance. Then, take actions that will cause it to "
    "change its state of matter."
)
ASKED = (
    "Ambiguous request: Please enter the number for the action you intended (or blank to cancel):"
)

"""The guard: what decides about one action or tool call before it is carried out.

It imports the rules and the vocabulary, and nothing else of ours.
"""

from rpms.guard.decision import Judgement, judge
from rpms.guard.loops import LoopGuard
from rpms.guard.middleware import RulesGuard
from rpms.vocabulary.calls import Call

__all__ = ["Call", "Judgement", "LoopGuard", "RulesGuard", "judge"]

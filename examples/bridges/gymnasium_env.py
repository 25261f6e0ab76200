"""The environments as Gymnasium environments: ``gymnasium.make("rpms/alfworld-v0")``.

The reward is the change of the score, so an ALFWorld episode earns 1 when it is won.
"""

import string
from typing import Any

import gymnasium
from gymnasium.spaces import Text

import rpms


class TextEnv(gymnasium.Env[str, str]):
    """The first ``tasks`` tasks of a split, one for each episode."""

    def __init__(self, env: str = "alfworld", split: str = "", tasks: int = 60) -> None:
        self.world = rpms.get_environment(env)
        self.tasks = self.world.tasks(split or self.world.splits()[0], tasks)
        self.game = self.world.open_game()
        self.observation_space = Text(20_000, min_length=0, charset=string.printable)
        self.action_space = Text(200, charset=string.printable)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[str, dict[str, Any]]:
        """Start the task of ``options={"task": 3}``, else one drawn with the seed."""
        super().reset(seed=seed)
        drawn = int(self.np_random.integers(len(self.tasks)))
        self.task = self.tasks[(options or {}).get("task", drawn)]
        self.score, observation = 0.0, self.game.reset(self.task)
        self.belief = self.world.first_belief(observation)
        return observation, self._info(won=False)

    def step(self, action: str) -> tuple[str, float, bool, bool, dict[str, Any]]:
        """Execute an action; loose wordings such as "pick up the mug" are understood."""
        command = self.world.read_action(action)
        outcome = self.game.step(command)
        self.belief = self.world.update_belief(self.belief, command, outcome.observation)
        reward, self.score = outcome.score - self.score, outcome.score
        return outcome.observation, reward, outcome.done, False, self._info(outcome.won)

    def close(self) -> None:
        self.game.close()

    def _info(self, won: bool) -> dict[str, Any]:
        task = {"task": self.task["id"], "goal": self.task["goal"], "success": won}
        return {**task, "belief": rpms.copy_belief(self.belief), "commands": self.game.commands()}


for name in rpms.environment_names():
    steps = rpms.get_environment(name).max_steps
    gymnasium.register(f"rpms/{name}-v0", TextEnv, max_episode_steps=steps, kwargs={"env": name})

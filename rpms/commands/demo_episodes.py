"""Runs the episodes of ``rpms demo`` one after the other, prints each while it runs, records them.

An episode that is run only to show a failure is stopped once the failure is plain: the environment
has rejected the same action ``PLAIN`` times. In the run folder its step budget is the number of
steps that it had.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import aclosing, closing
from dataclasses import replace
from pathlib import Path
from shutil import rmtree
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from rpms.commands.story import Story
from rpms.envs import live
from rpms.evals.records.run_folder import MANIFEST, RunWriter, read_run
from rpms.evals.running.episode import EpisodeRecorder, EpisodeResult
from rpms.evals.running.manifest import make_manifest, timestamp
from rpms.evals.running.plan import Job, RunPlan
from rpms.graph.build import RpmsGraph, build_graph
from rpms.nodes.env_step import StepEvent
from rpms.nodes.state import EpisodeInput
from rpms.vocabulary.context import RunContext, condition_title
from rpms.vocabulary.errors import RpmsError
from rpms.vocabulary.turn import ERRORS, Turn

if TYPE_CHECKING:
    from rich.console import Console

PLAIN = 3
"""The same action was rejected this often: the failure is plain."""
READING = "the model reads its first prompt; this can take some 20 seconds"
ANSWERING = "the model reads and answers"


class ShownEpisode(NamedTuple):
    """An episode that was shown.

    Attributes:
        context: its settings; a stopped episode has the steps that it had as its budget.
        result: its line and its step log.
        history: its turns.
        vetoed: the number of proposals that the guard vetoed.
        stopped: it was stopped because its failure was plain.
    """

    context: RunContext
    result: EpisodeResult
    history: list[Turn]
    vetoed: int
    stopped: bool

    @property
    def success(self) -> bool:
        return self.result.line.success

    @property
    def rejected(self) -> list[str]:
        """The rejected actions; one that could not be read is an empty text."""
        return [turn["action"] for turn in self.history if turn["failed"]]

    @property
    def repeats(self) -> int:
        """The number of rejected actions that had been rejected before."""
        return len(self.rejected) - len({*self.rejected})


def failure_is_plain(history: Sequence[Turn]) -> bool:
    """True if the last action was rejected for the ``PLAIN``-th time."""
    rejected = Counter(turn["action"] for turn in history if turn["failed"])
    return bool(history) and rejected[history[-1]["action"]] >= PLAIN


async def show_episodes(console: Console, plan: RunPlan) -> dict[str, ShownEpisode]:
    """Run the plan's task under each of its conditions; the last one is never stopped early."""
    shown, graph, (task,) = dict[str, ShownEpisode](), build_graph(), plan.tasks
    *_, last = plan.conditions
    for label, context in plan.conditions.items():
        console.print(f"[bold]Condition {condition_title(label)}[/]\n")
        story = Story(console, plan.env, context)
        shown[label] = await _show(graph, story, Job(label, task), context, label == last)
    return shown


async def _show(
    graph: RpmsGraph, story: Story, job: Job, context: RunContext, to_its_end: bool
) -> ShownEpisode:
    task, recorder = job.task, EpisodeRecorder(job, truth=True)
    start = EpisodeInput(env=task["env"], split=task["split"], task=task["id"])
    stopped, seconds = False, 0.0
    # Closed here, because a generator that is left to the collector runs into a closed loop.
    parts: Any = graph.astream(start, context=context, stream_mode=["updates", "custom"])
    with story.console.status(READING) as status:
        async with aclosing(parts):
            async for mode, part in parts:
                if mode == "custom":
                    story.print_step(cast(StepEvent, part), recorder.model_seconds - seconds)
                    seconds = recorder.model_seconds
                    status.update(ANSWERING)
                    continue
                for stage, change in part.items():
                    recorder.arrived(stage)
                    await recorder.take(stage, change)
                    if stage == "env_step" and not (to_its_end or recorder.state["done"]):
                        stopped = failure_is_plain(recorder.state["history"])
                if stopped:
                    break
    state = recorder.state
    if stopped:
        await live.awaited(live.finish, state["episode_id"], task)
        state["failure_mode"] = "timeout"
        context = context.with_(max_steps=state["steps"])
        story.stop(state["history"][-1], PLAIN)
    elif state["failure_mode"] in ERRORS:
        kind = state["failure_mode"].replace("_", " ")
        raise RpmsError(f"the demo ended in a {kind}: {state['error']}; run it again to retry")
    else:
        story.end(cast(Any, state))
    story.console.print()
    vetoed = sum(decision["verdict"] != "accepted" for decision in state.get("decisions", []))
    return ShownEpisode(context, recorder.result(), state["history"], vetoed, stopped)


def check_folder(folder: Path) -> None:
    """Raise an error if the folder holds anything but the run of an earlier demo."""
    if not folder.exists() or not any(folder.iterdir()):
        return
    if not (folder / MANIFEST).is_file() or not read_run(folder).manifest.demo:
        raise RpmsError(f"{folder} holds something else than a demo; give another --out")


def write_demo(folder: Path, plan: RunPlan, shown: Mapping[str, ShownEpisode]) -> None:
    """Write the episodes as a run folder, in place of the last demo."""
    if folder.exists():
        rmtree(folder)
    played = {label: episode.context for label, episode in shown.items()}
    manifest = make_manifest(replace(plan, conditions=played), demo=True)
    with closing(RunWriter(folder)) as writer:
        writer.write_manifest(manifest.model_copy(update={"finished": timestamp()}))
        for episode in shown.values():
            writer.append(*episode.result)

"""Find the closest calls in a run: ``python -m tools.reply_margins RUN --model local:NAME``.

A processor of another kind rounds differently. Where two tokens are about equally likely it may
choose the other one, and the episode goes another way. The command asks a local model the prompts
of a run again and prints, for each episode, the token that it preferred least clearly: the margin
is the difference of its log-probability to that of the next. The task of ``rpms demo`` is one whose
margins are large, so that everybody sees the same episode.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from rpms.evals.records.run_folder import Run, read_log, read_run
from rpms.evals.running.export_chat import prompt_of
from rpms.models import open_model
from rpms.models.opening import default_timeout
from rpms.vocabulary.errors import RpmsError
from rpms.vocabulary.output import print_safe


class Margin(NamedTuple):
    """The least clear choice in an episode."""

    nats: float
    step: int
    chosen: str
    other: str


def prompts_of(log: dict[str, Any]) -> Iterator[tuple[int, list[Any]]]:
    """Each prompt of an episode with its step, also those that continue after a veto."""
    for step in log["steps"]:
        prompt = list(prompt_of(log, step))
        vetoes = prompt_of(log, step, "vetoes")  # a reply and the guard's answer, in turn
        for end in range(0, len(vetoes) + 1, 2):
            if prompt:
                yield step["step"], prompt + list(vetoes[:end])


def least_margin(log: dict[str, Any], model: Any) -> Margin | None:
    """Ask the model all prompts of an episode; its least clear choice, None without a prompt."""
    margins = []
    for step, prompt in prompts_of(log):
        reply = model.invoke(prompt, logprobs=True, top_logprobs=2)
        if not (logprobs := reply.response_metadata.get("logprobs")):
            raise RpmsError("this model gives no log-probabilities; use a local one: local:NAME")
        for token in logprobs["content"]:
            first, second = token["top_logprobs"]
            nats = first["logprob"] - second["logprob"]
            margins.append(Margin(nats, step, first["token"], second["token"]))
    return min(margins, default=None)


def print_margins(run: Run, model: Any) -> None:
    """Print a line for each finished episode."""
    for episode in run.episodes.values():
        log = read_log(run.log_file(episode))
        if log and (least := least_margin(log, model)):
            print_safe(
                f"{least.nats:7.3f}  step {least.step}, {least.chosen!r} before {least.other!r}; "
                f"{episode.condition}, task {episode.index}, "
                f"{'won' if episode.success else 'lost'} in {episode.steps} steps"
            )


def main() -> int:
    """Parse the command line, open the model and print the margins."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("run", type=Path, help="a run folder")
    parser.add_argument("--model", required=True, help="the model that acted: local:NAME")
    parser.add_argument("--tokens", type=int, default=96, help="of a reply (96)")
    options = parser.parse_args()
    try:
        run = read_run(options.run)
        timeout = default_timeout(options.model)
        print_margins(run, open_model(options.model, max_tokens=options.tokens, timeout_s=timeout))
    except RpmsError as error:
        print_safe(f"error: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())

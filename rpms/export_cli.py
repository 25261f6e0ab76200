"""``rpms export`` on the command line."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def export(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="A run of 'rpms eval'.")],
    format: Annotated[
        str,
        typer.Option(help="atif: agent trajectories; otel: OpenTelemetry gen_ai spans (OTLP)."),
    ],
    out: Annotated[
        Path,
        typer.Option(help="FILE.jsonl, a line per episode; atif: or a folder, a file per episode."),
    ],
    conditions: Annotated[str, typer.Option(help="Which, by comma; else all.")] = "",
    prompts: Annotated[bool, typer.Option(help="Also every prompt as it was sent.")] = False,
) -> None:
    """Write a run's episodes in a format that other tools read; nothing is sent anywhere."""
    from rpms.evals.export import export_run
    from rpms.evals.run_files import read_run

    chosen = [name.strip() for name in conditions.split(",")] if conditions else []
    done = export_run(read_run(folder), format, out, chosen, prompts)
    left = f"; {done.without_log} have no step log and were left out" if done.without_log else ""
    print(f"written: {out} ({done.episodes} episodes{left})")

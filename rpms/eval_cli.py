"""``rpms eval`` on the command line."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from rpms import completion
from rpms.options import (
    ArbitrationOption,
    CeilingOption,
    ConcurrencyOption,
    ConstrainOption,
    ContextOption,
    EngineOption,
    EnvOption,
    ExamplesOption,
    GuardOption,
    JsonOption,
    LayoutOption,
    ListOption,
    MaxStepsOption,
    MethodOption,
    ModelOption,
    PatienceOption,
    ReplayOption,
    RulesOption,
    ScfOption,
    SplitOption,
    TimeoutOption,
    WithoutOption,
    WorkersOption,
    choose,
    conditions_option,
    limit_option,
    print_json,
    refuse_empty,
)
from rpms.vocabulary.limits import MOST_TIMES


def evaluate(
    out: Annotated[
        str,
        typer.Option(
            autocompletion=completion.runs,
            callback=refuse_empty,
            help="Run folder; a run in it goes on, or grows.",
        ),
    ],
    env: EnvOption,
    split: SplitOption = "",
    conditions: Annotated[
        str, conditions_option("By comma, as B or B+verify; A,B,C,D by default.")
    ] = "",
    preset: Annotated[
        str,
        typer.Option(
            autocompletion=completion.presets,
            help="A sweep by name, such as 2x2, or FILE.yaml:NAME of your own.",
        ),
    ] = "",
    arm: Annotated[
        list[str] | None, typer.Option(help="An arm of your own: LABEL:SETTING=VALUE,...")
    ] = None,
    plan: Annotated[Path | None, typer.Option(help="Arms and tasks in a YAML file.")] = None,
    protocol: Annotated[
        str,
        typer.Option(
            autocompletion=completion.protocols, help="Steps, examples and the like, by name."
        ),
    ] = "",
    model: ModelOption = "sim",
    memory: Annotated[str, typer.Option(help="Memory snapshot (JSONL).")] = "",
    memory_method: MethodOption = "rpms",
    rules: RulesOption = "",
    without_rule: WithoutOption = None,
    limit: Annotated[int, limit_option("Tasks; 0: the whole split.")] = 0,
    spread: Annotated[
        bool, typer.Option("--spread", help="With --limit: from all over the split.")
    ] = False,
    tasks: Annotated[str, typer.Option(help="Only these ids, by comma, or @FILE.")] = "",
    types: Annotated[
        str,
        typer.Option(autocompletion=completion.goal_types, help="Only these goal types, by comma."),
    ] = "",
    trials: Annotated[
        int, typer.Option(min=1, max=MOST_TIMES, help="Tries per task, with memory carried along.")
    ] = 1,
    repeats: Annotated[
        int, typer.Option(min=1, max=MOST_TIMES, help="Independent repeats, with other seeds.")
    ] = 1,
    workers: WorkersOption = None,
    concurrency: ConcurrencyOption = 32,
    max_steps: MaxStepsOption = 0,
    keep_failed: Annotated[
        bool, typer.Option("--keep-failed", help="Leave episodes that ended in an error alone.")
    ] = False,
    replay_arm: ReplayOption = None,
    no_cache: Annotated[bool, typer.Option("--no-cache", help="Ask for every reply anew.")] = False,
    truth: Annotated[bool, typer.Option(help="Compare each belief with the true state.")] = True,
    ray: Annotated[str, typer.Option(help="Play on this Ray cluster ('local': a new one).")] = "",
    scf: ScfOption = "occupancy",
    arbitration: ArbitrationOption = "hard+soft",
    guard: GuardOption = "off",
    reasks: Annotated[int, typer.Option(help="How often verify asks again per step.")] = 2,
    fall_back: Annotated[bool, typer.Option(help="Then it may play another action.")] = True,
    layout: LayoutOption = "paper",
    theta: Annotated[float, typer.Option(help="Least goal similarity of a memory.")] = 0.6,
    k: Annotated[int, typer.Option(help="Memories of each type.")] = 3,
    ceiling: CeilingOption = 1200,
    examples: ExamplesOption = 1,
    action_list: ListOption = False,
    seed: Annotated[int, typer.Option(help="Varies sampling, and the planner's whims.")] = 0,
    temperature: Annotated[float, typer.Option(help="0: greedy.")] = 0.0,
    max_tokens: Annotated[int, typer.Option(help="Reply length; 0: the environment's own.")] = 0,
    base_url: Annotated[str, typer.Option(help="OpenAI-compatible server.")] = "",
    timeout: TimeoutOption = 0.0,
    patience: PatienceOption = 300.0,
    constrain: ConstrainOption = "off",
    context_tokens: ContextOption = 0,
    budget_usd: Annotated[
        float, typer.Option(min=0, help="Stop when DIR has cost this; 0: never.")
    ] = 0.0,
    budget_tokens: Annotated[int, typer.Option(min=0, help="The same, in tokens.")] = 0,
    engine: EngineOption = "",
    as_json: JsonOption = False,
) -> None:
    """Play a whole split under several arms; run it again to go on, or with more to add that."""
    choose(engine)
    from rpms.evals.arms import TaskSelection, choose_arms, listed
    from rpms.evals.costs import Budget
    from rpms.evaluating import Effort
    from rpms.evaluating import evaluate as run_all
    from rpms.nodes.context import RunContext

    base = RunContext(
        scf=scf,  # type: ignore[arg-type]
        arbitration=arbitration,  # type: ignore[arg-type]
        guard=guard,  # type: ignore[arg-type]
        reasks=reasks,
        fall_back=fall_back,
        layout=layout,  # type: ignore[arg-type]
        theta=theta,
        k=k,
        seed=seed,
        temperature=temperature,
        max_tokens=max_tokens,
        max_steps=max_steps,
        model=model,
        base_url=base_url,
        timeout_s=timeout,
        patience_s=patience,
        constrain=constrain,  # type: ignore[arg-type]
        context_tokens=context_tokens,
        memory_file=memory,
        memory_method=memory_method,
        ceiling=ceiling,
        examples=examples,
        action_list=action_list,
        rules_dir=rules,
        without_rules=",".join(without_rule or ()),
    )
    asked = TaskSelection(
        env=env, split=split, protocol=protocol, limit=limit, spread=spread,
        tasks=list(listed(tasks)), types=list(listed(types)), trials=trials, repeats=repeats,
    )  # fmt: skip
    asked, arms = choose_arms(asked, base, conditions, preset, arm or (), plan)
    report = run_all(
        arms, out=out, env=asked.env, split=asked.split, limit=asked.limit, spread=asked.spread,
        tasks=asked.tasks, types=asked.types, trials=asked.trials, repeats=asked.repeats,
        truth=truth, cache=not no_cache,
        effort=Effort(
            workers, concurrency, ray, keep_failed, Budget(budget_usd, budget_tokens),
            replay_arm or (),
        ),
        show=not as_json,
    )  # fmt: skip
    if as_json:
        print_json(report.as_json())

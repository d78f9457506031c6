"""The documents' steps from rung to rung and document 004's stages as claims. Their figures and reasons stand in
vecadd.bench.gains and vecadd.bench.recorded."""

from benchmarks.claims.claim import Claim, Verdict
from benchmarks.claims.quantities import Is, NotRecordedError, Quantity, Recorded, about, digits, printed, shares
from vecadd.bench import recorded
from vecadd.bench.gains import STEPS, Step, measured
from vecadd.bench.show import show_gain

NEAR = 0.05  # a step holds where our gain is this near to the document's


def of_steps(document: str) -> tuple[Claim, ...]:
    """The document's steps. Where ours differs, its gain is its card's, which the reason tells."""
    return tuple(_of_step(step) for step in STEPS if step.document == document)


def of_stages() -> tuple[Claim, ...]:
    """The percent that document 004 prints for kernel and copies of each stage, against its own milliseconds."""
    return tuple(
        _of_stage(kernel if rung == "pageable" else rung, stage) for (rung, kernel), stage in recorded.STAGES.items()
    )


def _of_stage(name: str, stage: recorded.Stage) -> Claim:
    return Claim(
        f"Kernel and copies of its stage {name} share the time as {stage.shares}",
        digits(stage.kernel, stage.to_host, stage.to_device),
        printed(lambda: shares(stage.kernel, stage.to_host + stage.to_device), str),
        Is(stage.shares),
        why="The percentages are those of its milliseconds.",
        why_not="Its milliseconds give other percentages than it prints.",
        otherwise=Verdict.SLIP,
    )


def _of_step(step: Step) -> Claim:
    def of(rows: Recorded) -> float:
        found = measured(step, rows.rows)
        if found is None:
            raise NotRecordedError(f"no recorded size has both {step.before} and {step.after}")
        n, gain = found
        own = not any(row.sweep == step.sweep and row.n == n for row in rows.rows)  # the document's size
        rows.asked.append("documents" if own else step.sweep)
        return gain

    return Claim(
        f"The step from {step.before} to {step.after}, {step.where}",
        show_gain(step.gain),
        Quantity(of, show_gain),
        about(step.gain, NEAR),
        why=step.why,
        why_not=step.why,
        otherwise=Verdict.ON_ITS_CARD,
    )

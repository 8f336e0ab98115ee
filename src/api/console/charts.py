"""Charts that the server draws: bars of ended runs by outcome."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from models.automation.automation_runs.rules import RunStatus
from models.automation.run_statistics.queries import Period, RunStatistics

WIDTH, HEIGHT = 960, 120
_LEAST = 2.5
"""The height of a bar that is not nothing: one failure among thousands is still seen."""
_GAP = 0.22
"""The share of a column that stays free."""
STACK = (RunStatus.SUCCEEDED, RunStatus.CANCELLED, RunStatus.TIMED_OUT, RunStatus.FAILED)
"""The outcomes from the bottom up."""


@dataclass(frozen=True, slots=True)
class Bar:
    status: RunStatus
    y: float
    height: float


@dataclass(frozen=True, slots=True)
class Column:
    """A period with its bars, and in words."""

    x: float
    start: datetime
    bars: Sequence[Bar]
    runs: int
    text: str


@dataclass(frozen=True, slots=True)
class Chart:
    """The columns of a chart; `top` is the number of runs that its height stands for."""

    columns: Sequence[Column]
    top: int
    step: float
    width: float
    statistics: RunStatistics


def chart_of(statistics: RunStatistics) -> Chart:
    """Draw the periods of statistics."""
    periods = statistics.periods
    top = max((period.runs for period in periods), default=0)
    step = WIDTH / max(len(periods), 1)
    columns = [
        Column(round(step * place, 2), period.start, _bars(period, top), period.runs, _text(period))
        for place, period in enumerate(periods)
    ]
    return Chart(columns, top, round(step, 2), round(step * (1 - _GAP), 2), statistics)


def _bars(period: Period, top: int) -> Sequence[Bar]:
    heights = {
        status: max(_LEAST, HEIGHT * number / top)
        for status in STACK
        if (number := period.outcomes.get(status, 0))
    }
    # What small bars were lent is taken from the tall ones: the column keeps its height.
    scale = HEIGHT * period.runs / top / sum(heights.values()) if heights else 1
    bars, y = [], float(HEIGHT)
    for status, height in heights.items():
        drawn = max(_LEAST, height * min(scale, 1))
        y -= drawn
        bars.append(Bar(status, round(max(y, 0), 2), round(drawn, 2)))
    return bars


def _text(period: Period) -> str:
    """`12 runs: 10 succeeded, 2 failed`."""
    outcomes = [
        f"{period.outcomes[status]:,} {status.value.replace('_', ' ')}"
        for status in STACK
        if period.outcomes.get(status)
    ]
    runs = f"{period.runs:,} run{'' if period.runs == 1 else 's'}"
    return f"{runs}: {', '.join(outcomes)}" if outcomes else runs

"""Write docs/howto/own_functions_table.md: laws and kinds of functions of a user, from `tests/own_functions.py`.

python docs/_ext/own_functions.py [LAW ...]
"""

from __future__ import annotations

import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "tests"))

from own_functions import PLACES, outcome

PAGE = ROOT / "docs" / "howto" / "own_functions_table.md"

HEAD = """# Which laws take which functions

`python docs/_ext/own_functions.py` writes this page. Every law with a function as a parameter was constructed with every kind of
function, predicted, and simulated in one small experiment.

- "works" gives the largest difference between the mean of the draws and the prediction, divided by the sum of the standard error, the
  numerical error and 3/size of the scale of the observable. Numbers above 3 have a star. These experiments are small, and the number of the
  built-in name shows how far the law is from its limit there. `compare` uses growing sizes. For the cubic student of `OnlineSingleIndex`
  the mean overlap is 0.286, 0.257 and 0.217 at sizes 200, 800 and 3200, and the limit is 0.201.
- "refused" gives the sentence of the error at construction. "refused by the prediction" and "refused by the experiment" are errors that
  need a computation, or that concern only one of both.
- An error without such a sentence would be marked as late in capital letters.

The kinds are defined in `tests/own_functions.py`.
"""


def main(names: list[str]) -> None:
    """Compute the table and write the page."""
    lines, late = [HEAD], 0
    for place in PLACES:
        if names and place.law not in names:
            continue
        extra = place.rest.get("model")
        lines += [
            f"\n## {place.law}, `{place.parameter}`{f', model {extra}' if extra else ''}\n",
            "| function | outcome |",
            "|---|---|",
        ]
        for kind, function in place.kinds.items():
            result = outcome(place, function)
            late += result.verdict == "late"
            print(place.law, place.parameter, kind, result.verdict, f"{result.z:.1f}", f"{result.seconds:.1f} s", flush=True)
            lines.append(f"| {kind} | {described(result)} |")
    PAGE.write_text("\n".join(lines) + "\n", encoding="utf-8")
    print(f"{late} late failures")


def described(result: object) -> str:
    """Return the outcome as the text of a cell."""
    verdict, text = getattr(result, "verdict", ""), str(getattr(result, "text", ""))
    if verdict == "works":
        z = getattr(result, "z", 0.0)
        return f"works, {z:.1f}{'*' if z > 3 else ''}"
    text = (
        text.replace(str(ROOT) + "/", "")
        .replace("|", "\\|")
        .split(" (activation of")[0]
        .split(" (target as")[0]
        .split(" (how the")[0]
    )
    return f"{'LATE' if verdict == 'late' else verdict}: {text}"


if __name__ == "__main__":
    main(sys.argv[1:])

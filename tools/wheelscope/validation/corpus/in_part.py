"""Compares the verdicts on partly read wheels with those on the whole files.

`python -m validation.corpus.in_part FOLDER` asks for every wheel of the corpus, downloads those
that are not in the folder, and prints how much of each was read. Exits with 1 if a verdict differs.
With --delete, each wheel is removed afterwards, so that a gigabyte of disk is enough.
"""

import json
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

from validation.corpus.download import arguments, chosen, fetched

QUESTIONS = Path(__file__).parents[2] / "build/wheelscope/wheelscope_questions"
SHARES = (2, 10, 50, 100)  # of a wheel's bytes, in percent
LARGE = 100_000_000


def ask(wheel: Path) -> Any:
    question = json.dumps({"ask": "part_and_whole", "file": str(wheel)})
    done = subprocess.run([QUESTIONS], input=question, capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


def differences(part: Any, whole: Any) -> list[str]:
    if part == whole:
        return []
    if not isinstance(part, dict) or not isinstance(whole, dict):
        return [f"in part {part}, whole {whole}"]
    return [f"{k}: in part {part[k]}, whole {whole[k]}" for k in whole if part[k] != whole[k]]


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--delete", action="store_true", help="keep no wheel that was compared")
    options = parser.parse_args()
    wheels = chosen(options)
    different = 0
    shares: Counter[tuple[bool, int]] = Counter()
    for path in fetched(wheels, options.folder):
        answer = ask(path)
        share = 100 * answer["read"] / answer["size"]
        shares[answer["size"] > LARGE, next(s for s in SHARES if share <= s)] += 1
        print(f"{share:6.2f} % of {answer['size'] / 1e6:6.1f} MB  {path.name}", flush=True)
        found = differences(answer["part"], answer["whole"])
        different += bool(found)
        print("".join(f"  {line}\n" for line in found), end="", flush=True)
        if options.delete:
            path.unlink()
    for large in (True, False):
        counts = ", ".join(f"{shares[large, s]} at most {s} %" for s in SHARES)
        print(f"of wheels {'above' if large else 'up to'} {LARGE // 10**6} MB were read: {counts}")
    print(f"{len(wheels)} wheels, {different} of them judged differently")
    sys.exit(different > 0)


if __name__ == "__main__":
    main()

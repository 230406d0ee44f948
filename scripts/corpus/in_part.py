"""Compares the verdicts on wheels of which only some blocks are read with those on the whole files.

`python -m scripts.corpus.in_part FOLDER` asks for every wheel in a folder, and prints how much of it was
read. It ends with 1 where a verdict differs.
"""

import argparse
import json
import subprocess
import sys
from pathlib import Path

QUESTIONS = Path(__file__).parents[2] / "build/wheelscope/wheelscope_questions"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    wheels = sorted(parser.parse_args().folder.glob("*.whl"))
    asked = "".join(
        json.dumps({"ask": "part_and_whole", "file": str(path)}) + "\n" for path in wheels
    )
    done = subprocess.run([QUESTIONS], input=asked, capture_output=True, text=True, check=True)
    different = 0
    for path, line in zip(wheels, done.stdout.splitlines(), strict=True):
        answer = json.loads(line)
        print(f"{100 * answer['read'] / answer['size']:6.2f} %  {path.name}")
        part, whole = answer["part"], answer["whole"]
        if part == whole:
            continue
        different += 1
        for key in whole if isinstance(whole, dict) else []:
            if part[key] != whole[key]:
                print(f"  {key}: in part {part[key]}, whole {whole[key]}")
    print(f"{len(wheels)} wheels, {different} of them judged differently")
    sys.exit(different > 0)


if __name__ == "__main__":
    main()

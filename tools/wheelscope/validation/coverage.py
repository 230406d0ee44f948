"""Sums up gcov's line counts: `coverage.py BUILD_FOLDER SOURCE_FOLDER LEAST_PERCENT`."""

import gzip
import json
import subprocess
import sys
import tempfile
from collections import defaultdict
from pathlib import Path


def executed_lines(build: Path, sources: Path) -> dict[str, dict[int, bool]]:
    """Maps each source file to its lines, and each line to whether a test executed it."""
    lines: dict[str, dict[int, bool]] = defaultdict(dict)
    notes = [str(path.resolve()) for path in build.rglob("*.gcda")]
    with tempfile.TemporaryDirectory() as folder:
        gcov = ["gcov", "--json-format", *notes]
        subprocess.run(gcov, cwd=folder, check=True, stdout=subprocess.DEVNULL)
        for report in Path(folder).glob("*.gcov.json.gz"):
            for file in json.loads(gzip.decompress(report.read_bytes()))["files"]:
                path = Path(file["file"])
                if not path.resolve().is_relative_to(sources.resolve()):
                    continue
                for line in file["lines"]:
                    name = str(path.resolve().relative_to(sources.resolve()))
                    seen = lines[name].get(line["line_number"], False)
                    lines[name][line["line_number"]] = seen or line["count"] > 0
    return lines


def main() -> None:
    build, sources, least = Path(sys.argv[1]), Path(sys.argv[2]), float(sys.argv[3])
    lines = executed_lines(build, sources)
    for name in sorted(lines):
        missed = [number for number, executed in lines[name].items() if not executed]
        percent = 100 - 100 * len(missed) / len(lines[name])
        print(f"{percent:6.1f}%  {name:28} {' '.join(map(str, sorted(missed)))[:90]}")
    total = sum(len(counts) for counts in lines.values())
    executed = sum(sum(counts.values()) for counts in lines.values())
    percent = 100 * executed / total
    print(f"{percent:6.1f}%  of {total} lines")
    if percent < least:
        sys.exit(f"error: {percent:.1f}% of the lines are executed; {least:.0f}% are required")


if __name__ == "__main__":
    main()

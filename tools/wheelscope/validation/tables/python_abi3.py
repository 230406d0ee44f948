"""Writes src/data/python_abi3.csv from abi3info, which carries CPython's own list."""

from importlib.metadata import version
from pathlib import Path

from abi3info import DATAS, FUNCTIONS  # type: ignore[import-untyped]

TABLE = Path("src/data/python_abi3.csv")


def main() -> None:
    added = {
        symbol.name: fact.added for table in (FUNCTIONS, DATAS) for symbol, fact in table.items()
    }
    lines = [
        f"# Symbols of Python's limited API. Source: abi3info {version('abi3info')}. "
        "Generator: make table TABLE=python_abi3",
        "symbol,first_version",
        *(f"{name},{added[name]}" for name in sorted(added)),
    ]
    TABLE.write_text("\n".join(lines) + "\n")
    print(f"{TABLE}: {len(added)} symbols")


if __name__ == "__main__":
    main()

"""Writes src/data/python_abi3.csv from abi3info, which carries CPython's own list."""

from importlib.metadata import version

from abi3info import DATAS, FUNCTIONS  # type: ignore[import-untyped]

from validation.tables import layout


def main() -> None:
    added = [
        (symbol.name, str(fact.added))
        for table in (FUNCTIONS, DATAS)
        for symbol, fact in table.items()
    ]
    head = (
        f"Symbols of Python's limited API. Source: abi3info {version('abi3info')}. "
        "Generator: make table TABLE=python_abi3"
    )
    rows = sorted(added, key=lambda row: (layout.by_version(row[1]), row[0]))
    layout.write_csv("python_abi3.csv", [head], "symbols,first_version", rows)


if __name__ == "__main__":
    main()

"""Words for people that more than one module needs."""


def counted(number: int, noun: str) -> str:
    """1 wheel, 2 wheels, 1,200 wheels"""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"

"""How messages spell numbers of things."""


def counted(number: int, noun: str, plural: str | None = None) -> str:
    """Return *number* of *noun* as people write it: "0 rows", "1 row", "2,000 rows".

    *plural* is the noun of several where it does more than take an s; 0 takes it, too.
    """
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}"

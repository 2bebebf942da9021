"""How messages spell numbers of things, and sizes."""


def counted(number: int, noun: str, plural: str | None = None) -> str:
    """Return *number* of *noun* as people write it: "0 rows", "1 row", "2,000 rows".

    *plural* is the noun of several where it does more than take an s; 0 takes it, too.
    """
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}"


def byte_size(size: float) -> str:
    """Return bytes in binary units: 512 B, 1.5 MiB, 20 GiB."""
    unit = "B"
    for unit in ("B", "KiB", "MiB", "GiB", "TiB"):
        if size < 1023.5 or unit == "TiB":
            break
        size /= 1024
    return f"{size:,.0f} {unit}" if unit == "B" or size >= 9.95 else f"{size:.1f} {unit}"

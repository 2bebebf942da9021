"""``vertumnus size``: which composition and policy for a trace, what they carry, and how sure that is."""

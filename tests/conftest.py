"""Settings that all tests share."""

from hypothesis import settings

# a deadline measures the machine's other work, not ours
settings.register_profile("vertumnus", deadline=None)
settings.load_profile("vertumnus")

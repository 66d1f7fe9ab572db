"""Settings that hold for all tests."""

import os

from hypothesis import settings

# No deadline: the first call of a compiled kernel takes seconds. In CI the examples are the same each time.
settings.register_profile("developer", deadline=None)
settings.register_profile("ci", deadline=None, derandomize=True, print_blob=True)
settings.load_profile("ci" if os.environ.get("CI") else "developer")

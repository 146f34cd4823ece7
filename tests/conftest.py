"""No progress bars in stored outputs, and the same examples for every run of the property tests."""

import os

from hypothesis import settings

os.environ["FEATLEARN_PROGRESS"] = "off"
os.environ.pop("FEATLEARN_SEED", None)
os.environ.pop("FEATLEARN_SCALE", None)
settings.register_profile("featlearn", derandomize=True, deadline=None, max_examples=40)
settings.load_profile("featlearn")

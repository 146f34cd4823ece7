"""featlearn: executable lecture notes on why neural networks beat kernels."""

from featlearn.notebook import at_scale, glue, progress
from featlearn.seeding import stream

__all__ = ["at_scale", "glue", "progress", "stream"]
__version__ = "0.1.0"

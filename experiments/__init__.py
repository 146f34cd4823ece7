"""Long runs whose results the book stores in ``featlearn/data``."""

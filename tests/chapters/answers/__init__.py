"""Wrong answers to the exercises, a module for each chapter.

{check: [(answer, what the message must say), ...]}.
"""

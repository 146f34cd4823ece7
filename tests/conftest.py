"""No progress bars in stored outputs, and the same examples for every run of the property tests."""

import ast
import os

from hypothesis import settings

from featlearn.book import notebooks

os.environ["FEATLEARN_PROGRESS"] = "off"
os.environ.pop("FEATLEARN_SEED", None)
os.environ.pop("FEATLEARN_SCALE", None)
settings.register_profile("featlearn", derandomize=True, deadline=None, max_examples=40)
settings.load_profile("featlearn")


def functions(chapter, **names):
    """The functions that a chapter defines, by name, with `names` as their surroundings.

    Only definitions are executed, and defaults only where they are plain values.
    """
    notebook = notebooks.load(notebooks.CHAPTERS / f"{chapter}.ipynb")
    tree = ast.parse("\n".join(notebooks.python(cell.source) for cell in notebooks.code(notebook)))
    tree.body = [node for node in tree.body if isinstance(node, ast.FunctionDef)]
    for function in tree.body:
        function.args.defaults = [
            d for d in function.args.defaults if isinstance(d, (ast.Constant, ast.Tuple))
        ]
    exec(compile(ast.unparse(tree), chapter, "exec"), names)
    return names

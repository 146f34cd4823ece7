#!/usr/bin/env bash
# Does the package still work with the oldest versions that it allows (tests/oldest.txt)? Installs them
# into .venv-oldest, imports the package, runs its tests and all notebooks, whose claims must hold;
# their outputs are not compared.
#
#   PYTHON=python3.10 tests/oldest.sh    names the Python, 3.10 or 3.11: older torch knows no newer one
#   VERSIONS=my.txt tests/oldest.sh      takes other versions
set -euo pipefail
cd "$(dirname "$0")/.."
python=${PYTHON:-python3}
versions=${VERSIONS:-tests/oldest.txt}
bin=.venv-oldest/bin
export FEATLEARN_PROGRESS=off MPLBACKEND=agg OMP_NUM_THREADS=1

"$python" -c 'import sys; sys.exit(not (3, 10) <= sys.version_info < (3, 12))' || {
  echo "$python is not Python 3.10 or 3.11: name one with PYTHON=..."
  exit 1
}
if [ ! -x $bin/python ]; then
  "$python" -m venv .venv-oldest
  echo '*' > .venv-oldest/.gitignore
fi
echo "Installing into .venv-oldest ..."
$bin/python -m pip install --quiet --disable-pip-version-check --constraint "$versions" \
  --editable '.[cluster]' hypothesis ipykernel nbclient nbformat pytest
$bin/python - "$versions" <<'PY'
import sys
from importlib.metadata import version
from pathlib import Path

import featlearn

for line in Path(sys.argv[1]).read_text(encoding="utf-8").split("\n"):
    name, _, asked = line.partition("==")
    if asked and version(name) != asked:
        sys.exit(f"{name} must be {asked}, got {version(name)}")
print("featlearn", featlearn.__version__, "is imported")
PY

# no conftest.py: it loads what the book needs; the wheel is built with newer tools
$bin/python -m pytest -q -o addopts= --noconftest --hypothesis-profile=ci -p no:cacheprovider \
  tests/package --ignore tests/package/test_wheel.py "$@"
$bin/python tests/run_notebooks.py chapters/*/*.ipynb

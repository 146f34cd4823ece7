#!/usr/bin/env bash
# Build the source distribution and the wheel into _build/dist, and run a chapter from the wheel in an
# empty environment. With TAG=v1.2.3 the version of the package must be 1.2.3.
set -euo pipefail
cd "$(dirname "$0")/.."
python=${PYTHON:-python3}
home=$(mktemp -d)
trap 'rm -rf "$home"' EXIT

"$python" -m venv "$home/build"
"$home/build/bin/python" -m pip install --quiet --disable-pip-version-check -c constraints.txt build
rm -rf _build/dist
"$home/build/bin/python" -m build --outdir _build/dist .
if [ -n "${TAG:-}" ]; then
  for file in _build/dist/featlearn-"${TAG#v}"{.tar.gz,-py3-none-any.whl}; do
    [ -f "$file" ] || { echo "the tag is $TAG, but $file was not built"; exit 1; }
  done
fi

"$python" -m venv "$home/empty"
"$home/empty/bin/python" -m pip install --quiet --disable-pip-version-check \
  _build/dist/*.whl ipykernel nbclient nbformat
cp tests/run_notebooks.py chapters/01_kernels/2_training.ipynb "$home"
cd "$home"
FEATLEARN_PROGRESS=off MPLBACKEND=agg empty/bin/python run_notebooks.py 2_training.ipynb

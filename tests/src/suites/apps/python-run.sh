cp -r "$INPUT/package" .
python3 -m compileall -q -f --invalidation-mode checked-hash package
python3 -c 'import importlib; print(sum(sum(getattr(importlib.import_module(f"package.m{n}"), f"C{n}")().f(2)) for n in range(1, 121)))'
find package -name '*.pyc' | sort | xargs sha256sum
# The input itself, through the view: its compiled files go there, and are found by the next import.
PYTHONPATH="$INPUT" python3 -c 'import importlib; print(sum(importlib.import_module(f"package.m{n}").VALUE for n in range(1, 121)))'
find "$INPUT" -name '*.pyc' | wc -l

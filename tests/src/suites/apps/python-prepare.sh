mkdir package
touch package/__init__.py
for n in $(seq 1 120); do
    printf 'import os\nVALUE = %s\nclass C%s:\n    """Some text."""\n    def f(self, x):\n        return [x ** k + VALUE for k in range(%s)]\n' $n $n $n > package/m$n.py
done

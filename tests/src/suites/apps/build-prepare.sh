# A program of 20 files with a header that all include, and a library.
mkdir src
echo '#define ALL 20' > src/all.h
for n in $(seq 1 20); do
    echo "int f$n(int);" >> src/all.h
    printf '#include <stdio.h>\n#include <string.h>\n#include "all.h"\nint f%s(int x) { char b[64]; snprintf(b, 64, "%%d", x * %s); return (int)strlen(b) + x; }\n' $n $n > src/f$n.c
done
{ echo '#include <stdio.h>'; echo '#include "all.h"'; echo 'int main(void) { int x = 1;'
  for n in $(seq 1 20); do echo "x = f$n(x) % 100003;"; done; printf '%s\n' 'printf("%d\n", x); return 0; }'; } > src/main.c
{
    printf 'objects := $(patsubst %%.c,%%.o,$(wildcard src/f*.c))\n'
    printf 'program: src/main.o lib.a\n\tgcc -o $@ $^\n'
    printf 'lib.a: $(objects)\n\trm -f $@\n\tar -Drcs $@ $^\n'
    printf '%%.o: %%.c src/all.h\n\tgcc -O1 -c -o $@ $<\n'
} > Makefile

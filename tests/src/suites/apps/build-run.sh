cp -r "$INPUT/." .
make -s -j 2
./program
sha256sum src/*.o lib.a
make -s -q && echo 'up to date'
touch src/f7.c
make -s -n program
make -s
./program
gcc -fsyntax-only "$INPUT"/src/*.c && echo 'input compiles'

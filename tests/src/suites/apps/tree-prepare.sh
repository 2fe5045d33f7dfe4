# All that a tree can hold: links, modes, owners, times, attributes, lists, holes, special files, odd names.
mkdir -p a/b/c empty 'odd name' many
printf 'new\nline' > 'odd name/with
newline'
printf x > "$(printf 'odd name/bytes-\377\376')"
for n in $(seq 1 150); do head -c $((n * 97)) /dev/zero | tr '\0' "$(printf '\\%03o' $((n % 64 + 48)))" > many/$n; done
seq 1 300000 > a/large
ln a/large a/b/hard
ln -s ../large a/b/soft
ln -s nowhere a/dangling
mkfifo a/fifo
mknod a/null c 1 3
chmod 4755 many/1; chmod 2750 many/2; chmod 1777 empty; chmod 000 many/3
chown 12:34 many/4; chown -h 56:78 a/dangling
truncate -s 8M sparse; printf middle | dd of=sparse bs=1 seek=4000000 conv=notrunc status=none
setfattr -n user.one -v 'some value' many/5; setfattr -n user.binary -v 0x00ff00 a/b
setfattr -n trusted.two -v deep a/large
setfacl -m u:12:rw,g:34:r many/6; setfacl -d -m u:12:rwx a/b/c; setfacl -m u:12:rx a
find . -depth -exec touch -h -d '2020-02-03 04:05:06.789012345' {} +

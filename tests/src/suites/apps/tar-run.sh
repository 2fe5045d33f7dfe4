show() {
    find . -printf '%p %y %m %U %G %s %n %T@ %l\n' | sed 's/^\(\S* d \S* \S* \S*\) \S* /\1 - /' | sort
    find . -type f -print0 | sort -z | xargs -0 sha256sum
    find . -print0 | sort -z | xargs -0 getfattr -h -d -m - --absolute-names -e hex
    find . ! -type l -print0 | sort -z | xargs -0 getfacl -n -p
}
(cd "$INPUT" && show)
tar -C "$INPUT" --xattrs --xattrs-include='*' --acls -S --sort=name --numeric-owner -cf archive.tar .
tar -tvf archive.tar --numeric-owner
mkdir out
tar -C out --xattrs --xattrs-include='*' --acls -S -p --same-owner --numeric-owner -xf archive.tar
(cd out && show)
# A cached copy may have coarser holes than its origin: a MiB.
[ "$(stat -c %b out/sparse)" -le 4096 ] && echo sparse
tar -C "$INPUT" --compare -f archive.tar && echo equal
rm -r out

show() {
    find . -printf '%p %y %m %U %G %s %n %T@ %l\n' | sed 's/^\(\S* d \S* \S* \S*\) \S* /\1 - /' | sort
    find . -type f -print0 | sort -z | xargs -0 sha256sum
    getfattr -R -h -d -m - --absolute-names -e hex . | sort
    getfacl -R -n -p . 2>/dev/null
}
(cd "$INPUT" && show)
tar -C "$INPUT" --xattrs --xattrs-include='*' --acls -S --sort=name --numeric-owner -cf archive.tar .
tar -tvf archive.tar --numeric-owner
mkdir out
tar -C out --xattrs --xattrs-include='*' --acls -S -p --same-owner --numeric-owner -xf archive.tar
(cd out && show)
[ "$(stat -c %b out/sparse)" -lt 200 ] && echo sparse
tar -C "$INPUT" --compare -f archive.tar && echo equal
rm -r out

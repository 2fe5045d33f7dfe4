# Reads of a database that is there; then four writers and two readers at once, in both journal modes.
sqlite3 -readonly "$INPUT/base.db" 'select count(*), sum(length(text)) from t; pragma integrity_check;'
cp "$INPUT/base.db" copy.db
for mode in delete wal; do
    db=$mode.db
    sqlite3 $db "pragma journal_mode=$mode; create table t(w integer, n integer, body text, primary key(w, n));"
    jobs=
    for writer in 1 2 3 4; do
        for n in $(seq 1 40); do
            echo "begin immediate; insert into t values($writer, $n, hex(zeroblob($n * 13))); commit;"
            echo "update t set body = body || '$writer' where w = $writer and n = $n;"
        done | sqlite3 -bail -cmd '.timeout 60000' $db &
        jobs="$jobs $!"
    done
    for reader in 1 2; do
        for n in $(seq 1 40); do
            echo "select case when count(*) between 0 and 160 then '' else 'wrong' end from t;"
        done | sqlite3 -bail -cmd '.timeout 60000' $db | sort -u &
        jobs="$jobs $!"
    done
    for job in $jobs; do wait "$job"; done
    sqlite3 $db 'pragma integrity_check; select w, count(*), sum(length(body)) from t group by w;'
    sqlite3 $db 'vacuum; pragma integrity_check;'
done
sqlite3 copy.db 'delete from t where n % 3 = 0; vacuum; pragma integrity_check; select count(*), sum(n) from t;'
sqlite3 copy.db .dump | sha256sum

# A repository of 200 files in 15 commits, with a tag, a branch and a merge.
export GIT_CONFIG_GLOBAL=/dev/null GIT_CONFIG_NOSYSTEM=1
export GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@b GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@b
git init -q -b main repository
cd repository
for commit in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15; do
    mkdir -p folder$commit
    for file in 1 2 3 4 5 6 7 8 9 10 11 12 13; do
        seq $commit $((commit * file * 20)) > folder$commit/file$file
        echo "$commit" >> file$file
    done
    export GIT_AUTHOR_DATE="$((1700000000 + commit)) +0000" GIT_COMMITTER_DATE="$((1700000000 + commit)) +0000"
    git add -A
    git commit -q -m "commit $commit"
done
git tag v1
git checkout -q -b side HEAD~5
echo side > side
git add side
git commit -q -m side
git checkout -q main
git merge -q -m merge side

export GIT_CONFIG_GLOBAL=/dev/null GIT_CONFIG_NOSYSTEM=1
export GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@b GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@b
export GIT_AUTHOR_DATE='1800000000 +0000' GIT_COMMITTER_DATE='1800000000 +0000'
git clone -q --no-local "$INPUT/repository" clone
git clone -q "$INPUT/repository" local
cd clone
git fsck --full --strict --no-progress
git log --format='%H %T %s' --all
git status --short --branch
find . -path ./.git -prune -o -type f -print | sort | xargs sha256sum
git checkout -q v1~3
git status --short
git checkout -q -b work
for n in 1 2 3; do seq $n 5000 > new$n; git add new$n; git commit -q -m new$n; done
git rebase -q origin/main
git gc -q
git fsck --full --no-progress
git rev-parse HEAD
git diff --stat origin/main
git -C ../local fsck --full --no-progress
git -C ../local grep -c 12 | sort | head -50

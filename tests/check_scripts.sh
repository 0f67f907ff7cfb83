#!/usr/bin/env bash
# Scripts started at once on a fresh clone build one after the other. Usage: check_scripts.sh ROOT
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$work/clone/samples" "$work/bin"
cp -r "$1/scripts" "$work/clone"
touch "$work/clone/samples/hello.cpp"
printf '#!/bin/sh\n' >"$work/clone/scripts/setup"
# A cmake that notes when it begins and ends, not before the other scripts wait, and "builds" the program.
cat >"$work/bin/cmake" <<'END'
#!/bin/sh
echo begin >>"$NOTES"
for i in $(seq 100); do grep -qs waits "$WORK/test" && grep -qs waits "$WORK/fuzz" && break; sleep 0.1; done
mkdir -p build/release/bin
printf '#!/bin/sh\n[ -e /proc/$$/fd/9 ] || echo "runs, and keeps nobody waiting"\n' >build/release/bin/hello
chmod +x build/release/bin/hello
echo end >>"$NOTES"
END
printf '#!/bin/sh\necho tested\n' >"$work/bin/ctest"
chmod +x "$work/bin"/* "$work/clone/scripts/setup"
export WORK=$work NOTES=$work/notes PATH=$work/bin:$PATH
cd "$work/clone"

expect() { # FILE WORDS...
  local file=$1 word
  shift
  for word; do
    grep -qF -- "$word" "$work/$file" || { echo "$file says nothing of '$word':"; cat "$work/$file"; exit 1; }
  done
}
scripts/run hello >"$work/run" 2>&1 &
run=$!
until [[ -s $NOTES ]]; do sleep 0.01; done
scripts/test >"$work/test" 2>&1 &
scripts/fuzz 1 1 >"$work/fuzz" 2>&1 || true & # there is no such program in this clone
wait "$run" || { cat "$work/run"; exit 1; }
wait
expect run "runs, and keeps nobody waiting"
expect test "test: waits for another build in" tested
expect fuzz "fuzz: waits for another build in"
last=end
while read -r note; do
  [[ $note != "$last" ]] || { echo "two builds at once:"; cat "$NOTES"; exit 1; }
  last=$note
done <"$NOTES"
echo "scripts: ok"

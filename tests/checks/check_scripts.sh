#!/usr/bin/env bash
# Scripts started at once on a fresh clone build one after the other; each builds its own checkout, also if it was copied
# with its build; without network, setup continues if it can. Usage: check_scripts.sh ROOT
set -euo pipefail
unset TESSERA_TEST_ALL  # the scripts below test a mock project, which has no bench
work=$(cd "$(mktemp -d)" && pwd -P)
usual_path=$PATH
trap 'rm -rf "$work"' EXIT
mkdir -p "$work/clone/samples" "$work/bin"
cp -r "$1/scripts" "$work/clone"
touch "$work/clone/samples/hello.cpp"
printf '#!/bin/sh\n' >"$work/clone/scripts/setup"
# A mock cmake that logs when it begins and ends, waits until the other scripts wait, and "builds" the program.
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
    grep -qF -- "$word" "$work/$file" || { echo "$file does not mention '$word':"; cat "$work/$file"; exit 1; }
  done
}
scripts/run hello >"$work/run" 2>&1 &
run=$!
until [[ -s $NOTES ]]; do sleep 0.01; done
scripts/test >"$work/test" 2>&1 &
scripts/fuzz 1 1 >"$work/fuzz" 2>&1 || true & # this clone has no such program
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

# A tree whose programs are "compiled" by copying their source, built by the real CMake; then copies of that tree.
export PATH=$usual_path
fail() { echo "$1" && exit 1; }
mkdir -p "$work/tree/samples"
cp -r "$1/scripts" "$1/CMakePresets.json" "$work/tree"
printf '#!/bin/sh\n' >"$work/tree/scripts/setup"
cat >"$work/tree/CMakeLists.txt" <<'END'
cmake_minimum_required(VERSION 3.25)
project(tiny LANGUAGES NONE)
file(MAKE_DIRECTORY ${CMAKE_BINARY_DIR}/bin)
enable_testing()
add_test(NAME hello COMMAND bin/hello)
foreach(name hello fuzz tessera_tests inspect)
  add_custom_target(${name} ALL COMMAND ${CMAKE_COMMAND} -E copy ${CMAKE_SOURCE_DIR}/samples/hello.cpp bin/${name})
endforeach()
END
printf '#!/bin/sh\necho hello from the first\n' >"$work/tree/samples/hello.cpp"
chmod +x "$work/tree/samples/hello.cpp"
for run in first again; do
  "$work/tree/scripts/run" hello >"$work/$run" 2>&1 || fail "$(cat "$work/$run")"
  expect $run "hello from the first"
  ! grep -q 'to rebuild' "$work/$run" || fail "a checkout's own build is rebuilt"
done
for script in "run hello" "fuzz 1 1" test "texts $work/list"; do
  rm -rf "${work:?}/copy"
  cp -a "$work/tree" "$work/copy"
  sed -i 's/first/copy/' "$work/copy/samples/hello.cpp"
  # shellcheck disable=SC2086
  (cd "$work/copy" && "scripts/"$script) >"$work/copied" 2>&1 || fail "$script: $(cat "$work/copied")"
  expect copied "${script%% *}: $work/copy/build/release was configured for $work/tree" "to rebuild"
  grep -rq "hello from the copy" "$work/copy/build/release/bin" || fail "$script: a stale program"
done
for name in hello fuzz tessera_tests inspect; do
  ! grep -qs copy "$work/tree/build/release/bin/$name" || fail "a script of the copy has built in the first tree"
done
# A build that cannot be reconfigured runs nothing.
echo 'message(FATAL_ERROR "not like this")' >>"$work/copy/CMakeLists.txt"
! "$work/copy/scripts/run" hello >"$work/refused" 2>&1 || fail "runs although CMake failed"
expect refused "not like this" "run: the build failed"
! grep -q "hello from" "$work/refused" || fail "runs although CMake failed"
# A checkout that cannot be written to: a file replaces the folder, since root may write everywhere.
rm -rf "${work:?}/copy/build"
touch "$work/copy/build"
! "$work/copy/scripts/run" hello >"$work/unwritable" 2>&1 || fail "runs without a build"
expect unwritable "run: cannot write to $work/copy/build"
(($(wc -l <"$work/unwritable") == 1)) || fail "$(cat "$work/unwritable")"

# Without network, a missing optional package is no error; a missing required one is.
mkdir "$work/offline"
cat >"$work/offline/g++" <<'END'
#!/bin/sh
case "$*" in *-print-file-name*) echo /there ;; *) cat >/dev/null && echo "MISSING $LACKS" ;; esac
END
printf '#!/bin/sh\necho "Temporary failure resolving"\nexit 100\n' >"$work/offline/apt-get"
printf '#!/bin/sh\nexec "$@"\n' >"$work/offline/sudo"
chmod +x "$work/offline"/*
offline() { PATH=$work/offline:$PATH LACKS=$1 "$root/scripts/setup" >"$work/setup" 2>&1; }
root=$1
offline libedit-dev || fail "setup: $(cat "$work/setup")"
expect setup "Temporary failure" "setup: going on without libedit-dev"
! offline libfmt-dev || fail "setup goes on without libfmt-dev"
expect setup "setup: the build needs libfmt-dev"
echo "scripts: ok"

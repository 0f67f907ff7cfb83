#!/usr/bin/env bash
# Files that must not compile, and the expected words of the compiler's errors. Usage:
#   check_compile_fail.sh bad FILES... -- COMPILER FLAGS...   do not compile; the first line is `// expect: words`. From many
#                                                             files a sample is taken, one of TESSERA_TEST_SHARE
#   check_compile_fail.sh good FILES... -- COMPILER FLAGS...  the same files without their mistakes (-DGOOD) compile, all at
#                                                             once: the test covers the mistake, not a typo beside it
set -u
how=$1
shift
files=()
while [[ $1 != -- ]]; do
  files+=("$1")
  shift
done
shift

if [[ $how == good ]]; then
  set -e
  work=$(mktemp -d)
  trap 'rm -rf "$work"' EXIT
  # The headers first: each file becomes a namespace.
  { echo '#include <tessera/tessera.hpp>' && sed -n '/^#include </p' "${files[@]}"; } >"$work/all.cpp"
  for file in "${files[@]}"; do
    printf 'namespace %s_good {\n#include "%s"\n}\n' "$(basename "$file" .cpp)" "$file" >>"$work/all.cpp"
  done
  "$@" -std=c++20 -w -fsyntax-only -DGOOD "$work/all.cpp" # -w: `main` is a function like any other there
  exit
fi

# Prints the problem with a file's error, if there is one.
check() {
  local file=$1 expected output lines
  shift
  expected=$(sed -n '1s|^// expect: ||p' "$file")
  [[ -n $expected ]] || { echo "does not begin with // expect: words"; return; }
  if output=$("$@" -std=c++20 -fsyntax-only -fno-diagnostics-color "$file" 2>&1); then
    echo "compiles, though it must not"; return
  fi
  lines=$(wc -l <<<"$output")
  if ! grep -qF -- "$expected" <<<"$output"; then
    printf "says nothing of '%s':\n%s\n" "$expected" "$output"
  elif ((lines >= 25)); then
    printf 'takes %s lines to say so, 24 are allowed:\n%s\n' "$lines" "$output"
  fi
}

share=${TESSERA_TEST_SHARE:-1} checked=0 failed=0
for file in "${files[@]}"; do
  sum=$(basename "$file" | cksum)
  ((${#files[@]} == 1 || ${sum%% *} % share == 0)) || continue
  checked=$((checked + 1))
  wrong=$(check "$file" "$@")
  [[ -z $wrong ]] || { failed=$((failed + 1)); echo "$file $wrong"; }
done
echo "$checked of ${#files[@]} files, $failed failed"
((failed == 0 && checked > 0))

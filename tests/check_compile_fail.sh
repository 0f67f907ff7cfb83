#!/usr/bin/env bash
# Files that must not compile, and what the compiler must say of them. Usage:
#   check_compile_fail.sh bad FILE COMPILER FLAGS...    does not compile; its first line is `// expect: words`
#   check_compile_fail.sh good FOLDER COMPILER FLAGS... the same files without their mistakes (-DGOOD) compile, all at
#                                                       once: what is tested is the mistake, not a typo beside it
set -u
how=$1 what=$2
shift 2
if [[ $how == good ]]; then
  set -e
  work=$(mktemp -d)
  trap 'rm -rf "$work"' EXIT
  echo '#include <tessera/tessera.hpp>' >"$work/all.cpp"
  for file in "$what"/*.cpp; do
    printf 'namespace %s_good {\n#include "%s"\n}\n' "$(basename "$file" .cpp)" "$file" >>"$work/all.cpp"
  done
  "$@" -std=c++20 -w -fsyntax-only -DGOOD "$work/all.cpp" # -w: `main` is a function like any other there
  exit
fi
expected=$(sed -n '1s|^// expect: ||p' "$what")
[[ -n $expected ]] || { echo "$what does not begin with // expect: words"; exit 1; }
if output=$("$@" -std=c++20 -fsyntax-only -fno-diagnostics-color "$what" 2>&1); then
  echo "compiles, though it must not"; exit 1
fi
lines=$(wc -l <<<"$output")
if ! grep -qF -- "$expected" <<<"$output"; then echo "says nothing of '$expected':"; echo "$output"; exit 1; fi
if ((lines >= 25)); then echo "takes $lines lines to say so, 24 are allowed:"; echo "$output"; exit 1; fi
echo "ok: $lines lines"

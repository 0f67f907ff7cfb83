#!/usr/bin/env bash
# A file that must not compile, and what the compiler must say of it.
# Usage: check_compile_fail.sh FILE COMPILER FLAGS...; the file's first line is `// expect: words`.
set -u
file=$1
shift
expected=$(sed -n '1s|^// expect: ||p' "$file")
[[ -n $expected ]] || { echo "$file does not begin with // expect: words"; exit 1; }
# The same file without the mistake compiles: what is tested is the mistake, not a typo beside it.
if ! good=$("$@" -std=c++20 -fsyntax-only -DGOOD "$file" 2>&1); then
  echo "does not compile with -DGOOD either:"; echo "$good"; exit 1
fi
if output=$("$@" -std=c++20 -fsyntax-only -fno-diagnostics-color "$file" 2>&1); then
  echo "compiles, though it must not"; exit 1
fi
lines=$(wc -l <<<"$output")
if ! grep -qF -- "$expected" <<<"$output"; then echo "says nothing of '$expected':"; echo "$output"; exit 1; fi
if ((lines >= 25)); then echo "takes $lines lines to say so, 24 are allowed:"; echo "$output"; exit 1; fi
echo "ok: $lines lines"

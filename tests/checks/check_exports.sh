#!/usr/bin/env bash
# libtessera_c exports exactly the functions of its header; a library of kernels exports its entry
# and nothing of Tessera. Usage: check_exports.sh HEADER LIBTESSERA_C LIBRARY_OF_KERNELS...
set -euo pipefail
header=$1 library=$2
shift 2
shown() { nm -D --defined-only "$1" | awk '$2 != "A" { sub(/@.*/, "", $3); print $3 }' | sort; }
declared=$(grep -oE '\btessera_[a-z_]+\(' "$header" | tr -d '(' | sort -u)
if ! diff <(echo "$declared") <(shown "$library"); then echo "< declared, > shown by $library"; exit 1; fi
for kernels in "$@"; do
  all=$(shown "$kernels")
  if ! grep -qx tessera_exported_kernels <<<"$all"; then echo "$kernels has no tessera_exported_kernels"; exit 1; fi
  if others=$(grep 7tessera <<<"$all"); then echo "$kernels shows its Tessera: $others"; exit 1; fi
done
soname=$(readelf -d "$library" | grep SONAME)
if ! grep -qE 'libtessera_c\.so\.[0-9]+\.[0-9]+\]' <<<"$soname"; then echo "no version in $soname"; exit 1; fi
echo "exports: ok"

#!/usr/bin/env bash
# Runs one of every TESSERA_TEST_SHARE matching test cases, the same ones each time; all without it or with
# TESSERA_TEST_ALL. Usage: run_share.sh TESTS SPEC
set -euo pipefail
share=${TESSERA_TEST_SHARE:-1}
[[ -z ${TESSERA_TEST_ALL:-} ]] || share=1
((share > 1)) || exec "$1" "$2" --warn NoAssertions
names=$(mktemp)
trap 'rm -f "$names"' EXIT
list() { "$1" "$2" --list-test-names-only 2>/dev/null || true; } # Catch2 2 exits with their number
if [[ -z $(list "$@") ]]; then
  list() { "$1" "$2" --list-tests --verbosity quiet; } # Catch2 3
fi
list "$@" | awk -v share="$share" 'NR % share == 1' | sed 's|,|\\,|g' >"$names" # a comma would end a name
echo "$(wc -l <"$names") of $(list "$@" | wc -l) test cases"
"$1" --input-file "$names" --warn NoAssertions

#!/usr/bin/env bash
# Builds the site. Usage: check_site.sh ROOT. It skips without Doxygen, or if Python's packages are neither installed nor can be.
set -euo pipefail
if [[ -z ${TESSERA_TEST_ALL:-} ]]; then
  echo "skipped: scripts/test --all builds the site"
  exit
fi
status=0
"$1/scripts/site" --installed || status=$?
((status != 3)) || { echo "skipped: a tool is missing"; exit; }
exit "$status"

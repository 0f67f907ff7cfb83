#!/usr/bin/env bash
# A project that uses Tessera is configured, built and run. Usage:
#   check_consumer.sh installed SOURCE COMPILER BUILD   Tessera is installed from BUILD and found by find_package
#   check_consumer.sh subdirectory SOURCE COMPILER      Tessera is a folder of the project, and oneTBB is absent
set -euo pipefail
how=$1 source=$2 compiler=$3
if [[ $how == subdirectory && -z ${TESSERA_TEST_ALL:-} ]]; then
  echo "skipped: it builds all of Tessera once more; scripts/test --all does"
  exit
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
quietly() { "$@" >"$work/log" 2>&1 || { cat "$work/log"; exit 1; }; }
consumer=(cmake -S "$source/tests/consumer" -B "$work/build" -G Ninja -DCMAKE_CXX_COMPILER="$compiler"
  -DCMAKE_BUILD_TYPE=None -DCMAKE_CXX_FLAGS=-O0 -DCMAKE_UNITY_BUILD=ON) # what compiles fastest

if [[ $how == installed ]]; then
  quietly cmake --install "$4" --prefix "$work/made"
  mv "$work/made" "$work/prefix" # it may be moved
  if grep -rF -e "$work/made" -e "$source" "$work/prefix" --include='*.cmake'; then
    echo "what is installed names the folder that it came from"
    exit 1
  fi
  quietly "${consumer[@]}" -DCMAKE_PREFIX_PATH="$work/prefix"
else
  quietly "${consumer[@]}" -DTESSERA_SOURCE="$source" -DCMAKE_DISABLE_FIND_PACKAGE_TBB=ON
fi
quietly cmake --build "$work/build"
"$work/build/vector_add"
emulator=$(find "$work" -name libtessera_emulator.so -path '*/prefix/*')
if [[ -n $emulator ]]; then TESSERA_DEVICE=emulated TESSERA_EMULATOR=$emulator "$work/build/vector_add"; fi
if [[ $how == installed ]]; then "$work/build/model" "$source/samples/models/storyteller-6m"; fi

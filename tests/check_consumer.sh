#!/usr/bin/env bash
# A project that uses Tessera is configured, built and run. Usage:
#   check_consumer.sh installed SOURCE COMPILER BUILD   it is installed from BUILD: found by find_package, as archives and as shared
#                                                       libraries, and by pkg-config
#   check_consumer.sh package SOURCE COMPILER BUILD     the same of a Debian package of BUILD
#   check_consumer.sh sources SOURCE COMPILER           it is a folder of the project, or FetchContent's, and oneTBB is absent
set -euo pipefail
how=$1 source=$2 compiler=$3
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
quietly() { "$@" >"$work/log" 2>&1 || { cat "$work/log"; exit 1; }; }
# configure FOLDER ARGS...
configure() {
  quietly cmake -S "$source/tests/consumer" -B "$work/$1" -G Ninja -DCMAKE_CXX_COMPILER="$compiler" -DCMAKE_BUILD_TYPE=None \
    -DCMAKE_CXX_FLAGS=-O0 -DCMAKE_UNITY_BUILD=ON "${@:2}" # what compiles fastest
}
make() { quietly cmake --build "$work/$1" --parallel 2; }
# What is needed of Tessera when a program starts.
shared_by() { readelf -d "$1" | grep -o 'libtessera[a-z_.0-9]*' || true; }

if [[ -z ${TESSERA_TEST_ALL:-}${TESSERA_TEST_PACKAGING:-} ]]; then
  echo "skipped: it takes long; scripts/test --all does it, and CI"
  exit
fi
if [[ $how == sources ]]; then
  configure sources -DTESSERA_SOURCE="$source" -DCMAKE_DISABLE_FIND_PACKAGE_TBB=ON
  make sources
  "$work/sources/vector_add"
  configure sources -DTESSERA_FETCHED=ON
  make sources
  "$work/sources/vector_add"
  exit
fi

if [[ $how == installed ]]; then
  quietly cmake --install "$4" --prefix "$work/made"
  mv "$work/made" "$work/prefix" # it may be moved
  prefix=$work/prefix
else
  command -v dpkg-deb >/dev/null && command -v dpkg-shlibdeps >/dev/null || { echo "skipped: there is no dpkg-dev here"; exit; }
  (cd "$work" && quietly cpack -G DEB --config "$4/CPackConfig.cmake" -B "$work/deb")
  quietly dpkg-deb -x "$work"/deb/tessera_*.deb "$work/root"
  dpkg-deb -f "$work"/deb/tessera_*.deb Package Version Depends
  prefix=$work/root/usr
fi
if grep -rF -e "$work/made" -e "$source" "$prefix" --include='*.cmake' --include='*.pc'; then
  echo "what is installed names the folder that it came from"
  exit 1
fi
for kind in OFF ON; do
  configure "build-$kind" -DCMAKE_PREFIX_PATH="$prefix" -DBUILD_SHARED_LIBS=$kind
  make "build-$kind"
  "$work/build-$kind/vector_add"
  "$work/build-$kind/model" "$source/samples/models/storyteller-6m"
done
[[ -z $(shared_by "$work/build-OFF/model") ]] || { echo "archives are asked for"; exit 1; }
for program in vector_add:libtessera.so.0.2 model:libtessera_model.so.0.2; do
  shared_by "$work/build-ON/${program%:*}" | grep -qxF "${program#*:}" || { echo "$program: not by that version"; exit 1; }
done
# Nothing is shown but what include/tessera declares.
library=$(find "$prefix" -name libtessera.so)
shown=$(nm -DC --defined-only "$library" | cut -d' ' -f3- | grep -E '^(typeinfo for |vtable for )?(tessera|spdlog)::' |
  grep -cE 'codegen|Nvrtc|spdlog|Cache' || true) # other names are the standard library's
((shown == 0)) || { echo "the shared library shows $shown names of its inside"; exit 1; }
emulator=$(find "$prefix" -name libtessera_emulator.so)
if [[ -n $emulator ]]; then
  for kind in OFF ON; do TESSERA_DEVICE=emulated TESSERA_EMULATOR=$emulator "$work/build-$kind/vector_add"; done
fi
if command -v pkg-config >/dev/null; then
  export PKG_CONFIG_PATH=$(dirname "$library")/pkgconfig
  read -ra flags <<<"$(pkg-config --cflags --libs tessera-model)"
  quietly "$compiler" -O0 "$source/tests/consumer/model.cpp" -o "$work/model" "${flags[@]}"
  LD_LIBRARY_PATH=$(dirname "$library") "$work/model" "$source/samples/models/storyteller-6m"
  read -ra flags <<<"$(pkg-config --static --cflags --libs tessera | sed 's/-ltessera /-l:libtessera.a /')"
  quietly "$compiler" -O0 "$source"/tests/consumer/{vector_add,names}.cpp -o "$work/vector_add" "${flags[@]}"
  "$work/vector_add"
fi

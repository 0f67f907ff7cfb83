#!/usr/bin/env bash
# A project that uses Tessera is configured, built and run. Usage:
#   check_consumer.sh installed SOURCE COMPILER BUILD   Tessera is installed from BUILD: found by find_package, as archives and as shared
#                                                       libraries, by pkg-config and from Python; programs find the emulator
#   check_consumer.sh package SOURCE COMPILER BUILD     the same with a Debian package of BUILD
#   check_consumer.sh sources SOURCE COMPILER BUILD     Tessera is a folder of the project, or of FetchContent, without oneTBB
set -euo pipefail
how=$1 source=$2 compiler=$3
work=$(cd "$(mktemp -d)" && pwd -P)
trap 'rm -rf "$work"' EXIT
quietly() { "$@" >"$work/log" 2>&1 || { cat "$work/log"; exit 1; }; }
# configure FOLDER ARGS...
configure() {
  quietly cmake -S "$source/tests/consumer" -B "$work/$1" -G Ninja -DCMAKE_CXX_COMPILER="$compiler" -DCMAKE_BUILD_TYPE=None \
    -DCMAKE_CXX_FLAGS=-O0 -DCMAKE_UNITY_BUILD=ON "${@:2}" # the fastest to compile
}
make() { quietly cmake --build "$work/$1" --parallel 2; }
# Tessera's libraries that a program loads when it starts.
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
  emulator=$4/bin/libtessera_emulator.so
  if [[ -e $emulator ]]; then # the build's emulator replaces the one that this build makes
    ! TESSERA_DEVICE=emulated "$work/sources/vector_add" 2>"$work/log" || { echo "an emulator from elsewhere"; exit 1; }
    grep -qF -- "cmake --build $work/sources --target tessera_emulated_device" "$work/log" || { cat "$work/log" && exit 1; }
    cmake --build "$work/sources" --target tessera_emulated_device -- -n >/dev/null
    mkdir -p "$work/sources/bin"
    cp "$emulator" "$work/sources/bin"
    TESSERA_DEVICE=emulated "$work/sources/vector_add"
  fi
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
library=$(find "$prefix" -name libtessera.so)
libdir=$(dirname "$library")
has_emulator=$(find "$libdir" -maxdepth 1 -name libtessera_emulator.so)
# Runs a program by default, on the CPU, and with the emulator, which it must find.
run() {
  "$@"
  [[ -z $has_emulator ]] || TESSERA_DEVICE=emulated "$@"
}

for kind in OFF ON; do
  configure "build-$kind" -DCMAKE_PREFIX_PATH="$prefix" -DBUILD_SHARED_LIBS=$kind
  make "build-$kind"
  run "$work/build-$kind/vector_add"
  "$work/build-$kind/model" "$source/samples/models/storyteller-6m"
done
[[ -z $(shared_by "$work/build-OFF/model") ]] || { echo "archives are asked for"; exit 1; }
version=$(sed -n 's/^project(tessera VERSION \([0-9]*\.[0-9]*\).*/\1/p' "$source/CMakeLists.txt") # as in the shared libraries' names
for program in "vector_add:libtessera.so.$version" "model:libtessera_model.so.$version"; do
  shared_by "$work/build-ON/${program%:*}" | grep -qxF "${program#*:}" || { echo "$program: not by that version"; exit 1; }
done
# Only declarations of include/tessera are exported.
shown=$(nm -DC --defined-only "$library" | cut -d' ' -f3- | grep -E '^(typeinfo for |vtable for )?(tessera|spdlog)::' |
  grep -cE 'codegen|Nvrtc|spdlog|Cache' || true) # other names belong to the standard library
((shown == 0)) || { echo "the shared library shows $shown names of its inside"; exit 1; }

# By pkg-config, the shared libraries and the archives, at a high warning level: the headers cause no warnings. The package's are
# system headers only in /usr.
warnings=(-Wall -Wextra -Wpedantic)
if [[ $how == installed ]]; then warnings+=(-Wshadow -Wconversion -Wsign-conversion -Wold-style-cast -Werror); fi
if command -v pkg-config >/dev/null; then
  export PKG_CONFIG_PATH=$libdir/pkgconfig
  if [[ $how == package ]]; then export LD_LIBRARY_PATH=$libdir; fi # like /usr/lib, where the package installs it
  kinds=("" -static)
  if [[ $how == package ]]; then kinds=(""); fi # halves the time
  for kind in "${kinds[@]}"; do
    for program in model:tessera-model "vector_add names:tessera"; do
      sources=()
      for name in ${program%:*}; do sources+=("$source/tests/consumer/$name.cpp"); done
      read -ra flags <<<"$(pkg-config --cflags --libs "${program#*:}$kind")"
      quietly "$compiler" -O0 "${warnings[@]}" "${sources[@]}" \
        -o "$work/${program#*:}$kind" "${flags[@]}"
    done
    run "$work/tessera$kind"
    "$work/tessera-model$kind" "$source/samples/models/storyteller-6m"
  done
  [[ $how == package || -z $(shared_by "$work/tessera-model-static") ]] || { echo "archives are asked for"; exit 1; }
fi

# The programs, and the demo with its second device.
"$prefix/bin/tessera-generate" --temp 0 -n 4 "Once upon a time" | grep -q . || { echo "tessera-generate prints nothing"; exit 1; }
TESSERA_DEVICE=cpu "$prefix/bin/tessera-demo" kernel,code,devices >"$work/demo" || { cat "$work/demo"; exit 1; }
if [[ -n $has_emulator ]] && ! grep -q emulated "$work/demo"; then cat "$work/demo" && exit 1; fi

# From Python, by the single line of the documentation.
if command -v python3 >/dev/null; then
  export PYTHONPATH=$libdir/tessera/python
  env -u TESSERA_C python3 "$source/tests/consumer/launch.py" "$work/build-OFF/libkernels.so"
  [[ -z $has_emulator ]] || env -u TESSERA_C python3 "$source/tests/consumer/launch.py" "$work/build-OFF/libkernels.so" emulated
fi

# The pages' code compiles with the installed headers.
if [[ $how == installed ]] && command -v python3 >/dev/null; then
  python3 "$source/tests/snippets.py" "$source"/README.md "$source"/docs/*.md >"$work/snippets.cpp"
  quietly "$compiler" -std=c++20 -fsyntax-only -I"$prefix/include" "$work/snippets.cpp"
fi

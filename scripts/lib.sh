# Shared by the scripts that build; they source this file. `root` is the checkout, `build` its build folder.
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
build="$root/build/release"
me=$(basename "$0")

# of_this_tree SOURCE BUILD: whether BUILD is not configured yet, or was configured for SOURCE and in its present place.
# Build rules contain both paths, so in a copied or moved checkout they would build the original one.
of_this_tree() {
  local cache="$2/CMakeCache.txt"
  [[ -e $cache ]] || return 0
  configured_for=$(sed -n 's/^CMAKE_HOME_DIRECTORY:INTERNAL=//p' "$cache")
  [[ $configured_for -ef $1 && $(sed -n 's/^CMAKE_CACHEFILE_DIR:INTERNAL=//p' "$cache") -ef $2 ]]
}

# drop_build_of_another_tree SOURCE BUILD
drop_build_of_another_tree() {
  of_this_tree "$1" "$2" && return
  echo "$me: $2 was configured for $configured_for, or in another place: removing it to rebuild" >&2
  rm -rf "$2"
}

# Locks the build folder for this script, with file descriptor 9: one build at a time.
take_build() {
  if ! { mkdir -p "$root/build" && : >>"$root/build/lock"; } 2>/dev/null; then
    echo "$me: cannot write to $root/build; copy the checkout to a folder of yours, or build by hand: cmake -S $root -B FOLDER" >&2
    exit 1
  fi
  exec 9>"$root/build/lock"
  flock -n 9 || { echo "$me: waits for another build in $root/build" >&2 && flock 9; }
  drop_build_of_another_tree "$root" "$build"
}

# Configures the release build unless that is done already. A unity build compiles everything faster; to rebuild single
# files faster, configure without it.
configure() { [[ -f $build/build.ninja && -f $build/CMakeCache.txt ]] || (cd "$root" && cmake --preset release -DCMAKE_UNITY_BUILD=ON); }

# build_quietly TARGETS...: sets up, configures and builds. If that fails, prints the compiler's lines and the context of
# each error, which includes the author's line; not the commands.
build_quietly() {
  local log="$root/build/$me.log"
  "$root/scripts/setup"
  if ! { configure && cmake --build "$build" --target "$@"; } >"$log" 2>&1; then
    { grep -E -B8 -A4 'error:|CMake Error' "$log" | grep -vE '^(FAILED|\[|/usr/bin/c\+\+)' | head -60 || tail -20 "$log"; } >&2
    echo "$me: the build failed; the whole log is $log" >&2
    exit 1
  fi
}

#!/usr/bin/env bash
# Checks which layers and folders may include which, and how long a file may be. Usage: check_layers.sh ROOT
set -euo pipefail
cd "$1"
declare -A may=(
  [graph]="graph" [dsl]="dsl graph" [cpu]="cpu graph" [codegen]="codegen graph"
  [jit]="jit codegen cpu graph" [api]="api dsl jit graph" [tensors]="tensors api dsl jit graph"
  [model]="model api jit graph" [c]="c model api jit graph"
)
bad=0
folders() { for root in src include/tessera; do [[ ! -d $root/$1 ]] || echo "$root/$1"; done; }
for layer in "${!may[@]}"; do
  while IFS=: read -r file line text; do
    [[ $text =~ '#include "'(tessera/)?([a-z]+)/ ]]
    included=${BASH_REMATCH[2]}
    [[ -v may[$included] ]] || continue
    if [[ " ${may[$layer]} " != *" $included "* ]]; then
      echo "$file:$line: $layer may include ${may[$layer]}, not $included"
      bad=1
    fi
  done < <(grep -rnE '#include "(tessera/)?[a-z]+/' $(folders "$layer") --include='*.hpp' --include='*.cpp' --include='*.def' || true)
done
# Public headers need nothing from src.
if grep -rnE '#include "' include/tessera --include='*.hpp' --include='*.def' | grep -v '#include "tessera/'; then
  echo "headers of include/tessera may include only each other"
  bad=1
fi
# Folders of a layer ("rooms"), in the order in which a kernel passes through them, and the folders that each may include. Files at a
# layer's root connect the folders: a folder includes only those root files that are named here.
declare -A may_room=(
  [codegen/target]="" [codegen/layout]="" [codegen/plan]="layout target" [codegen/plan/verify]="plan layout target"
  [codegen/analysis]="plan layout target" [codegen/author]="analysis plan layout target prelude"
  [codegen/schedule]="schedules.def analysis plan layout target" [codegen/lower]="schedule analysis plan layout target"
  [codegen/forms]="schedule analysis plan layout target" [codegen/lower/sm90]="lower schedule analysis plan layout target" [codegen/passes/graph]="passes.hpp"
  [codegen/passes/plan]="passes.def lower lower/sm90 schedule analysis plan layout prelude target"
  [codegen/emit]="plan layout target" [codegen/prelude]=""
  [jit/options]="" [jit/inspect]="" [jit/profile]="options" [jit/compile]="options inspect profile" [jit/backend]="" [jit/cpu]="options compile backend profile"
  [jit/cuda]="options compile backend profile" [jit/device]="options compile cpu cuda backend profile" [jit/tensor]="backend"
  [jit/launch]="options compile cpu backend tune profile" [jit/tune]="options compile cpu backend"
)
room_of() { [[ $1 == */* ]] && echo "${1%/*}" || echo "$1"; }
for room in "${!may_room[@]}"; do
  layer=${room%%/*}
  while IFS=: read -r file line text; do
    [[ $text =~ '#include "'$layer/([a-z0-9_./]+)\" ]]
    included=$(room_of "${BASH_REMATCH[1]}")
    if [[ $included != "${room#*/}" && " ${may_room[$room]} " != *" $included "* ]]; then
      echo "$file:$line: $room may include its own folder and: ${may_room[$room]:-none}, not $layer/$included"
      bad=1
    fi
  done < <(grep -nE "#include \"$layer/[a-z0-9_./]+" src/$room/*.[hcd]* || true)
done
# A folder must be small enough to take in at a glance.
while read -r files folder; do
  if ((files > 30)); then
    echo "$folder: $files files, more than 30; split it"
    bad=1
  fi
done < <(find src include -type f -printf '%h\n' | sort | uniq -c)
# A file has one topic.
while read -r lines file; do
  [[ $file != total ]] || continue
  most=700
  [[ $file == src/codegen/* ]] && most=500
  if ((lines > most)); then
    echo "$file: $lines lines, more than $most; split it by topic"
    bad=1
  fi
done < <(find src include -type f -exec wc -l {} +)
[[ $bad == 0 ]] && echo "layers: ok"
exit $bad

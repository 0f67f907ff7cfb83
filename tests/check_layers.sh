#!/usr/bin/env bash
# Who may include whom, and how long a file may be. Usage: check_layers.sh ROOT
set -euo pipefail
cd "$1"
declare -A may=(
  [graph]="graph" [dsl]="dsl graph" [cpu]="cpu graph" [codegen]="codegen graph"
  [jit]="jit codegen cpu graph" [api]="api dsl jit graph" [model]="model api jit graph"
  [c]="c api jit graph"
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
# What users include stands by itself: of src it needs nothing.
if grep -rnE '#include "' include/tessera --include='*.hpp' --include='*.def' | grep -v '#include "tessera/'; then
  echo "headers of include/tessera may include only one another"
  bad=1
fi
# Rooms of a layer, in the order that a kernel walks through them: who may include which of the others.
declare -A may_room=(
  [codegen/passes]="" [codegen/plan]="" [codegen/lower]="plan prelude" [codegen/emit]="plan" [codegen/prelude]=""
  [jit/options]="" [jit/compile]="options" [jit/cpu]="options compile" [jit/cuda]="compile options"
)
for room in "${!may_room[@]}"; do
  layer=${room%/*}
  while IFS=: read -r file line text; do
    [[ $text =~ '#include "'$layer/([a-z]+)/ ]]
    included=${BASH_REMATCH[1]}
    if [[ $included != "${room#*/}" && " ${may_room[$room]} " != *" $included "* ]]; then
      echo "$file:$line: $room may include its own room and: ${may_room[$room]:-none}, not $layer/$included"
      bad=1
    fi
  done < <(grep -rnE "#include \"$layer/[a-z]+/" "src/$room" --include='*.hpp' --include='*.cpp' --include='*.def' || true)
done
# A file has one idea.
while read -r lines file; do
  [[ $file != total ]] || continue
  most=700
  [[ $file == src/codegen/* ]] && most=500
  if ((lines > most)); then
    echo "$file: $lines lines, more than $most: it has several ideas, each of which wants a file"
    bad=1
  fi
done < <(find src include -type f -exec wc -l {} +)
[[ $bad == 0 ]] && echo "layers: ok"
exit $bad

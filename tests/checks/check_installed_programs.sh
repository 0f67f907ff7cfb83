#!/usr/bin/env bash
# Installs the programs and runs them under their installed names. Usage: check_installed_programs.sh BUILD
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cmake --install "$1" --component programs --prefix "$work/made" >"$work/log" || { cat "$work/log"; exit 1; }
mv "$work/made" "$work/prefix" # an install can be moved
prefix=$work/prefix
fail() { echo "$1" >&2 && exit 1; }

for name in generate score tokenize inspect demo bench perplexity tune; do
  program=$prefix/bin/tessera-$name
  [[ $("$program" --version) == "tessera-$name (Tessera "* ]] || fail "$program does not use its installed name"
  cmp <("$program" --man) "$prefix/share/man/man1/tessera-$name.1"
  cmp <("$program" --completion bash) "$prefix/share/bash-completion/completions/tessera-$name"
  cmp <("$program" --completion zsh) "$prefix/share/zsh/site-functions/_tessera-$name"
  cmp <("$program" --completion fish) "$prefix/share/fish/vendor_completions.d/tessera-$name.fish"
done
(($(ls "$prefix/bin" | wc -l) == 8)) || fail "the install has other programs than those named here"
# So is the tuning worker.
TESSERA_CACHE_DIR=$work/cache "$prefix/bin/tessera-tune" 16x64x64 --device cpu >"$work/log" 2>&1 || fail "$(cat "$work/log")"
# A program finds its own copy of the model only by its own location.
rm "$prefix/share/tessera/models/storyteller-6m/vocab.json"
! "$prefix/bin/tessera-tokenize" "Once" 2>"$work/log" || fail "the program does not use the installed model"
grep -qF "$prefix/share/tessera/models/storyteller-6m" "$work/log" || fail "$(cat "$work/log")"

#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Writes the patches that add plugin directories to the tree, one for each directory of plugins/: byte for byte the same
# files, at pkg/scheduler/framework/plugins. Also updates the patch that selects the Go release of the binary's run-time
# defaults to the one in upstream.version.
#
# Inputs: plugins/, upstream.version; arguments: --check (change nothing, fail on a difference).
# Output: patches/0200-plugin-<directory>.patch, and the line //go:debug default= of the patch that has one.
# Exit: 0 up to date or updated; 1 a difference (--check), or nothing was changed.
source "$(dirname "${BASH_SOURCE[0]}")/environment.sh"

source "$(dirname "${BASH_SOURCE[0]}")/registry.sh"

need git
lock
gone=()
while IFS= read -r name; do
  [[ -n $(find "$ROOT/plugins/$name" -name '*.go' -print -quit 2> /dev/null) ]] || gone+=("$name")
done < <(registered)
if ((${#gone[@]})); then
  printf -v next '; make remove-plugin NAME=%s' "${gone[@]}"
  next="remove it from the registry: ${next#; }"
  for name in "${gone[@]}"; do
    patch=$PATCHES_DIR/0200-plugin-$name.patch
    if [[ -n $(git -C "$ROOT" ls-files -- "plugins/$name" 2> /dev/null) ]]; then
      next+="  |  restore the directory: git checkout -- plugins/$name"
    elif [[ -f $patch ]]; then
      next+="  |  restore its last content, which remove-plugin would delete: git apply -p5 --directory=plugins $patch"
    fi
  done
  fail "the registry has plugins without a directory: ${gone[*]/#/plugins/}" "$next"
fi
use_pinned_go
rm -rf "$OUTPUT"/.patches.*
work=$(mktemp -d "$OUTPUT/.patches.XXXXXX")
trap 'rm -rf "$work"' EXIT
mkdir "$work/made"
export GIT_DIR=$work/git GIT_INDEX_FILE=$work/index
git init -q --bare "$GIT_DIR"
# Sources are not executable, even on a Windows mount or after unpacking a zip file.
git config core.fileMode false
empty=$(git commit-tree "$(git hash-object -t tree -w --stdin < /dev/null)" -m empty)
# Scratch files of editors, and other files that the project's .gitignore excludes, do not belong in a patch.
git --work-tree="$ROOT/plugins" -c core.excludesFile="$ROOT/.gitignore" add -A -- .
# "<directory> <synopsis>", one line per package.
packages=$(GOWORK=off GOFLAGS='' go list -C "$ROOT/plugins" -find -f '{{.Dir}} {{.Doc}}' ./...) || exit

for folder in "$ROOT"/plugins/*/; do
  name=$(basename "$folder")
  # A directory may remain when another branch is checked out.
  [[ -n $(find "$folder" -name '*.go' -print -quit) ]] || continue
  # The synopsis of the plugin's package, or those of all packages in the directory.
  about=$(sed -n "s#^$ROOT/plugins/$name ##p" <<< "$packages")
  [[ -n $about ]] || about=$(sed -n "s#^$ROOT/plugins/$name/[^ ]* ##p" <<< "$packages" | sed '/^$/d')
  [[ -n $about ]] || fail "no package in plugins/$name has a package comment" "begin one of its files with '// Package …'"
  tree=$(git write-tree --prefix="$name/")
  for above in "$name" plugins framework scheduler pkg; do
    tree=$(printf '040000 tree %s\t%s\n' "$tree" "$above" | git mktree)
  done
  commit=$(git commit-tree "$tree" -p "$empty" << EOF
plugins: add $name

$about

Why: plugins/$name is developed outside the tree, against pristine upstream;
 this patch puts it at its import path.
Upstream-Status: Inappropriate
Applies-To: v1.23.0 - v1.23.17
Drop-When: plugins/$name is deleted
EOF
  )
  export_patch "$work" "$commit" > "$work/made/0200-plugin-$name.patch"
done

# A newer Go thus brings its own defaults, and never silently keeps old ones.
[[ $GO_VERSION =~ ^go1\.[0-9]+ ]]
while IFS= read -r patch; do
  sed "s|^+//go:debug default=.*|+//go:debug default=${BASH_REMATCH[0]}|" "$patch" > "$work/made/${patch##*/}"
done < <(grep -ls '^+//go:debug default=' "$PATCHES_DIR"/*.patch | grep -v /0200-plugin-)

changed=()
shopt -s nullglob
for patch in "$work"/made/*.patch "$PATCHES_DIR"/0200-plugin-*.patch; do
  name=${patch##*/}
  cmp -s "$work/made/$name" "$PATCHES_DIR/$name" && continue
  [[ " ${changed[*]} " == *" $name "* ]] || changed+=("$name")
done
if ((${#changed[@]})) && [[ ${1:-} == --check ]]; then
  fail "patches/ differs from plugins/ or upstream.version: ${changed[*]}" "make patches"
fi
for name in "${changed[@]}"; do
  if [[ -f $work/made/$name ]]; then
    cp "$work/made/$name" "$PATCHES_DIR/.$name.new"
    mv "$PATCHES_DIR/.$name.new" "$PATCHES_DIR/$name"
    say "patches: $name updated"
  else
    rm "$PATCHES_DIR/$name"
    say "patches: $name removed: plugins/ has no such directory"
  fi
done
((${#changed[@]})) || say "patches: the plugin patches are up to date: skipped"

#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Puts Kubernetes' source at the wanted tag into _output/kubernetes, as a commit that is exactly upstream's tree.
#
# Inputs: upstream.version; the patches that make-patches.sh wrote; UPSTREAM (another v1.23.x), SOURCE (auto, git, module), KUBERNETES_GIT_URL.
# Exit: 0 the base is there; 1 it could not be had, and nothing was changed; 3 the module proxy does not offer it.
source "$(dirname "${BASH_SOURCE[0]}")/environment.sh"

SOURCE=${SOURCE:-auto}
KUBERNETES_GIT_URL=${KUBERNETES_GIT_URL:-https://github.com/kubernetes/kubernetes.git}
STAGE=$OUTPUT/.source

# in_place: the base that is recorded for this version is the one that is wanted.
in_place() {
  [[ -d $TREE/.git ]] || return 1
  local from
  from=$(recorded "base.$VERSION.from")
  [[ -n $(recorded "base.$VERSION.tree") && ($SOURCE == auto || $SOURCE == "$from") ]] || return 1
  ! pinned || [[ $(recorded "base.$VERSION.commit") == "$KUBERNETES_COMMIT" && $(recorded "base.$VERSION.sum") == "$KUBERNETES_SUM" ]]
}

# choose answers git or module for SOURCE=auto.
choose() {
  local answer=0
  timeout 8 git ls-remote --exit-code "$KUBERNETES_GIT_URL" "refs/tags/$VERSION" > /dev/null 2>&1 || answer=$?
  case $answer in
    0) SOURCE=git; say "source: $KUBERNETES_GIT_URL answers and has $VERSION: using git" ;;
    2) fail "$KUBERNETES_GIT_URL has no tag $VERSION" "make image UPSTREAM=$KUBERNETES_VERSION" ;;
    *) SOURCE=module; say "source: $KUBERNETES_GIT_URL does not answer: using Go modules (SOURCE=git forces git)" ;;
  esac
}

fetch_git() {
  local commit
  say "source: git fetch $VERSION from $KUBERNETES_GIT_URL"
  git init -q "$STAGE"
  configure
  git -C "$STAGE" fetch -q --depth 1 --no-tags "$KUBERNETES_GIT_URL" "refs/tags/$VERSION:refs/tags/$VERSION" ||
    fail "tag $VERSION cannot be fetched from $KUBERNETES_GIT_URL" "check the tag and the address (KUBERNETES_GIT_URL=…), or make image SOURCE=module"
  commit=$(git -C "$STAGE" rev-parse "refs/tags/$VERSION^{commit}")
  if pinned && [[ $commit != "$KUBERNETES_COMMIT" ]]; then
    fail "tag $VERSION at $KUBERNETES_GIT_URL points to commit $commit, but upstream.version pins $KUBERNETES_COMMIT: a moved tag or another repository" \
      "find out who moved it; make image SOURCE=module uses the release that is in the checksum database"
  fi
  git -C "$STAGE" checkout -q --detach "$commit"
  # As the go command has it: module zips, and so their sums, are made without export attributes.
  printf '* -export-subst -export-ignore\n' > "$STAGE/.git/info/attributes"
  if pinned; then
    facts=$("$build" source checkout "$VERSION" "$STAGE") || exit
  else
    facts=$("$build" source checkout --checksum-database "$VERSION" "$STAGE") || exit
  fi
}

fetch_modules() {
  say "source: $VERSION from Go modules"
  mkdir "$STAGE"
  facts=$("$build" source modules "$VERSION" "$STAGE") || exit
  git init -q "$STAGE"
  configure
  # Upstream's own .gitignore would leave out vendored files whose names it ignores.
  git -C "$STAGE" add --force --all
  git -C "$STAGE" checkout -q --orphan build
  git -C "$STAGE" commit -q -m "Kubernetes $VERSION, put together from Go modules"
  # Branches are the user's.
  git -C "$STAGE" checkout -q --detach
  git -C "$STAGE" branch -q -D build
}

configure() {
  git -C "$STAGE" config core.autocrlf false
  git -C "$STAGE" config core.symlinks true
  git -C "$STAGE" config core.fileMode true
  git -C "$STAGE" config gc.auto 0
}

# fact NAME: one value of the KEY=VALUE lines in $facts.
fact() { sed -n "s/^$1=//p" <<< "$facts"; }

check_sum() {
  local sum
  sum=$(fact sum)
  if [[ -z $(fact commit) ]]; then
    if pinned; then
      # The proxy does not know the commit; the sum, which is checked next, vouches for the pinned one.
      facts+=$'\n'commit=$KUBERNETES_COMMIT
      facts=${facts/#commit=$'\n'/}
    else
      say "source: the module proxy does not report the commit of $VERSION; to pin it: git ls-remote $KUBERNETES_GIT_URL 'refs/tags/$VERSION^{}'"
    fi
  fi
  if ! pinned; then
    say "source: $VERSION is NOT pinned in upstream.version; its sum in the checksum database is $sum"
  elif [[ $sum != "$KUBERNETES_SUM" ]]; then
    fail "the source of $VERSION has the sum $sum, but upstream.version pins $KUBERNETES_SUM" \
      "if upstream.version is right, see where the source comes from (KUBERNETES_GIT_URL, go env GOPROXY); do not build it"
  elif [[ $(fact commit) != "$KUBERNETES_COMMIT" ]]; then
    fail "$VERSION was made from commit $(fact commit), but upstream.version pins $KUBERNETES_COMMIT" "correct the pin: see 'Change the pin' in README.md"
  fi
}

# install puts the finished stage in place: by one rename the first time, as objects of the same repository later.
install() {
  local base repository=$STAGE
  base=$(git -C "$STAGE" rev-parse HEAD)
  if [[ -d $TREE ]]; then
    repository=$TREE
    git -C "$TREE" fetch -q --depth 1 --no-tags "$STAGE" "$base"
  fi
  git -C "$repository" update-ref "refs/upstream/$VERSION/$SOURCE" "$base"
  record "base.$VERSION.from" "$repository" "$SOURCE"
  record "base.$VERSION.commit" "$repository" "$(fact commit)"
  record "base.$VERSION.sum" "$repository" "$(fact sum)"
  record "base.$VERSION.time" "$repository" "$(fact time)"
  record "base.$VERSION.tree" "$repository" "$base"
  [[ $repository == "$TREE" ]] || mv "$STAGE" "$TREE"
  rm -rf "$STAGE"
  say "source: $VERSION is in place, commit $(fact commit), $(fact sum)"
}

# refuse_others ends the script for a release outside the range in a patch's Applies-To: the series is not known to
# compile there. The step "applies" of the tests proves the ranges.
refuse_others() {
  local oldest newest patch read=0 all=0
  while read -r oldest newest patch; do
    ((${VERSION##*.} >= oldest && ${VERSION##*.} <= newest)) ||
      fail "${patch##*/} is not known to compile on $VERSION: its Applies-To is v1.23.$oldest - v1.23.$newest" \
        "make image UPSTREAM=$KUBERNETES_VERSION; docs/patches.md, 'Another release', says how to widen the range"
    read=$((read + 1))
  done < <(grep -rs --include='*.patch' '^Applies-To: ' "$PATCHES_DIR" |
    sed -n 's/^\(.*\):Applies-To: v1\.23\.\([0-9][0-9]*\) - v1\.23\.\([0-9][0-9]*\)$/\2 \3 \1/p')
  for patch in "$PATCHES_DIR"/*.patch; do
    [[ ! -f $patch || ${patch##*/} == "$MODULES_PATCH" ]] || all=$((all + 1))
  done
  ((all > 0 && read == all)) ||
    fail "$read of $all patches in $PATCHES_DIR say to which releases they apply" "make patches; make verify names a message without Applies-To"
}

case $SOURCE in auto | git | module) ;; *) fail "SOURCE=$SOURCE is unknown" "make image SOURCE=auto, git or module" ;; esac
need git grep sed
refuse_others
lock
if [[ (-e $TREE || -L $TREE) && ! -f $TREE/.git/kube-scheduler ]]; then
  fail "$TREE was not made by this project" "move it away, then run the same command again"
fi
if in_place; then
  say "source: $VERSION ($(recorded "base.$VERSION.from")) is in place: skipped"
  exit 0
fi
use_pinned_go
build=$(build_tool kube-scheduler-build)
rm -rf "$STAGE"
trap 'rm -rf "$STAGE"' EXIT
[[ $SOURCE != auto ]] || choose
case $SOURCE in git) fetch_git ;; module) fetch_modules ;; esac
check_sum
install

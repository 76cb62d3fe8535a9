#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Finds the first patch of the series with which a command fails: git bisect over the commits of the patched tree, in a
# scratch work tree. _output/kubernetes itself, and edits in it, stay as they are.
#
# Inputs: the tree that apply-patches.sh made; (environment) TEST, a command for bash; FROM, the name of a patch with
# which it passes, or its beginning (upstream's commit). The command runs in the scratch work tree, with GOWORK=off,
# CGO_ENABLED=0, GOFLAGS=-trimpath (Go's build cache then serves all commits), and the pinned Go. Its exit status counts
# as for git bisect run: 0 passes, 125 cannot be tested, anything else fails. Exit: 0 found; 1 not.
source "$(dirname "${BASH_SOURCE[0]}")/environment.sh"

[[ -n ${TEST:-} ]] || fail "TEST is not set" "make bisect TEST='go test ./pkg/scheduler/…'; docs/patches.md, 'Bisect'"
need git sha256sum
patches_applied || fail "the patches are not applied to $VERSION" "make tree"
use_pinned_go
read_series "$(build_tool kube-scheduler-build)"
head=$(recorded applied.head)
[[ $(recorded applied.series) == "$head $(what_is_applied)" ]] ||
  fail "$PATCHES_DIR or $MODULES_FILE has changed since the patches were applied" "make tree"

work=$(mktemp -d "$OUTPUT/.bisect.XXXXXX")
trap 'rm -rf "$work"; git -C "$TREE" worktree prune' EXIT
trap 'trap - ERR; exit 130' INT TERM HUP
git -C "$TREE" worktree add -q --no-checkout --detach "$work/tree" "$head"
cd "$work/tree"

# names has a line for each commit, oldest first: its hash, and the name of its patch.
start=$(recorded applied.base) from="upstream's $VERSION"
names=$(git rev-list --reverse "$start..$head" | tail -n "${#patches[@]}" | paste -d' ' - <(printf '%s\n' "${patches[@]##*/}"))
if ((${#patches[@]} < $(git rev-list --count "$start..$head"))); then
  names="$(git rev-parse "$head~${#patches[@]}") the packages of modules.yaml"$'\n'$names
fi
if [[ -n ${FROM:-} ]]; then
  read -r start from < <(grep -m1 "^[0-9a-f]* ${FROM//./\\.}" <<< "$names") ||
    fail "no patch of the series has a name that begins with FROM=$FROM" "ls $PATCHES_DIR"
fi
[[ -n ${FROM:-} ]] || names+=$'\n'"$start $from"

# step runs the command at the current commit. Files that it changes do not stay.
# shellcheck disable=SC2016
step='
commit=$(git rev-parse HEAD) status=0 said=passes
bash -c "$TEST" > "$LOGS/$commit" 2>&1 < /dev/null || status=$?
git reset -q --hard && git clean -qfd
# git bisect would stop at the status of a command that was killed.
((status < 128 || status == 130)) || status=1
case $status in 0) ;; 125) said="cannot be tested" ;; *) said=fails ;; esac
printf "bisect: %s with %s (%d s)\n" "$said" "$(sed -n "s/^$commit //p" <<< "$NAMES")" "$SECONDS" >&3
exit "$status"'
export TEST NAMES=$names LOGS=$work/logs GOWORK=off CGO_ENABLED=0 GOFLAGS=-trimpath
mkdir "$LOGS"

# result COMMIT sets status to that of the command.
result() {
  status=0
  git checkout -q --force --detach "$1"
  bash -c "$step" 3>&1 || status=$?
}
# output COMMIT prints the end of the command's output.
output() { tail -n 20 "$LOGS/$1" | sed 's/^/    /' >&2; }

result "$head"
case $status in
  0) fail "the command passes with all ${#patches[@]} patches" "check that the command fails where it should: (cd $TREE && $TEST)" ;;
  125) output "$head"; fail "the command cannot be tested with all patches: its exit status is 125" "read its output above" ;;
esac
result "$start"
if ((status)); then
  output "$start"
  fail "the command already fails with $from" \
    "read its output above; if it needs something that a patch adds, name that patch: make bisect FROM=0310 TEST=…"
fi

say "bisect: $(git rev-list --count "$start..$head") commits"
git bisect start "$head" "$start" > "$work/log" 2>&1
git bisect run bash -c "$step" 3>&1 >> "$work/log" 2>&1 || status=$?
case $status in
  0) ;;
  2)
    grep -F -f <(git rev-list refs/bisect/bad --not --glob='refs/bisect/good-*') <<< "$names" | sed 's/^[^ ]* /    /' >&2
    fail "the first patch with which the command fails is one of these: the others cannot be tested" "make it possible to test them, or read them"
    ;;
  *) tail -n 5 "$work/log" >&2; fail "git bisect stopped" "read its output above" ;;
esac
first=$(git rev-parse refs/bisect/bad)
output "$first"
name=$(sed -n "s/^$first //p" <<< "$names")
say "bisect: the command first fails with $name (its output is above)"
say "next:    git -C $TREE show $first"

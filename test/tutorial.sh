#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Tests docs/tutorial-v1.23.1.md up to the bundle: a new plugin, pods on v1.23.1's own kube-apiserver, the image.
#
# Output: none; it works in a clone. Exit: 0 all passed; 1 not.
source "$(dirname "${BASH_SOURCE[0]}")/../scripts/environment.sh"

work=$(mktemp -d "${TMPDIR:-/var/tmp}/tutorial.XXXXXX")
trap 'trap - ERR; chmod -R u+w "$work"; rm -rf --one-file-system "$work"' EXIT
trap 'exit 130' INT TERM HUP
git clone --quiet --no-hardlinks "$ROOT" "$work/checkout"
cd "$work/checkout"
unset OUTPUT UPSTREAM
grep -E '^    make ' docs/tutorial-v1.23.1.md > "$work/commands"
[[ $(wc -l < "$work/commands") == 3 ]] || fail "docs/tutorial-v1.23.1.md has $(wc -l < "$work/commands") commands of make instead of 3" "update test/tutorial.sh"
while read -r command; do
  say "tutorial: $command"
  bash -e -c "$command" < /dev/null
done < "$work/commands" 2>&1 | tee "$work/log"
grep -q '^kube-apiserver  *Kubernetes v1.23.1$' "$work/log" || fail "the pods are not on the kube-apiserver of v1.23.1" "read the output above"
grep -Eq '^nginx +my-scheduler +node-' "$work/log" || fail "my-scheduler has not placed the nginx pod" "read the output above"

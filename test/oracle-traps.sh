#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Tests that the oracle detects mistakes: plants one fault after the other in a copy of upstream's tree, each a likely
# mistake of a speed patch, and checks that the oracle finds a difference from stock; and faults in a copy of the patched
# tree, in what it remembers between cycles, which the oracle or a unit test must find. Each takes about half a minute.
#
# Inputs: the tree that apply-patches.sh made; SCENARIOS (200) for each; TRAPS (.), a regular expression of the faults
# to plant. Exit: 0 all were found; 1 one was not.
source "$(dirname "${BASH_SOURCE[0]}")/../scripts/environment.sh"
source "$(dirname "${BASH_SOURCE[0]}")/../scripts/stock-and-fork.sh"

use_pinned_go
work=$(mktemp -d "${TMPDIR:-/tmp}/oracle-traps.XXXXXX")
trap 'rm -rf "$work"' EXIT
for tree in upstream patched; do git -c advice.detachedHead=false clone -q --shared --no-checkout "$TREE" "$work/$tree"; done
git -C "$work/upstream" checkout -q --detach "$(recorded "base.$VERSION.tree")"
git -C "$work/patched" checkout -q --detach "$(recorded applied.head)"
export GOWORK=off GOFLAGS=-trimpath
inprocess=$ROOT/test/inprocess
use_tree "$work/patched" "$inprocess" "$work/patched"
compile ./oracle "$work/stock" "$inprocess"
use_tree "$work/upstream" "$inprocess"
go mod edit -replace "k8s.io/kubernetes=$work/upstream" "$work/upstream.mod"
tree=upstream planted=0 missed=0

# unit_tests FILE prints the first unit test that fails of what remembers, or of the package of FILE.
unit_tests() {
  { CGO_ENABLED=0 go test -C "$work/patched" -vet=off -mod=vendor ./pkg/scheduler{,/framework/runtime,/internal/cache} "./pkg/scheduler/$(dirname "$1")" || true; } |
    sed -n 's/^--- FAIL: \([^ ]*\).*/\1/p' | head -n 1
}

# planted WHAT FILE SCRIPT changes FILE below pkg/scheduler of $tree with a sed script, and runs the oracle.
planted() {
  local test=''
  [[ $1 =~ ${TRAPS:-.} ]] || return 0
  planted=$((planted + 1))
  git -C "$work/$tree" checkout -q -- .
  sed -i "$3" "$work/$tree/pkg/scheduler/$2"
  ! git -C "$work/$tree" diff --quiet || fail "the trap '$1' changes nothing in $2" "adapt it to the $tree code"
  test_with "$work/$tree" "$inprocess" -c -o "$work/trap.test" ./oracle
  if (cd "$work" && ./stock.test -test.timeout=0 -test.run='^TestAgainst$' -against="$work/trap.test" \
    -shrink=false -count="${SCENARIOS:-200}" > log 2>&1); then
    [[ $tree == upstream ]] || test=$(unit_tests "$2")
    if [[ -n $test ]]; then say "found   $1: $test"; else say "missed  $1" && missed=$((missed + 1)); fi
  elif grep -q '^ .*scenario [0-9]*: - here, + there\|^ *panic: ' "$work/log"; then
    say "found   $1: $(grep -o 'scenario [0-9]*\|panic: .*' "$work/log" | head -n 1)"
  else
    cat "$work/log" >&2
    fail "the oracle itself failed over '$1'" "read the output above"
  fi
}

planted 'the draw that samples metrics is dropped, and later ties break otherwise' scheduler.go \
  's/SetRecordPluginMetrics(rand.Intn(100) < pluginMetricsSamplePercent)/SetRecordPluginMetrics(false \&\& rand.Intn(100) < pluginMetricsSamplePercent)/'
planted 'the draw of the first candidate for preemption is dropped' framework/plugins/defaultpreemption/default_preemption.go \
  's/return rand.Int31n(numNodes), /_ = rand.Int31n; return 0, /'
planted 'the next search begins after the nodes that fit, not after those that were looked at' generic_scheduler.go \
  's/(g.nextStartNodeIndex + processedNodes)/(g.nextStartNodeIndex + len(feasibleNodes) + 0*processedNodes)/'
planted 'fewer nodes are looked for' generic_scheduler.go \
  's/minFeasibleNodesToFind = 100/minFeasibleNodesToFind = 90/'
planted 'topology spread counts only pods on nodes that pass the affinity of the pod' \
  framework/plugins/podtopologyspread/filtering.go \
  '/^\tprocessNode := func(i int) {/,/^\t}/ s/^\t\tnode := nodeInfo.Node()/&\n\t\tif match, _ := requiredSchedulingTerm.Match(node); !match {\n\t\t\treturn\n\t\t}/'
planted 'two constraints with one topology key do not share a counter' framework/plugins/podtopologyspread/filtering.go \
  '/^\tprocessNode := func(i int) {/,/^\t}/ s/^\t\tfor _, constraint := range constraints {/\t\tfor i, constraint := range constraints {\n\t\t\tif i > 0 \&\& constraint.TopologyKey == constraints[i-1].TopologyKey {\n\t\t\t\tcontinue\n\t\t\t}/'
planted 'constraints are added up in another order' framework/plugins/podtopologyspread/scoring.go \
  '/^func (pl \*PodTopologySpread) Score(/,/^}/ { s/for i, c := range s.Constraints {/for i := len(s.Constraints) - 1; i >= 0; i-- {\n\t\tc := s.Constraints[i]/ }'
planted 'taints give no points where there is nothing to tolerate' framework/plugins/tainttoleration/taint_toleration.go \
  's/^\treturn helper.DefaultNormalizeScore(framework.MaxNodeScore, true, scores)/\t_ = helper.DefaultNormalizeScore\n\treturn nil/'
planted 'too little room is called unresolvable' framework/plugins/noderesources/fit.go \
  's/NewStatus(framework.Unschedulable, failureReasons/NewStatus(framework.UnschedulableAndUnresolvable, failureReasons/'
planted 'nominated pods are left out of the filters' framework/runtime/framework.go \
  's/^\tif len(nominatedPodInfos) == 0 {/\tif true {/'
planted 'spread gives no points to a pod without soft constraints' framework/plugins/podtopologyspread/scoring.go \
  's/^\tif s == nil {/\tif s == nil || len(s.Constraints) == 0 {/'
planted 'a kept list of pods with affinity misses that a pod goes' framework/types.go \
  's/^\t\tn.PodsWithAffinity = removeFromSlice(n.PodsWithAffinity, k)/\t\t_ = removeFromSlice/'
planted 'a kept count of claims in use misses that a pod goes' framework/types.go \
  's/^\t\t\tn.updatePVCRefCounts(pod, false)/\t\t\t_ = n.updatePVCRefCounts/'
planted 'a status that nodes share is changed' framework/plugins/tainttoleration/taint_toleration.go \
  's/^\treturn framework.NewStatus(framework.UnschedulableAndUnresolvable, errReason)/\t*shared = *framework.NewStatus(framework.UnschedulableAndUnresolvable, errReason)\n\treturn shared/
   $ a var shared = framework.NewStatus(framework.Success)'
planted 'points for resources leave out init containers' framework/plugins/noderesources/resource_allocation.go \
  's/for i := range pod.Spec.InitContainers {/for i := 0; i < 0; i++ {/'
planted 'points for resources leave out the overhead' framework/plugins/noderesources/resource_allocation.go \
  's/if pod.Spec.Overhead != nil/if false \&\& pod.Spec.Overhead != nil/'
planted 'a nominated pod counts twice' framework/runtime/framework.go \
  's/^\t\t\tnodeInfoOut.AddPodInfo(pi)/&\n&/'
planted 'the node that a pod is nominated for is looked at like any other' generic_scheduler.go \
  's/if len(pod.Status.NominatedNodeName) > 0/if false \&\& len(pod.Status.NominatedNodeName) > 0/'
planted 'an image without a tag is looked for without one' framework/plugins/imagelocality/image_locality.go \
  's/name = name + ":latest"/_ = name/'
planted 'an extender has no weight' generic_scheduler.go \
  's/combinedScores\[host\] += score \* weight/combinedScores[host] += score + 0*weight/'
planted 'what an extender says of victims is passed over' framework/preemption/preemption.go \
  's/^\t\tvictimsMap = nodeNameToVictims/\t\t_ = nodeNameToVictims/'
planted 'a claim that is not there is resolvable' framework/plugins/volumebinding/volume_binding.go \
  's/NewStatus(framework.UnschedulableAndUnresolvable, err.Error())/NewStatus(framework.Unschedulable, err.Error())/'
planted 'a node takes one volume more than its limit' framework/plugins/nodevolumelimits/csi.go \
  's/if currentVolumeCount+count > int(maxVolumeLimit) {/if currentVolumeCount+count > int(maxVolumeLimit)+1 {/'
planted 'the zone of a volume does not matter' framework/plugins/volumezone/volume_zone.go \
  's/if len(nodeConstraints) == 0 {/if true {/'
planted 'the ratio of requests to capacity is cut, not rounded' framework/plugins/noderesources/requested_to_capacity_ratio.go \
  's|return int64(math.Round(float64(nodeScore) / float64(weightSum)))|_ = math.Round\n\t\treturn nodeScore / weightSum|'
planted 'affinity that the configuration adds is not asked for' framework/plugins/nodeaffinity/node_affinity.go \
  's/if pl.addedNodeSelector != nil \&\&/if false \&\& pl.addedNodeSelector != nil \&\&/'
planted 'resources that the configuration ignores count' framework/plugins/noderesources/fit.go \
  's/sets.NewString(args.IgnoredResources...)/sets.NewString()/'
planted 'the first profile is all that counts' scheduler.go \
  's/fwk, ok := sched.Profiles\[pod.Spec.SchedulerName\]/fwk, ok := sched.Profiles["default-scheduler"]/'
planted 'a namespace keeps its first labels' framework/plugins/interpodaffinity/plugin.go \
  's/^import (/&\n\t"sync"/
   s/return labels.Merge(podNS.Labels, nil)/first, _ := kept.LoadOrStore([2]interface{}{nsLister, ns}, labels.Merge(podNS.Labels, nil))\n\t\treturn first.(labels.Set)/
   $ a var kept sync.Map'
planted 'a pod on a node stays as it was added' internal/cache/cache.go \
  '/^func (cache \*schedulerCache) updatePod(/,/^}/ s/cache.addPod(newPod)/cache.addPod(oldPod.DeepCopy())/'
planted 'pods that terminate count for topology spread' framework/plugins/podtopologyspread/common.go \
  's/p.Pod.DeletionTimestamp != nil || //'
planted 'a pod of the same name does without the claim that was not bound' framework/plugins/volumebinding/volume_binding.go \
  's/^\tif len(unboundClaimsImmediate) > 0 {/\tat := [2]interface{}{pl, pod.Namespace + pod.Name}\n&\n\t\tkept.Store(at, true)\n\t}\n\tif _, known := kept.Load(at); known {/
   $ a var kept sync.Map'

tree=patched memory=framework/runtime/memory.go
planted 'memory: the table misses that a node has changed' internal/cache/changes.go 's/if c.table != nil {/if false {/'
planted 'memory: the table of an earlier list of nodes stays' internal/cache/changes.go 's/^\tc.table, c.asked = nil, false$/\tc.asked = false/'
planted 'memory: an edit of the snapshot is missed' internal/cache/edit.go 's/^\ts.changes.add(node)$/\t_ = node/'
planted 'memory: an undone edit keeps its number' internal/cache/edit.go 's/^\t\ts.replace(s.edits\[i\].node, /\t\ts.edits[i].before.Generation = s.edits[i].node.Generation\n&/'
planted 'memory: no effects of tolerations in the key' framework/plugins/tainttoleration/node_local.go 's/, string(t.Effect)}/}/'
planted 'memory: no values of the node selector in the key' framework/plugins/nodeaffinity/node_local.go 's/AppendText(framework.AppendText(key, name), labels\[name\])/AppendText(key, name)/'
planted 'memory: no preferred node affinity in the key' framework/plugins/nodeaffinity/node_local.go 's/:= pod.Spec.Affinity.NodeAffinity.Marshal/:= (\&v1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: pod.Spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution}).Marshal/'
planted 'memory: no host IPs in the key' framework/plugins/nodeports/node_local.go 's/string(port.Protocol)), port.HostIP)/string(port.Protocol)), "")/'
planted 'memory: no names of extended resources in the key' framework/plugins/noderesources/node_local.go 's/(framework.AppendText(key, name), request/(key, request/'
planted 'memory: no overhead in the key' framework/plugins/noderesources/node_local.go 's/pod, f.enablePodOverhead)/pod, false)/'
planted 'memory: no images in the key' framework/plugins/imagelocality/node_local.go 's/Containers\[i\].Image)/Containers[i].Image[:0])/'
planted 'memory: no priority in the key' $memory 's/int64(corev1helpers.PodPriority(pod)))/0)/'
planted 'memory: nodes with nominated pods are not evaluated' $memory 's/c.nominatedNodes\[i\], c.kind.generations\[i\] = true, 0/_ = i/'
planted 'memory: the result with nominated pods is kept' $memory 's/k.set(node, status, 0, c.placeOf)/k.set(node, status, c.table.Generations[node], c.placeOf)/'
planted 'memory: profiles share the kinds' $memory 's/^\tm.kinds, m.spare, m.bytes, m.idle = map\[string\]\*kind{}/\tfor key := range kinds {\n\t\tdelete(kinds, key)\n\t}\n\tm.kinds, m.spare, m.bytes, m.idle = kinds/
  $ a var kinds = map[string]*kind{}'
planted 'memory: scores stay when a node is evaluated again' $memory 's/^\tverdict := uint8(fits)$/&\n\tif k.verdicts[node] == scored {\n\t\tverdict = scored\n\t}/'
planted 'memory: scores are those of another node' $memory 's/int16(list\[i\].Score)$/int16(list[len(list)-1-i].Score)/'
planted 'memory: remembered scores have no weight' framework/runtime/batch.go 's/int64(column\[index\]) \* weight/int64(column[index])/'
planted 'memory: a kind has what a dropped one knew' $memory 's/maxBytes = 16 << 20/maxBytes = 64 << 10/; s/^\t\tk.clear()$//'
planted 'memory: filters that read other nodes are passed over' $memory 's/place > c.firstOther || //'
planted 'memory: a changed node has no victims' framework/rejected.go 's/!hasNone(s.Nodes\[i\])/false \&\& &/'

((planted > 0)) || fail "no trap matches $TRAPS" "read the names in ${BASH_SOURCE[0]}"
((missed == 0)) || fail "the oracle missed $missed traps" "make the generator in test/inprocess/oracle reach them"

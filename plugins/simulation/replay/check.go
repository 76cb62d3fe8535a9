// SPDX-License-Identifier: Apache-2.0

package replay

import (
	"strconv"
	"strings"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	podutil "k8s.io/kubernetes/pkg/api/v1/pod"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/shared/laterfields"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/simulation/input"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/simulation/result"
	internalcache "k8s.io/kubernetes/pkg/scheduler/internal/cache"
)

// written returns the version of a pod's last change. It orders pods that were scheduled in the same second: a kubelet
// writes a pod's status soon after its binding.
func written(of *v1.Pod) uint64 {
	version, err := strconv.ParseUint(of.ResourceVersion, 10, 64)
	if err != nil {
		return 0 // An API server need not have numbers.
	}
	return version
}

// scheduledAt returns when a pod got its node, to the second.
func scheduledAt(of *v1.Pod) *metav1.Time {
	if _, c := podutil.GetPodCondition(&of.Status, v1.PodScheduled); c != nil && c.Status == v1.ConditionTrue && !c.LastTransitionTime.IsZero() {
		return &c.LastTransitionTime
	}
	return &of.CreationTimestamp
}

// Check schedules pods again one after the other, and compares with their real nodes. After each decision the pod is put
// on its real node, so that the next decision is about the cluster as it was.
func (s *Simulation) Check(pods []*v1.Pod) result.Check {
	check := result.Check{Pods: len(pods), Others: map[string][]string{}, Kept: len(s.pods)}
	for _, real := range pods {
		s.decide(real).count(real, &check)
		if s.nodes[real.Spec.NodeName] != nil {
			s.adopt(real)
		}
	}
	return check
}

// verdict is the outcome of scheduling a pod again.
type verdict struct {
	// node is the one that is chosen now, or empty.
	node string
	same bool
	// why is the reason of a decision that is not the same and not equal.
	why string
}

func (v verdict) agrees() bool { return v.same || v.why == "" }

// decide schedules a pod again, and compares with its real node. Nothing is changed but the clock.
func (s *Simulation) decide(real *v1.Pod) (v verdict) {
	s.ensureNamespace(real.Namespace)
	found, restore := laterfields.Pods.Of(real.UID), s.checkpoint(nil)
	// It is the pod itself: its claims are its own.
	p := s.pend(real.DeepCopy(), &input.Workload{Pod: real, Count: 1}, 0)
	s.settle()
	restore()
	laterfields.Pods.Set(real.UID, found) // The scheduler forgets it with the pod.
	if p.node != nil {
		v.node = p.node.name
	}
	if v.same = v.node == real.Spec.NodeName; v.same {
		return v
	}
	switch v.why = s.compare(real); {
	case v.why == "" && v.node == "":
		v.why = "no node: " + p.reason
	case v.why == "" && len(s.extenders) > 0:
		v.why = "with the extenders' answers, another node is chosen now"
	}
	return v
}

// count counts the verdict of a pod.
func (v verdict) count(real *v1.Pod, check *result.Check) {
	switch {
	case v.same:
		check.Same++
	case v.why == "":
		check.Equal++
	default:
		check.Others[v.why] = append(check.Others[v.why], real.Namespace+"/"+real.Name)
	}
}

// compare returns why the scheduler would not choose a pod's real node, or "" if it would, or might. It asks no extender.
func (s *Simulation) compare(real *v1.Pod) string {
	of := real.DeepCopy()
	of.Spec.NodeName = ""
	profile := s.Profiles[of.Spec.SchedulerName]
	if profile == nil {
		profile = s.Profiles[s.profile()]
	}
	snapshot, ok := profile.SnapshotSharedLister().(*internalcache.Snapshot)
	if !ok || s.SchedulerCache.UpdateSnapshot(snapshot) != nil {
		return ""
	}
	ctx, state := s.context, framework.NewCycleState()
	info, err := snapshot.NodeInfos().Get(real.Spec.NodeName)
	if err != nil {
		return "its node is gone"
	}
	if status := profile.RunPreFilterPlugins(ctx, state, of); !status.IsSuccess() {
		return "its node does not fit now: " + status.Message()
	}
	if status := profile.RunFilterPluginsWithNominatedPods(ctx, state, of, info); !status.IsSuccess() {
		return "its node does not fit now: " + status.Message()
	}
	infos, err := snapshot.NodeInfos().List()
	if err != nil || len(s.extenders) > 0 {
		return ""
	}
	var fit []*v1.Node
	for _, other := range infos {
		if profile.RunFilterPluginsWithNominatedPods(ctx, state, of, other).IsSuccess() {
			fit = append(fit, other.Node())
		}
	}
	if len(fit) == 1 || !profile.RunPreScorePlugins(ctx, state, of, fit).IsSuccess() {
		return ""
	}
	scores, status := profile.RunScorePlugins(ctx, state, of, fit)
	if !status.IsSuccess() {
		return ""
	}
	best, own, ownPlugin, lead := int64(-1), int64(0), map[string]int64{}, map[string]int64{}
	for i, n := range fit {
		sum := int64(0)
		each := map[string]int64{}
		for plugin, list := range scores {
			sum += list[i].Score
			each[plugin] = list[i].Score
		}
		if n.Name == real.Spec.NodeName {
			own, ownPlugin = sum, each
		}
		if sum > best {
			best, lead = sum, each
		}
	}
	if own == best {
		return ""
	}
	// The plugins that prefer the best node.
	var by []string
	for plugin, score := range lead {
		if score > ownPlugin[plugin] {
			by = append(by, plugin)
		}
	}
	return "another node scores more now: " + strings.Join(sorted(by), ", ")
}

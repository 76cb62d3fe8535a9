// SPDX-License-Identifier: Apache-2.0

package host

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/utils/pointer"

	"kube-scheduler-fork/build/nextstep"
	"kube-scheduler-fork/build/schedulerpod"
)

const (
	// NoProbe is the value of Request.Probe that disables probing.
	NoProbe = "none"
	// probeTime is how long a probe pod may wait for a node.
	probeTime = 30 * time.Second
	// probeBefore is the same before the change. It is shorter, since a working scheduler needs only a moment.
	probeBefore = 10 * time.Second
	// probeAgain is the delay before a new probe pod after an error. The
	// scheduler itself retries the same pod only after a minute or more.
	probeAgain = 5 * time.Second
	// probeImage hardly ever runs: the pod is deleted as soon as
	// it is bound. kubelet uses the same image for pod sandboxes.
	probeImage = "registry.k8s.io/pause:3.6"
	// probeLabel is on every probe pod; its value probeName is also the prefix of their names. probeNode is the label with
	// the node that a probe pod was created from.
	probeLabel = "app.kubernetes.io/name"
	probeName  = "kube-scheduler-swap-probe"
	probeNode  = "kube-scheduler-swap/node"
	// schedulerError is the reason of a pod's PodScheduled condition after
	// an error in scheduling or binding. The API has no constant for it.
	schedulerError = "SchedulerError"
)

// RemoveProbes deletes probe pods that a killed run has left.
// The lock ensures that no other run is probing from this node.
func (n *Node) RemoveProbes(ctx context.Context) {
	deleting, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	err := n.Cluster.Client.CoreV1().Pods(metav1.NamespaceSystem).DeleteCollection(deleting, metav1.DeleteOptions{},
		metav1.ListOptions{LabelSelector: probeLabel + "=" + probeName + "," + probeNode + "=" + n.Kubelet.NodeName})
	if err != nil && ctx.Err() == nil {
		n.Say("probe pods of earlier runs may be left: %v", err)
	}
}

// Probes are the profiles that must bind a probe pod. asked reports whether the operator named them; then an
// inconclusive probe is a failure. bound reports whether default-scheduler bound a probe pod before the change; then it
// is also a failure if it finds no node afterwards.
type Probes struct {
	profiles []string
	Asked    bool
	Bound    bool
}

// ProbesOf parses the value of --probe.
func ProbesOf(named []string) (Probes, error) {
	switch {
	case len(named) == 0:
		return Probes{profiles: []string{corev1.DefaultSchedulerName}}, nil
	case len(named) == 1 && named[0] == NoProbe:
		return Probes{}, nil
	case slices.Contains(named, NoProbe):
		return Probes{}, nextstep.With(fmt.Errorf("--probe names %s, and profiles, too", NoProbe),
			"name one or the other")
	}
	return Probes{profiles: named, Asked: true}, nil
}

// ProbeAll makes the scheduler that holds the lease bind a pod of each profile. If that is another node's scheduler,
// this does not test the new one here; but if it binds nothing, the control plane is not healthy enough to continue.
func (n *Node) ProbeAll(ctx context.Context, wanted Probes, lease *schedulerpod.Lease, leads bool) error {
	profiles := wanted.profiles
	switch {
	case len(profiles) == 0:
		n.Say("not probed because of --probe %s: whether the scheduler binds pods is unknown", NoProbe)
		return nil
	case !leads && !slices.Contains(profiles, corev1.DefaultSchedulerName):
		// This distinguishes a leader without the profile from one that binds nothing.
		profiles = append([]string{corev1.DefaultSchedulerName}, profiles...)
	}
	for _, profile := range profiles {
		err := n.probe(ctx, profile, probeTime)
		if err != nil && ctx.Err() != nil {
			return err
		}
		other := n.otherLeader(ctx, lease, leads)
		var failed *Failure
		isFailure := errors.As(err, &failed)
		switch {
		case err == nil && other != "":
			n.Say("this node stands by; %s holds the lease and bound the probe pod; the new scheduler of this node binds "+
				"pods once it leads", other)
		case err == nil:
		case isFailure && failed.inconclusive && wanted.Asked:
			return failed
		case isFailure && failed.noNode && wanted.Bound && profile == corev1.DefaultSchedulerName:
			return &Failure{Leader: other, Reason: fmt.Sprintf("%s. Before the swap, such a pod was bound (if such pods are "+
				"to stay Pending from now on: --probe %s)", strings.TrimRight(failed.Reason, "."), NoProbe)}
		case isFailure && failed.inconclusive:
			n.Say("whether %s binds pods is unknown: %s. Check whether pods are pending: "+
				"kubectl get pods -A --field-selector status.phase=Pending", profile, strings.TrimRight(failed.Reason, "."))
		case isFailure && failed.noCondition && other != "" && profile != corev1.DefaultSchedulerName:
			n.Say("whether %s binds pods is unknown: %s holds the lease, but does not serve it: its pods wait until that node has the "+
				"new configuration, too", profile, other)
		case isFailure:
			failed.Leader = other
			return failed
		default:
			return err
		}
	}
	return nil
}

// BoundBefore reports whether default-scheduler binds a probe pod
// before the change, if the probe afterwards needs that comparison.
func (n *Node) BoundBefore(ctx context.Context, wanted Probes) bool {
	return !wanted.Asked && len(wanted.profiles) > 0 && n.probe(ctx, corev1.DefaultSchedulerName, probeBefore) == nil
}

// otherLeader returns the holder of a lease if it is another node's
// scheduler; otherwise empty. leads is the last known state.
func (n *Node) otherLeader(ctx context.Context, lease *schedulerpod.Lease, leads bool) string {
	if lease == nil {
		return ""
	}
	now, err := n.Cluster.Holder(ctx, *lease)
	switch {
	case err == nil && IsHere(now.HolderIdentity), (err != nil || now.HolderIdentity == "") && leads:
		return ""
	case err != nil || now.HolderIdentity == "":
		return "another node's scheduler"
	}
	return now.HolderIdentity
}

// probe makes a profile bind a pod that requests nothing and tolerates all taints, and deletes the pod. It retries,
// since an error may be temporary. A *Failure may be inconclusive.
func (n *Node) probe(ctx context.Context, profile string, patience time.Duration) error {
	// Check before creating a pod: to make room for it, the scheduler might preempt one with a lower priority.
	if n.Cluster.full(ctx) {
		return &Failure{Reason: "every node has its maximum number of pods", inconclusive: true}
	}
	waiting, stop := context.WithTimeout(ctx, patience)
	defer stop()
	var last attempt
	for waiting.Err() == nil {
		now, err := n.attempt(ctx, waiting, profile)
		if err != nil {
			return err
		}
		if now.node != "" {
			n.Say("%s bound it to %s", profile, now.node)
			return nil
		}
		// Keep the earlier condition if the last attempt ended too early to get one.
		if now.condition.Message != "" || last.condition.Message == "" {
			last = now
		}
		select {
		case <-waiting.Done():
		case <-time.After(probeAgain):
		}
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	reason := fmt.Sprintf("%s did not bind the probe pod within %s: ", profile, patience)
	switch {
	case last.blind != nil:
		return &Failure{Reason: reason + last.blind.Error(), inconclusive: true}
	case last.condition.Reason == corev1.PodReasonUnschedulable:
		// The scheduler has tried every node: they may all be hot, or cordoned for another reason.
		return &Failure{Reason: reason + last.condition.Message, inconclusive: true, noNode: true}
	case last.condition.Message == "" && n.Cluster.queued(ctx, profile):
		return &Failure{Reason: reason + "other pods are ahead of it in the queue", inconclusive: true}
	}
	noCondition := last.condition.Message == ""
	if noCondition {
		last.condition.Message = "no scheduler reports anything about it"
	}
	return &Failure{Reason: reason + last.condition.Message + " (if such pods are to stay Pending: --probe " + NoProbe + ")",
		noCondition: noCondition}
}

// attempt is the result of one probe pod.
type attempt struct {
	// node is the node that the pod was bound to; empty: none.
	node string
	// condition is why it was not bound; empty: no scheduler has set one.
	condition corev1.PodCondition
	// blind is the error of the last attempt to read the pod.
	blind error
}

// attempt creates a probe pod and waits until it is bound, its condition reports an error, or the time is over.
func (n *Node) attempt(ctx, waiting context.Context, profile string) (attempt, error) {
	pods := n.Cluster.Client.CoreV1().Pods(metav1.NamespaceSystem)
	// Request zero: a LimitRange then sets no defaults that a full node lacks, and a ResourceQuota admits the pod.
	nothing := corev1.ResourceList{corev1.ResourceCPU: resource.Quantity{}, corev1.ResourceMemory: resource.Quantity{}}
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			// The name is known before the request, so that a lost response leaves no pod behind.
			Name:   probeName + "-" + rand.String(5),
			Labels: map[string]string{probeLabel: probeName, probeNode: n.Kubelet.NodeName},
		},
		Spec: corev1.PodSpec{
			SchedulerName: profile,
			Containers: []corev1.Container{{Name: "probe", Image: probeImage, ImagePullPolicy: corev1.PullIfNotPresent,
				Resources: corev1.ResourceRequirements{Requests: nothing}}},
			Tolerations:                   []corev1.Toleration{{Operator: corev1.TolerationOpExists}},
			RestartPolicy:                 corev1.RestartPolicyNever,
			AutomountServiceAccountToken:  pointer.Bool(false),
			TerminationGracePeriodSeconds: pointer.Int64(0),
		},
	}
	defer func() {
		// Clean up even if the user has cancelled.
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), requestTimeout)
		defer cancel()
		err := pods.Delete(ctx, pod.Name, metav1.DeleteOptions{GracePeriodSeconds: pointer.Int64(0)})
		if err != nil && !apierrors.IsNotFound(err) {
			n.Say("the probe pod is left: kubectl -n %s delete pod %s (%v)", metav1.NamespaceSystem, pod.Name, err)
		}
	}()
	var refused error
	creating, created := context.WithTimeout(ctx, requestTimeout)
	defer created()
	err := wait.PollImmediateUntilWithContext(creating, 2*PollInterval, func(ctx context.Context) (bool, error) {
		if _, refused = pods.Create(ctx, pod, metav1.CreateOptions{}); apierrors.IsAlreadyExists(refused) {
			refused = nil
		}
		// A rejected pod stays rejected; an API server that does not answer may answer later.
		return refused == nil || apierrors.IsForbidden(refused) || apierrors.IsInvalid(refused), nil
	})
	if ctx.Err() != nil {
		return attempt{}, context.Cause(ctx)
	} else if err = cmp.Or(refused, err); err != nil {
		return attempt{}, &Failure{Reason: fmt.Sprintf("the probe pod cannot be created: %v", err), inconclusive: true}
	}
	n.Say("waiting for %s to bind the probe pod %s/%s", profile, metav1.NamespaceSystem, pod.Name)
	var a attempt
	_ = wait.PollImmediateUntilWithContext(waiting, 2*PollInterval, func(ctx context.Context) (bool, error) {
		found, err := pods.Get(ctx, pod.Name, metav1.GetOptions{})
		if ctx.Err() != nil {
			return false, nil
		}
		if a.blind = err; err != nil {
			// If the pod was deleted, the caller creates another one.
			return apierrors.IsNotFound(err), nil
		}
		for _, now := range found.Status.Conditions {
			if now.Type == corev1.PodScheduled && now.Status == corev1.ConditionFalse {
				a.condition = now
			}
		}
		a.node = found.Spec.NodeName
		return a.node != "" || a.condition.Reason == schedulerError, nil
	})
	if ctx.Err() != nil {
		return a, context.Cause(ctx)
	}
	return a, nil
}

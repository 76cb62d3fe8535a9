// SPDX-License-Identifier: Apache-2.0

package swap

import (
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

	"kube-scheduler-fork/build/nextstep"
	"kube-scheduler-fork/build/schedulerpod"
)

// NoProbe is what a request names to have nothing probed.
const NoProbe = "none"

// probeTime is how long a probe pod may wait for a node.
const probeTime = 30 * time.Second

// probeBefore is how long one may wait before the change: a scheduler that works needs a moment.
const probeBefore = 10 * time.Second

// probeImage is never run for long: the pod is deleted as soon as it is bound. kubelet has it for every pod's sandbox.
const probeImage = "registry.k8s.io/pause:3.6"

// probeLabel is on every probe pod.
const probeLabel = "app.kubernetes.io/name"

// probeName is the label's value, and how the names of probe pods begin.
const probeName = "kube-scheduler-swap-probe"

// clearProbes deletes probe pods that a run that was killed has left; no other run probes from this node while the lock
// is held.
func (t *Tool) clearProbes(ctx context.Context) {
	deleting, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	err := t.cluster.client.CoreV1().Pods(metav1.NamespaceSystem).DeleteCollection(deleting, metav1.DeleteOptions{},
		metav1.ListOptions{LabelSelector: probeLabel + "=" + probeName + "," + probeNode + "=" + t.kubelet.nodeName})
	if err != nil && ctx.Err() == nil {
		t.say("probe pods of earlier runs may be left: %v", err)
	}
}

// probeNode is the label that says from which node a pod probes.
const probeNode = "kube-scheduler-swap/node"

// probes are the profiles that have to bind a probe pod. asked tells whether the operator has named them: then one that
// cannot be probed is a failure. bound tells whether default-scheduler bound one before anything was changed: then one
// that finds no node for it is a failure, too.
type probes struct {
	profiles []string
	asked    bool
	bound    bool
}

// probesOf reads what a request names.
func probesOf(named []string) (probes, error) {
	switch {
	case len(named) == 0:
		return probes{profiles: []string{defaultScheduler}}, nil
	case len(named) == 1 && named[0] == NoProbe:
		return probes{}, nil
	case slices.Contains(named, NoProbe):
		return probes{}, nextstep.With(fmt.Errorf("--probe names %s, and profiles, too", NoProbe),
			"name one or the other")
	}
	return probes{profiles: named, asked: true}, nil
}

// unprovable says why a probe tells nothing of the scheduler. tried tells that the scheduler found no node.
type unprovable struct {
	reason string
	tried  bool
}

func (u *unprovable) Error() string { return u.reason }

// probeAll lets the scheduler that holds the lease bind a pod of each profile. Where that is another node's, it tells
// nothing of the new one here; but a control plane on which nothing is bound is no place to go on.
func (t *Tool) probeAll(ctx context.Context, wanted probes, lease *schedulerpod.Lease, leads bool) error {
	profiles := wanted.profiles
	switch {
	case len(profiles) == 0:
		t.say("not probed because of --probe %s: it is not known whether pods are bound", NoProbe)
		return nil
	case !leads && !slices.Contains(profiles, defaultScheduler):
		// That tells a leader without such a profile from one that binds nothing.
		profiles = append([]string{defaultScheduler}, profiles...)
	}
	for _, profile := range profiles {
		err := t.probe(ctx, profile, probeTime)
		if err != nil && ctx.Err() != nil {
			return err
		}
		other := t.otherLeader(ctx, lease, leads)
		var nothing *unprovable
		var failed *failure
		switch {
		case err == nil && other != "":
			t.say("this node stands by; %s holds the lease and bound the probe pod; the new scheduler of this node binds "+
				"pods once it leads", other)
		case err == nil:
		case errors.As(err, &nothing) && wanted.asked:
			return &failure{reason: nothing.reason}
		case errors.As(err, &nothing) && nothing.tried && wanted.bound && profile == defaultScheduler:
			return &failure{leader: other, reason: fmt.Sprintf("%s. A moment before, such a pod was bound (if such a pod is "+
				"to stay Pending from now on: --probe %s)", strings.TrimRight(nothing.reason, "."), NoProbe)}
		case errors.As(err, &nothing):
			t.say("whether %s binds pods is not known: %s. See whether pods wait: "+
				"kubectl get pods -A --field-selector status.phase=Pending", profile, strings.TrimRight(nothing.reason, "."))
		case errors.As(err, &failed) && failed.unheard && other != "" && profile != defaultScheduler:
			t.say("whether %s binds pods is not known: %s holds the lease, and does not serve it: its pods wait until that node has the "+
				"new configuration, too", profile, other)
		case errors.As(err, &failed):
			failed.leader = other
			return failed
		default:
			return err
		}
	}
	return nil
}

// boundBefore tells whether default-scheduler binds a probe pod before anything is changed, where the new one is to be
// held against that.
func (t *Tool) boundBefore(ctx context.Context, wanted probes) bool {
	return !wanted.asked && len(wanted.profiles) > 0 && t.probe(ctx, defaultScheduler, probeBefore) == nil
}

// otherLeader gives who holds a lease, if it is another node's scheduler; empty: it is this one's, or there is none.
// leads is what was known before.
func (t *Tool) otherLeader(ctx context.Context, lease *schedulerpod.Lease, leads bool) string {
	if lease == nil {
		return ""
	}
	now, err := t.cluster.holder(ctx, *lease)
	switch {
	case err == nil && isHere(now.identity), (err != nil || now.identity == "") && leads:
		return ""
	case err != nil || now.identity == "":
		return "another node's scheduler"
	}
	return now.identity
}

// schedulerError is the reason of a pod's condition when an attempt to schedule or bind it ended in an error. It is no
// constant of the API.
const schedulerError = "SchedulerError"

// probeAgain is how long it takes until another probe pod is made where an attempt ended in an error: the scheduler
// itself tries the same pod again after a minute or more.
const probeAgain = 5 * time.Second

// probe lets a profile bind a pod that asks for nothing and tolerates everything, and deletes the pod. An error may
// pass, so there are several attempts. An *unprovable tells nothing of the scheduler.
func (t *Tool) probe(ctx context.Context, profile string, patience time.Duration) error {
	// Before there is a pod: to make room for it, the scheduler might evict one of less priority.
	if t.cluster.full(ctx) {
		return &unprovable{reason: "every node has as many pods as it may"}
	}
	waiting, stop := context.WithTimeout(ctx, patience)
	defer stop()
	var last attempt
	for waiting.Err() == nil {
		now, err := t.attempt(ctx, waiting, profile)
		if err != nil {
			return err
		}
		if now.node != "" {
			t.say("%s bound it to %s", profile, now.node)
			return nil
		}
		// The last one may have had no time.
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
	reason := fmt.Sprintf("%s did not bind the probe pod in %s: ", profile, patience)
	switch {
	case last.blind != nil:
		return &unprovable{reason: reason + last.blind.Error()}
	case last.condition.Reason == corev1.PodReasonUnschedulable:
		// It has looked at every node: they may all be hot, or cordoned for something else.
		return &unprovable{reason: reason + last.condition.Message, tried: true}
	case last.condition.Message == "" && t.cluster.queued(ctx, profile):
		return &unprovable{reason: reason + "other pods wait before it"}
	}
	unheard := last.condition.Message == ""
	if unheard {
		last.condition.Message = "no scheduler says anything about it"
	}
	return &failure{reason: reason + last.condition.Message + " (if such a pod is to stay Pending here: --probe " + NoProbe + ")",
		unheard: unheard}
}

// attempt is what became of one probe pod.
type attempt struct {
	// node is where it is bound; empty: nowhere.
	node string
	// condition is why it is not; empty: no scheduler has said anything.
	condition corev1.PodCondition
	// blind is why that could not be seen at last.
	blind error
}

// attempt makes a probe pod, and waits until it is bound, or the scheduler says that an error kept it from that, or
// the time is over.
func (t *Tool) attempt(ctx, waiting context.Context, profile string) (attempt, error) {
	pods := t.cluster.client.CoreV1().Pods(metav1.NamespaceSystem)
	no := false
	grace := int64(0)
	// Of zero, so that no LimitRange fills in what a full node does not have, and a ResourceQuota takes it.
	nothing := corev1.ResourceList{corev1.ResourceCPU: resource.Quantity{}, corev1.ResourceMemory: resource.Quantity{}}
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			// Known before it is made: an answer that is lost leaves no pod behind.
			Name:   probeName + "-" + rand.String(5),
			Labels: map[string]string{probeLabel: probeName, probeNode: t.kubelet.nodeName},
		},
		Spec: corev1.PodSpec{
			SchedulerName: profile,
			Containers: []corev1.Container{{Name: "probe", Image: probeImage, ImagePullPolicy: corev1.PullIfNotPresent,
				Resources: corev1.ResourceRequirements{Requests: nothing}}},
			Tolerations:                   []corev1.Toleration{{Operator: corev1.TolerationOpExists}},
			RestartPolicy:                 corev1.RestartPolicyNever,
			AutomountServiceAccountToken:  &no,
			TerminationGracePeriodSeconds: &grace,
		},
	}
	defer func() {
		// Also when the user has lost patience.
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), requestTimeout)
		defer cancel()
		err := pods.Delete(ctx, pod.Name, metav1.DeleteOptions{GracePeriodSeconds: &grace})
		if err != nil && !apierrors.IsNotFound(err) {
			t.say("the probe pod is left: kubectl -n %s delete pod %s (%v)", metav1.NamespaceSystem, pod.Name, err)
		}
	}()
	var refused error
	creating, created := context.WithTimeout(ctx, requestTimeout)
	defer created()
	err := wait.PollImmediateUntilWithContext(creating, 2*pollInterval, func(ctx context.Context) (bool, error) {
		if _, refused = pods.Create(ctx, pod, metav1.CreateOptions{}); apierrors.IsAlreadyExists(refused) {
			refused = nil
		}
		// What is not allowed now is not allowed a second later; an API server that does not answer may.
		return refused == nil || apierrors.IsForbidden(refused) || apierrors.IsInvalid(refused), nil
	})
	switch {
	case ctx.Err() != nil:
		return attempt{}, context.Cause(ctx)
	case refused != nil:
		return attempt{}, &unprovable{reason: fmt.Sprintf("the probe pod cannot be created: %v", refused)}
	case err != nil:
		return attempt{}, &unprovable{reason: fmt.Sprintf("the probe pod cannot be created: %v", err)}
	}
	t.say("waiting for %s to bind the probe pod %s/%s", profile, metav1.NamespaceSystem, pod.Name)
	var a attempt
	_ = wait.PollImmediateUntilWithContext(waiting, 2*pollInterval, func(ctx context.Context) (bool, error) {
		found, err := pods.Get(ctx, pod.Name, metav1.GetOptions{})
		if ctx.Err() != nil {
			return false, nil
		}
		if a.blind = err; err != nil {
			// Another pod takes the place of one that somebody deleted.
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

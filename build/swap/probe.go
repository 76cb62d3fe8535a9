// SPDX-License-Identifier: Apache-2.0

package swap

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
)

// probeTime is how long a probe pod may wait for a node.
const probeTime = 30 * time.Second

// probeImage is never run for long: the pod is deleted as soon as it is bound. kubelet has it for every pod's sandbox.
const probeImage = "registry.k8s.io/pause:3.6"

// probeLabel is on every probe pod.
const probeLabel = "app.kubernetes.io/name"

// probeName is the label's value, and how the names of probe pods begin.
const probeName = "kube-scheduler-swap-probe"

// clearProbes deletes probe pods that a run that was killed has left; no other run probes from this node while the lock
// is held.
func (t *Tool) clearProbes(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	err := t.cluster.client.CoreV1().Pods(metav1.NamespaceSystem).DeleteCollection(ctx, metav1.DeleteOptions{},
		metav1.ListOptions{LabelSelector: probeLabel + "=" + probeName + "," + probeNode + "=" + t.kubelet.nodeName})
	if err != nil {
		t.say("probe pods of earlier runs may be left: %v", err)
	}
}

// probeNode is the label that says from which node a pod probes.
const probeNode = "kube-scheduler-swap/node"

// probeAll lets each of the profiles bind a pod. Where another node's scheduler leads, that one would: there is nothing
// to be learned from it.
func (t *Tool) probeAll(ctx context.Context, profiles []string, leads bool) error {
	if !leads && len(profiles) > 0 {
		t.say("not probed: this node stands by, and another one's scheduler would bind the pod")
		return nil
	}
	for _, profile := range profiles {
		if err := t.probe(ctx, profile); err != nil {
			return err
		}
	}
	return nil
}

// probe lets a profile bind a pod that asks for nothing and tolerates everything, and deletes the pod.
func (t *Tool) probe(ctx context.Context, profile string) error {
	pods := t.cluster.client.CoreV1().Pods(metav1.NamespaceSystem)
	no := false
	grace := int64(0)
	pod, err := pods.Create(ctx, &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			GenerateName: probeName + "-",
			Labels:       map[string]string{probeLabel: probeName, probeNode: t.kubelet.nodeName},
		},
		Spec: corev1.PodSpec{
			SchedulerName:                 profile,
			Containers:                    []corev1.Container{{Name: "probe", Image: probeImage, ImagePullPolicy: corev1.PullIfNotPresent}},
			Tolerations:                   []corev1.Toleration{{Operator: corev1.TolerationOpExists}},
			RestartPolicy:                 corev1.RestartPolicyNever,
			AutomountServiceAccountToken:  &no,
			TerminationGracePeriodSeconds: &grace,
		},
	}, metav1.CreateOptions{})
	if err != nil {
		return &failure{reason: fmt.Sprintf("the probe pod cannot be created: %v", err)}
	}
	defer func() {
		// Also when the user has lost patience.
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), requestTimeout)
		defer cancel()
		if err := pods.Delete(ctx, pod.Name, metav1.DeleteOptions{GracePeriodSeconds: &grace}); err != nil {
			t.say("the probe pod is left: kubectl -n %s delete pod %s (%v)", pod.Namespace, pod.Name, err)
		}
	}()
	t.say("waiting for %s to bind the probe pod %s/%s", profile, pod.Namespace, pod.Name)
	var message string
	waiting, stop := context.WithTimeout(ctx, probeTime)
	defer stop()
	err = wait.PollImmediateUntilWithContext(waiting, 2*pollInterval, func(ctx context.Context) (bool, error) {
		found, err := pods.Get(ctx, pod.Name, metav1.GetOptions{})
		if err != nil {
			message = err.Error()
			return false, nil
		}
		for _, condition := range found.Status.Conditions {
			if condition.Type == corev1.PodScheduled && condition.Status == corev1.ConditionFalse {
				message = condition.Message
			}
		}
		pod.Spec.NodeName = found.Spec.NodeName
		return pod.Spec.NodeName != "", nil
	})
	if err != nil && ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if err != nil {
		if message == "" {
			message = "no scheduler says anything about it"
		}
		return &failure{reason: fmt.Sprintf("%s did not bind the probe pod in %s: %s", profile, probeTime, message)}
	}
	t.say("%s bound it to %s", profile, pod.Spec.NodeName)
	return nil
}

// SPDX-License-Identifier: Apache-2.0

package nodeload

import (
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

var epoch = time.Unix(1600000000, 0)

// after returns a time some seconds after epoch.
func after(seconds int) metav1.Time {
	return metav1.NewTime(epoch.Add(time.Duration(seconds) * time.Second))
}

// runs returns the status of a running container.
func runs(since, restarts int) v1.ContainerStatus {
	return v1.ContainerStatus{RestartCount: int32(restarts), State: v1.ContainerState{Running: &v1.ContainerStateRunning{StartedAt: after(since)}}}
}

// again returns the status of a container that ended before and runs again.
func again(since, ended int) v1.ContainerStatus {
	status := runs(since, 1)
	status.LastTerminationState.Terminated = &v1.ContainerStateTerminated{FinishedAt: after(ended)}
	return status
}

func TestStartOf(t *testing.T) {
	at := func(seconds int) int64 { return epoch.Add(time.Duration(seconds) * time.Second).UnixNano() }
	began := after(5)
	stopped := v1.ContainerStatus{State: v1.ContainerState{Terminated: &v1.ContainerStateTerminated{StartedAt: after(20)}}}
	waits := v1.ContainerStatus{RestartCount: 7, State: v1.ContainerState{Waiting: &v1.ContainerStateWaiting{Reason: "CrashLoopBackOff"}}}
	lost := again(500, 0)
	lost.LastTerminationState.Terminated.FinishedAt = metav1.Time{}
	first := again(500, 490)
	first.LastTerminationState.Terminated.StartedAt = after(480)
	more := *first.DeepCopy()
	more.RestartCount = 2
	initialized := []v1.PodCondition{{Type: v1.PodReady, Status: v1.ConditionTrue, LastTransitionTime: after(501)},
		{Type: v1.PodInitialized, Status: v1.ConditionTrue, LastTransitionTime: after(400)}}
	bound := func(status v1.ConditionStatus, since int) []v1.PodCondition {
		return []v1.PodCondition{{Type: v1.PodScheduled, Status: status, LastTransitionTime: after(since)}}
	}
	not := []v1.PodCondition{{Type: v1.PodInitialized, Status: v1.ConditionFalse, LastTransitionTime: after(400)}}
	for _, test := range []struct {
		name   string
		status v1.PodStatus
		want   int64
	}{
		{"assumed, or bound and not seen by the kubelet", v1.PodStatus{}, notStarted},
		{"bound ten minutes ago, and its images are pulled", v1.PodStatus{Phase: v1.PodPending, Conditions: bound(v1.ConditionTrue, 400)}, notStarted},
		{"bound longer ago, and has not begun", v1.PodStatus{Phase: v1.PodPending, Conditions: bound(v1.ConditionTrue, 399)}, settled},
		{"assumed after it had waited for long", v1.PodStatus{Phase: v1.PodPending, Conditions: bound(v1.ConditionFalse, 399)}, notStarted},
		{"its images are pulled", v1.PodStatus{Phase: v1.PodPending, StartTime: &began}, notStarted},
		{"runs", v1.PodStatus{Phase: v1.PodRunning, StartTime: &began, ContainerStatuses: []v1.ContainerStatus{runs(10, 0)}}, at(10)},
		{"the last container counts", v1.PodStatus{Phase: v1.PodRunning, StartTime: &began, ContainerStatuses: []v1.ContainerStatus{runs(10, 0), runs(30, 0), runs(20, 0)}}, at(30)},
		{"restarted: it was in the measurements before", v1.PodStatus{Phase: v1.PodRunning, StartTime: &began, ContainerStatuses: []v1.ContainerStatus{again(500, 490)}}, at(5)},
		{"restarted a window later", v1.PodStatus{Phase: v1.PodRunning, StartTime: &began, ContainerStatuses: []v1.ContainerStatus{again(500, 200)}}, at(5)},
		{"restarted, and nothing of it is left", v1.PodStatus{Phase: v1.PodRunning, StartTime: &began, ContainerStatuses: []v1.ContainerStatus{again(500, 199)}}, at(500)},
		{"one of two restarted", v1.PodStatus{Phase: v1.PodRunning, StartTime: &began, ContainerStatuses: []v1.ContainerStatus{again(500, 490), runs(10, 0)}}, at(10)},
		{"its node was started again, and it is not known when it ended", v1.PodStatus{Phase: v1.PodRunning, StartTime: &began, ContainerStatuses: []v1.ContainerStatus{runs(500, 1)}}, at(500)},
		{"crashed once: its first start counts, however long its images took", v1.PodStatus{Phase: v1.PodRunning, StartTime: &began, ContainerStatuses: []v1.ContainerStatus{first}}, at(480)},
		{"crashed more often: since it was initialized", v1.PodStatus{Phase: v1.PodRunning, StartTime: &began, Conditions: initialized, ContainerStatuses: []v1.ContainerStatus{more}}, at(400)},
		{"crashed more often, and is not said to be initialized", v1.PodStatus{Phase: v1.PodRunning, StartTime: &began, Conditions: not, ContainerStatuses: []v1.ContainerStatus{more}}, at(5)},
		{"crashes again and again", v1.PodStatus{Phase: v1.PodRunning, StartTime: &began, ContainerStatuses: []v1.ContainerStatus{waits}}, at(5)},
		{"is being deleted", v1.PodStatus{Phase: v1.PodRunning, StartTime: &began, ContainerStatuses: []v1.ContainerStatus{stopped}}, at(20)},
		{"no word of containers", v1.PodStatus{Phase: v1.PodRunning, StartTime: &began}, at(5)},
		{"not even when it began: when it was made", v1.PodStatus{Phase: v1.PodRunning}, at(1)},
		{"has ended", v1.PodStatus{Phase: v1.PodSucceeded, ContainerStatuses: []v1.ContainerStatus{runs(10, 0)}}, settled},
	} {
		t.Run(test.name, func(t *testing.T) {
			pod := &v1.Pod{ObjectMeta: metav1.ObjectMeta{CreationTimestamp: after(1)}, Status: test.status}
			if got := StartOf(pod, int64(5*time.Minute), at(1000)); got != test.want {
				t.Errorf("got %v, want %v", time.Unix(0, got), time.Unix(0, test.want))
			}
		})
	}
}

func TestLacking(t *testing.T) {
	const second = int64(time.Second)
	at := epoch.UnixNano()
	for _, test := range []struct {
		name       string
		start, end int64
		want       float64
	}{
		{"not started", notStarted, Running, 1},
		{"started at the measurement", at, Running, 1},
		{"a quarter of the window before", at - 75*second, Running, 0.75},
		{"the whole window before", at - 300*second, Running, 0},
		{"long before", at - 3000*second, Running, 0},
		{"ended after the measurement, and in half of it", at - 150*second, at + 10*second, -0.5},
		{"ran for a quarter of the window", at - 150*second, at - 75*second, -0.25},
		{"ran before the window too", at - 3000*second, at - 75*second, -0.75},
		{"ended before the window", at - 3000*second, at - 300*second, 0},
		{"started after the measurement, and ended", at + 10*second, at + 20*second, 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			if got := Lacking(test.start, test.end, at, 300*second); got != test.want {
				t.Errorf("got %v, want %v", got, test.want)
			}
		})
	}
}

// SPDX-License-Identifier: Apache-2.0

package host

import (
	"context"
	"strings"
	"testing"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"

	"kube-scheduler-fork/build/schedulerpod"
	"kube-scheduler-fork/build/swap/manifest"
	"kube-scheduler-fork/build/swap/swaptest"
)

func TestKubeletsWordsAreThoseOfThisVersion(t *testing.T) {
	mirror := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "kube-scheduler-cp1", Annotations: map[string]string{manifest.RestartedAtAnnotation: "now", staticPodUID: "u"}},
		Status: corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{{State: corev1.ContainerState{
			Waiting: &corev1.ContainerStateWaiting{Reason: "ErrImagePull", Message: "no such host"},
		}}}},
	}
	event := &corev1.Event{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "e"}, Reason: "FailedMount", Message: "/absent is not there"}
	cluster := &Cluster{Client: fake.NewSimpleClientset(mirror, event)}
	for _, c := range []struct {
		node, version, words string
		begun                bool
	}{
		{"cp1", "now", "ErrImagePull: no such host; FailedMount: /absent is not there", true},
		{"cp1", "before", "", false},
		{"cp2", "now", "", false},
	} {
		begun, words, err := cluster.kubeletStatusOf(t.Context(), "kube-system", "kube-scheduler-"+c.node, c.version)
		if begun != c.begun || words != c.words || err != nil {
			t.Errorf("%+v: kubelet says %v, %q, %v", c, begun, words, err)
		}
	}
}

func TestOnlyTheLeaseOfTheDeadIsReleased(t *testing.T) {
	dead, other := "cp1_1234", "cp2_5678"
	for _, c := range []struct {
		name, holder, after string
	}{
		{"the dead one holds it", dead, ""},
		{"another one holds it by now", other, other},
		{"no scheduler holds it", "", ""},
	} {
		held := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "kube-scheduler"}, Spec: coordinationv1.LeaseSpec{HolderIdentity: &c.holder}}
		client := fake.NewSimpleClientset(held)
		free, err := (&Cluster{Client: client}).release(context.Background(), schedulerpod.DefaultLease, dead)
		if err != nil || !free {
			t.Errorf("%s: free %v, %v", c.name, free, err)
		}
		now, err := client.CoordinationV1().Leases("kube-system").Get(context.Background(), "kube-scheduler", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if got := *now.Spec.HolderIdentity; got != c.after {
			t.Errorf("%s: %q holds it, want %q", c.name, got, c.after)
		}
	}
}

func TestOvercommittingPodsThatLoseTheirPluginAreCounted(t *testing.T) {
	c := &Cluster{Client: fake.NewSimpleClientset(
		swaptest.Overcommitting("a", "default-scheduler", "", OvercommitResource), swaptest.Overcommitting("b", "default-scheduler", "n1", OvercommitResource),
		swaptest.Overcommitting("c", "batch", "n1", OvercommitResource), swaptest.Overcommitting("of-a-second-scheduler", "second", "", OvercommitResource),
		swaptest.Overcommitting("ordinary", "default-scheduler", "", corev1.ResourceCPU))}
	const (
		enabled = "{schedulerName: default-scheduler, plugins: {multiPoint: {enabled: [{name: NodeLoad}, {name: Overcommit}]}}}"
		batch   = "{schedulerName: batch, plugins: {filter: {enabled: [{name: Overcommit}]}}}"
	)
	for name, tt := range map[string]struct{ before, after, want string }{
		"to a stock scheduler": {before: enabled + "," + batch, want: "3 pods request overcommit.scheduler/millicpu in a profile " +
			"without the plugin Overcommit, for example x/a: 1 without a node stay Pending, and 2 stay on their nodes until they end"},
		"only one profile has it":      {before: enabled + "," + batch, after: "{}," + batch, want: "2 pods request"},
		"no profile ever had it":       {want: "2 pods request"},
		"it stays":                     {before: enabled + "," + batch, after: enabled + "," + batch},
		"to the first configuration":   {after: enabled},
		"a profile that nobody serves": {after: "{schedulerName: other}, " + enabled},
	} {
		t.Run(name, func(t *testing.T) {
			before, after := configWith(t, tt.before), configWith(t, tt.after)
			got, err := c.WithoutOvercommit(t.Context(), before, after)
			if err != nil || !strings.HasPrefix(got, tt.want) || (tt.want == "") != (got == "") {
				t.Errorf("%q, %v, want %q", got, err, tt.want)
			}
		})
	}
}

// configWith returns a configuration with profiles; nil without any.
func configWith(t *testing.T, profiles string) *schedulerpod.Config {
	t.Helper()
	if profiles == "" {
		return nil
	}
	config, err := schedulerpod.ReadConfig([]byte("profiles: [" + profiles + "]"))
	if err != nil {
		t.Fatal(err)
	}
	return config
}

// SPDX-License-Identifier: Apache-2.0

package host

import (
	"context"
	"errors"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"kube-scheduler-fork/build/schedulerpod"
)

// schedulerThat returns a cluster that calls does for each new
// pod: as its scheduler, or as an API server that rejects the pod.
func schedulerThat(does func(*corev1.Pod) error, objects ...apiruntime.Object) *Cluster {
	client := fake.NewSimpleClientset(objects...)
	client.PrependReactor("create", "pods", func(action clienttesting.Action) (bool, apiruntime.Object, error) {
		pod := action.(clienttesting.CreateAction).GetObject().(*corev1.Pod)
		pod.Namespace = metav1.NamespaceSystem
		if err := does(pod); err != nil {
			return true, nil, err
		}
		return true, pod, client.Tracker().Add(pod)
	})
	return &Cluster{Client: client}
}

func binds(pod *corev1.Pod) error {
	pod.Spec.NodeName = "w1"
	return nil
}

func ignores(*corev1.Pod) error { return nil }

// finds returns a scheduler that finds no node, for the given reason.
func finds(reason, message string) func(*corev1.Pod) error {
	return func(pod *corev1.Pod) error {
		pod.Status.Conditions = []corev1.PodCondition{
			{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: reason, Message: message}}
		return nil
	}
}

// failsOnce returns a scheduler whose first attempt ends in an error.
func failsOnce() func(*corev1.Pod) error {
	failed := false
	return func(pod *corev1.Pod) error {
		if !failed {
			failed = true
			return finds(schedulerError, "etcdserver: request timed out")(pod)
		}
		return binds(pod)
	}
}

func forbids(*corev1.Pod) error {
	return apierrors.NewForbidden(corev1.Resource("pods"), "probe", errors.New("exceeded quota"))
}

func nodeFor(pods string) *corev1.Node {
	return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "w1"},
		Status: corev1.NodeStatus{Allocatable: corev1.ResourceList{corev1.ResourcePods: resource.MustParse(pods)}}}
}

func TestWhatIsProbed(t *testing.T) {
	for name, c := range map[string]struct {
		named    []string
		profiles []string
		asked    bool
		refused  bool
	}{
		"nothing is named":   {nil, []string{"default-scheduler"}, false, false},
		"none":               {[]string{"none"}, nil, false, false},
		"a profile":          {[]string{"mine"}, []string{"mine"}, true, false},
		"none and a profile": {[]string{"mine", "none"}, nil, false, true},
	} {
		got, err := ProbesOf(c.named)
		if !slices.Equal(got.profiles, c.profiles) || got.Asked != c.asked || (err != nil) != c.refused {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
}

func TestASchedulerThatDoesNotBindFailsItsProbe(t *testing.T) {
	byDefault, asked := Probes{profiles: []string{corev1.DefaultSchedulerName}}, Probes{profiles: []string{corev1.DefaultSchedulerName}, Asked: true}
	full := []apiruntime.Object{nodeFor("1"), &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "x", Name: "x"}, Spec: corev1.PodSpec{NodeName: "w1"}}}
	tooMany := finds(corev1.PodReasonUnschedulable, "0/1 nodes are available: 1 Too many pods.")
	hot := finds(corev1.PodReasonUnschedulable, "0/1 nodes are available: 1 node(s) had cpu above 80 % of capacity.")
	queued := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "x", Name: "y"}, Spec: corev1.PodSpec{SchedulerName: corev1.DefaultSchedulerName}}
	silent := schedulerThat(ignores)
	silent.Client.(*fake.Clientset).PrependReactor("get", "pods", func(clienttesting.Action) (bool, apiruntime.Object, error) {
		return true, nil, errors.New("connection refused")
	})
	for name, c := range map[string]struct {
		cluster *Cluster
		probes  Probes
		fails   string
		says    string
	}{
		"it binds":                           {schedulerThat(binds), byDefault, "", "default-scheduler bound it to w1"},
		"it says nothing":                    {schedulerThat(ignores), byDefault, "no scheduler reports anything about it", ""},
		"its extender does not answer":       {schedulerThat(finds("SchedulerError", "connection refused"), nodeFor("110")), byDefault, "connection refused", ""},
		"the pod is not admitted":            {schedulerThat(forbids), byDefault, "", "whether default-scheduler binds pods is unknown: the probe pod cannot be created"},
		"the pod that was asked for is not":  {schedulerThat(forbids), asked, "exceeded quota", ""},
		"all nodes are full":                 {schedulerThat(tooMany, full...), byDefault, "", "every node has its maximum number of pods"},
		"all are full, and it was asked":     {schedulerThat(tooMany, full...), asked, "every node has its maximum number of pods", ""},
		"no node takes it":                   {schedulerThat(hot, nodeFor("110")), byDefault, "", "is unknown: default-scheduler did not bind the probe pod within 30s: 0/1"},
		"no node takes it, and it was asked": {schedulerThat(hot, nodeFor("110")), asked, "above 80 %", ""},
		"no node takes it any more":          {schedulerThat(hot, nodeFor("110")), Probes{profiles: []string{corev1.DefaultSchedulerName}, Bound: true}, "above 80 % of capacity. Before the swap, such a pod was bound", ""},
		"an error passes":                    {schedulerThat(failsOnce(), nodeFor("110")), byDefault, "", "default-scheduler bound it to w1"},
		"others wait before it":              {schedulerThat(ignores, queued), byDefault, "", "other pods are ahead of it in the queue"},
		"the API server does not answer":     {silent, byDefault, "", "is unknown: default-scheduler did not bind the probe pod within 30s: connection refused"},
		"nothing is to be probed":            {schedulerThat(ignores), Probes{}, "", "not probed because of --probe none"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n, output := nodeWith(c.cluster)
				err := n.ProbeAll(context.Background(), c.probes, nil, true)
				var failed *Failure
				if c.fails == "" && err != nil || c.fails != "" && (!errors.As(err, &failed) || !strings.Contains(err.Error(), c.fails)) {
					t.Errorf("error %v, want %q", err, c.fails)
				}
				if said := output.String(); !strings.Contains(said, c.says) {
					t.Errorf("it says %q, want %q", said, c.says)
				}
				left, err := n.Cluster.Client.CoreV1().Pods(metav1.NamespaceSystem).List(context.Background(), metav1.ListOptions{})
				if err != nil {
					t.Fatal(err)
				}
				for _, pod := range left.Items {
					if pod.Namespace == metav1.NamespaceSystem {
						t.Errorf("the pod %s is left", pod.Name)
					}
				}
			})
		})
	}
}

func TestTheLeaderBindsTheProbePodOfAStandby(t *testing.T) {
	host, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	const leader = "cp2_1234"
	only := func(profile string) func(*corev1.Pod) error {
		return func(pod *corev1.Pod) error {
			if pod.Spec.SchedulerName == profile {
				return binds(pod)
			}
			return nil
		}
	}
	named := Probes{profiles: []string{"mine"}, Asked: true}
	for name, c := range map[string]struct {
		does   func(*corev1.Pod) error
		probes Probes
		holder string
		leads  bool
		fails  string
		blamed string
		says   []string
	}{
		"the leader binds it": {binds, Probes{profiles: []string{corev1.DefaultSchedulerName}}, leader, false, "", "",
			[]string{"this node stands by; cp2_1234 holds the lease and bound the probe pod; the new scheduler of this node binds pods once it leads"}},
		"the leader binds nothing":                 {ignores, Probes{profiles: []string{corev1.DefaultSchedulerName}}, leader, false, "no scheduler reports anything", leader, nil},
		"the leader has no such profile yet":       {only(corev1.DefaultSchedulerName), named, leader, false, "", "", []string{"whether mine binds pods is unknown: cp2_1234 holds the lease"}},
		"nor does it bind anything else":           {only("mine"), named, leader, false, "default-scheduler did not bind", leader, nil},
		"the leader has it":                        {binds, named, leader, false, "", "", []string{"mine bound it to w1"}},
		"this node came to lead meanwhile":         {ignores, Probes{profiles: []string{corev1.DefaultSchedulerName}}, host + "_1", false, "no scheduler reports anything", "", nil},
		"another one came to lead meanwhile":       {ignores, Probes{profiles: []string{corev1.DefaultSchedulerName}}, leader, true, "no scheduler reports anything", leader, nil},
		"who leads is not known just now, but was": {ignores, Probes{profiles: []string{corev1.DefaultSchedulerName}}, "", false, "no scheduler reports anything", "another node's scheduler", nil},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n, output := nodeWith(schedulerThat(c.does, &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "kube-scheduler"},
					Spec: coordinationv1.LeaseSpec{HolderIdentity: &c.holder}}))
				err := n.ProbeAll(context.Background(), c.probes, &schedulerpod.DefaultLease, c.leads)
				if c.fails == "" && err != nil || c.fails != "" && (err == nil || !strings.Contains(err.Error(), c.fails)) {
					t.Errorf("error %v, want %q", err, c.fails)
				}
				if got := LeaderOf(err); got != c.blamed {
					t.Errorf("it blames %q, want %q", got, c.blamed)
				}
				said := output.String()
				for _, words := range c.says {
					if !strings.Contains(said, words) {
						t.Errorf("it says %q, want %q", said, words)
					}
				}
			})
		})
	}
}

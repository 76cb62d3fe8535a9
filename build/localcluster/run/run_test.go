// SPDX-License-Identifier: Apache-2.0

package run

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kube-scheduler-fork/build/localcluster"
)

func TestPodsAreDealtOutToTheProfilesAndManifestsFollowInTheirOrder(t *testing.T) {
	first := writeFile(t, "apiVersion: v1\nkind: Node\nmetadata: {name: extra}\n---\n"+
		"apiVersion: v1\nkind: Pod\nmetadata: {name: first}\nspec: {containers: [{name: c, image: i}]}\n")
	second := writeFile(t, "apiVersion: v1\nkind: Pod\nmetadata: {name: second}\nspec: {containers: [{name: c, image: i}]}\n")
	p, err := newPlan([]string{"default-scheduler", "mine"}, 3, []string{first, second})
	if err != nil {
		t.Fatal(err)
	}
	var waves []string
	for _, wave := range p.waves {
		var names []string
		for _, pod := range wave {
			names = append(names, pod.Name+" "+pod.Spec.SchedulerName)
		}
		waves = append(waves, strings.Join(names, ","))
	}
	want := []string{"pod-1 default-scheduler,pod-2 mine,pod-3 default-scheduler", "first ", "second "}
	if !slices.Equal(waves, want) {
		t.Errorf("waves: %q, want %q", waves, want)
	}
	if len(p.nodes) != 1 || p.nodes[0].Name != "extra" || p.orphan {
		t.Errorf("nodes %v, orphan %v; want the node extra, and no orphan where there is a default-scheduler", p.nodes, p.orphan)
	}
	if p, err = newPlan([]string{"default-scheduler"}, 0, nil); err != nil || len(p.waves) != 0 {
		t.Errorf("without pods: %v, %v, want no waves", p.waves, err)
	}
}

func TestWithoutADefaultSchedulerOnePodNamesNoneAndMayStayPending(t *testing.T) {
	p, err := newPlan([]string{"mine"}, 1, nil)
	if err != nil {
		t.Fatal(err)
	}
	pods := p.pods()
	if len(pods) != 2 || pods[1].Spec.SchedulerName != "" || !p.orphan {
		t.Fatalf("pods %v, want one more that names no scheduler", pods)
	}
	orphan := result{pods[1], localcluster.Placement{Name: pods[1].Name, Asked: "default-scheduler"}}
	if err := orphan.err(); err != nil {
		t.Errorf("the orphan is Pending: %v", err)
	}
}

func TestPodIsWrongUnlessItIsWhereItShouldBe(t *testing.T) {
	bound := localcluster.Placement{Asked: "s", Served: true, Node: "n", Profile: "s"}
	pending := localcluster.Placement{Asked: "s", Served: true, Message: "denied"}
	unseen := localcluster.Placement{Asked: "s", Served: true}
	for name, test := range map[string]struct {
		staysPending bool
		placement    localcluster.Placement
		right        bool
	}{
		"bound":                                {false, bound, true},
		"pending":                              {false, pending, false},
		"bound, and should not be":             {true, bound, false},
		"pending, and should be":               {true, pending, true},
		"should be pending, not looked at yet": {true, unseen, false},
		"should be pending, never created":     {true, localcluster.NotCreated(localcluster.NewPod("p", "s")), false},
	} {
		pod := localcluster.NewPod("p", "s")
		if test.staysPending {
			pod.Annotations = map[string]string{staysPending: "true"}
		}
		err := result{pod, test.placement}.err()
		if (err == nil) != test.right {
			t.Errorf("%s: %v", name, err)
		}
		if err != nil && !strings.Contains(err.Error(), "next: ") {
			t.Errorf("%s: %v does not say what is next", name, err)
		}
	}
}

// results are pods of two profiles, a and b, of which three are bound.
func results() []result {
	placed := func(name, profile, node string) result {
		placement := localcluster.Placement{
			Namespace: "default", Name: name, Asked: profile, Served: true, Node: node, After: 3 * time.Millisecond,
		}
		if node == "" {
			placement.Message = "0/2 nodes are available:\n2 denied."
		} else {
			placement.Profile = profile
		}
		return result{localcluster.NewPod(name, profile), placement}
	}
	pending := placed("waits", "a", "")
	pending.Namespace = "team"
	return []result{placed("p1", "a", "n1"), placed("p2", "b", "n1"), placed("p3", "b", "n2"), pending}
}

func nodes() []corev1.Node {
	node := func(name, diskType string) corev1.Node {
		node := corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}
		if diskType != "" {
			node.Labels = map[string]string{localcluster.DiskType: diskType, corev1.LabelTopologyZone: "zone-a"}
		}
		node.Status.Allocatable = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("8")}
		return node
	}
	return []corev1.Node{node("n1", "ssd"), node("n2", ""), node("n3", "hdd")}
}

func TestTableHasALineForEachPodWithTheWholeMessageOfOneThatIsPending(t *testing.T) {
	var out strings.Builder
	if err := printTable(&out, results(), nodes()); err != nil {
		t.Fatal(err)
	}
	expect(t, out.String(), `
POD          SCHEDULER   NODE   NODE LABEL disktype   AFTER
p1           a           n1     ssd                   3ms
p2           b           n1     ssd                   3ms
p3           b           n2     -                     3ms
team/waits   -           -      -                     Pending: 0/2 nodes are available: 2 denied.

`)
}

func TestNodesTableCountsPodsByProfileAndWhatTheyRequest(t *testing.T) {
	var out strings.Builder
	if err := printNodes(&out, nodes(), []string{"a", "b"}, results()); err != nil {
		t.Fatal(err)
	}
	expect(t, out.String(), `NODE   disktype   ZONE     PODS BY a   BY b   CPU REQUESTED
n1     ssd        zone-a   1           1      200m of 8
n2     -          -        0           1      100m of 8
n3     hdd        zone-a   0           0      0 of 8
nodes with pods: 2 of 3 (a 1, b 2)

`)
	out.Reset()
	if err := printNodes(&out, nodes(), []string{"a"}, results()[:1]); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(out.String(), "nodes with pods: 1 of 3\n") {
		t.Errorf("of one profile it says\n%s", out.String())
	}
}

func TestEventsArePrintedUnlessTheTableSaysTheSame(t *testing.T) {
	event := func(pod, namespace, reason, message string) corev1.Event {
		return corev1.Event{
			InvolvedObject: corev1.ObjectReference{Kind: "Pod", Namespace: namespace, Name: pod}, Reason: reason, Message: message,
		}
	}
	events := []corev1.Event{
		event("p1", "default", "Scheduled", "Successfully assigned"),
		event("p2", "default", "Chaos", "chaos: delayed"),
		event("p1", "default", "FailedScheduling", "0/2 nodes\nare available"),
		event("waits", "team", "FailedScheduling", "0/2 nodes are available"),
		event("p1", "other", "Chaos", "of another namespace"),
	}
	var out strings.Builder
	if err := printEvents(&out, results(), events); err != nil {
		t.Fatal(err)
	}
	expect(t, out.String(), `POD   EVENT              MESSAGE
p1    FailedScheduling   0/2 nodes are available
p2    Chaos              chaos: delayed

`)
	out.Reset()
	if err := printEvents(&out, results(), events[:1]); err != nil || out.Len() != 0 {
		t.Errorf("with nothing to say: %q, %v", out.String(), err)
	}
}

func TestLinesOfTheLogThatHoldATextArePrinted(t *testing.T) {
	var out strings.Builder
	if err := printLog(&out, writeFile(t, "one x\ntwo\nthree x\n"), "x"); err != nil {
		t.Fatal(err)
	}
	expect(t, out.String(), "2 lines of the scheduler's log contain \"x\"\none x\nthree x\n\n")
}

func expect(t *testing.T, got, want string) {
	t.Helper()
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func writeFile(t *testing.T, content string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

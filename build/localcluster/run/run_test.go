// SPDX-License-Identifier: Apache-2.0

package run

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

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

func writeFile(t *testing.T, content string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

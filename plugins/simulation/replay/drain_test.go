// SPDX-License-Identifier: Apache-2.0

package replay

import (
	"fmt"
	"math/rand"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/simulation/input"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/simulation/result"
	st "k8s.io/kubernetes/pkg/scheduler/testing"
	"k8s.io/utils/pointer"
)

// Each of the processes simulates a number of clusters, which have their own nodes and namespaces, in one.
const (
	processes    = 20
	clustersEach = 50
)

// randomCluster adds a cluster of three to five nodes with pods of several owners, some of which have budgets. It returns
// the nodes to drain.
func (w *world) randomCluster(r *rand.Rand, name string) []string {
	var nodes []string
	free := map[string]int{}
	for i := 0; i < 3+r.Intn(3); i++ {
		node := fmt.Sprintf("%s-%d", name, i)
		nodes, free[node] = append(nodes, node), 2+r.Intn(4)
		w.cluster.Nodes = append(w.cluster.Nodes, st.MakeNode().Name(node).Label("cluster", name).Label(v1.LabelHostname, node).
			Capacity(map[v1.ResourceName]string{"cpu": fmt.Sprint(free[node]), "pods": "20"}).Obj())
	}
	for i := 0; i < 1+r.Intn(4); i++ {
		app, owner := fmt.Sprintf("app-%d", i), []string{"ReplicaSet", "ReplicaSet", "StatefulSet", "Job", "DaemonSet", ""}[r.Intn(6)]
		apart := r.Intn(4) == 0
		for j := 0; j < 1+r.Intn(4); j++ {
			on := nodes[r.Intn(len(nodes))]
			if free[on] == 0 {
				continue
			}
			free[on]--
			pod := st.MakePod().Namespace(name).Name(fmt.Sprintf("%s-%d", app, j)).UID(fmt.Sprint(name, app, j)).Label("app", app).
				NodeSelector(map[string]string{"cluster": name}).SchedulerName("default-scheduler").Node(on).Req(map[v1.ResourceName]string{"cpu": "1"})
			if apart {
				pod.PodAntiAffinityExists("app", v1.LabelHostname, st.PodAntiAffinityWithRequiredReq)
			}
			of := pod.Obj()
			if owner != "" {
				of.OwnerReferences = []metav1.OwnerReference{{Kind: owner, Name: app, Controller: pointer.Bool(true)}}
			}
			if of.Status.Phase = v1.PodRunning; r.Intn(8) == 0 {
				of.Status.Phase = v1.PodPending
			}
			w.cluster.Pods = append(w.cluster.Pods, of)
		}
		for j := r.Intn(4) - 1; j > 0; j-- {
			budget := &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: name, Name: fmt.Sprintf("%s-%d", app, j)}}
			budget.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": app}}
			budget.Status.DisruptionsAllowed = int32(r.Intn(3))
			budget.Status.CurrentHealthy, budget.Status.DesiredHealthy = 2+budget.Status.DisruptionsAllowed, 2
			w.cluster.Objects = append(w.cluster.Objects, budget)
		}
	}
	r.Shuffle(len(nodes), func(i, j int) { nodes[i], nodes[j] = nodes[j], nodes[i] })
	return nodes[:1+r.Intn(2)]
}

// end describes the end of a drain: what the pods that were on the nodes are, and how many of the cluster's others wait.
func (w *world) end(name string, before []*pod) string {
	var pods []string
	for _, p := range before {
		state := "moved"
		switch _, there := w.pods[p.key]; {
		case p.workload.Owner == "":
			state = "lost"
		case there && !p.deleted:
			state = "blocked"
		}
		pods = append(pods, p.key+" "+state)
	}
	waiting := 0
	for _, p := range w.pods {
		if strings.HasPrefix(p.key, name+"/") && p.node == nil {
			waiting++
		}
	}
	return fmt.Sprintf("%s, %d wait", strings.Join(sorted(pods), ", "), waiting)
}

// answered describes an answer in the same way.
func answered(drain *result.Drain) string {
	var pods []string
	for _, p := range append(append([]result.Placement(nil), drain.Moved...), drain.Wait...) {
		pods = append(pods, p.Pod+" moved")
	}
	for _, p := range drain.Blocked {
		pods = append(pods, p.Pod+" blocked")
	}
	for _, key := range drain.Lost {
		pods = append(pods, key+" lost")
	}
	return fmt.Sprintf("%s, %d wait", strings.Join(sorted(pods), ", "), len(drain.Wait))
}

// drainsAgree asks for drains, each with all else as it was, and then drains the same nodes as a trace does.
func drainsAgree(w *world) {
	w.question = true
	r := rand.New(rand.NewSource(w.seed))
	var drained [][]string
	for i := 0; i < clustersEach; i++ {
		drained = append(drained, w.randomCluster(r, fmt.Sprintf("c%d", i)))
	}
	w.start(0)
	var answers []string
	var before [][]*pod
	for _, names := range drained {
		answer, err := w.Drain(names)
		utilruntime.Must(err)
		answers = append(answers, answered(&answer))
		var pods []*pod
		for _, name := range names {
			for _, p := range w.podsOn(w.nodes[name]) {
				if p.moves() {
					pods = append(pods, p)
				}
			}
		}
		before = append(before, pods)
	}
	w.options.Question = false
	w.At(w.now(), func() {
		for _, names := range drained {
			for _, name := range names {
				w.Apply(&input.Event{Node: name, Change: input.DrainNode})
			}
		}
	})
	w.advance(w.now() + drainTimeout + 10*time.Minute)
	for i := range drained {
		if got := w.end(fmt.Sprintf("c%d", i), before[i]); got != answers[i] {
			w.printf("drain of %v\nanswer: %s\nevent:  %s\n", drained[i], answers[i], got)
		}
	}
}

// TestDrainsAgree verifies that the answer to a question about a drain is what a trace's drain leads to.
func TestDrainsAgree(t *testing.T) {
	for i := 0; i < processes; i++ {
		if differ := printed(t, "drains agree", int64(i)); differ != "" {
			t.Errorf("process %d: %s", i, differ)
		}
	}
}

// SPDX-License-Identifier: Apache-2.0

package scheduler

import (
	"context"
	"fmt"
	"math/rand"
	"reflect"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	internalcache "k8s.io/kubernetes/pkg/scheduler/internal/cache"
	st "k8s.io/kubernetes/pkg/scheduler/testing"
)

// remembering returns a scheduler with six nodes, whose profile has more plugins.
func remembering(t *testing.T, change func(*config.Plugins), more ...framework.Plugin) *attempts {
	cache := internalcache.New(time.Hour, nil)
	for i := 0; i < 6; i++ {
		cache.AddNode(st.MakeNode().Name(fmt.Sprint("node-", i)).Capacity(map[v1.ResourceName]string{"cpu": "8", "memory": "8Gi", "pods": "100"}).Obj())
	}
	return newAttempts(t, cache, change, more)
}

func remembered(i int) *v1.Pod {
	return st.MakePod().Namespace("default").Name(fmt.Sprint("p-", i)).UID(fmt.Sprint("p-", i)).Req(map[v1.ResourceName]string{"cpu": "1"}).Obj()
}

// shares is a node-local plugin that normalizes scores to shares of their sum.
type shares struct{}

func (shares) Name() string                                      { return "Shares" }
func (shares) NodeLocalKey(_ *v1.Pod, key []byte) ([]byte, bool) { return key, true }
func (shares) ScoreExtensions() framework.ScoreExtensions        { return shares{} }
func (shares) Score(_ context.Context, _ *framework.CycleState, _ *v1.Pod, node string) (int64, *framework.Status) {
	if node == "node-0" || node == "node-5" {
		return 100, nil
	}
	return 0, nil
}

func (shares) NormalizeScore(_ context.Context, _ *framework.CycleState, _ *v1.Pod, scores framework.NodeScoreList) *framework.Status {
	sum := int64(0)
	for i := range scores {
		sum += scores[i].Score
	}
	for i := range scores {
		scores[i].Score = 100 * scores[i].Score / sum
	}
	return nil
}

func TestNormalizeScoreGetsAllNodes(t *testing.T) {
	s := remembering(t, func(p *config.Plugins) { p.Score.Enabled = []config.Plugin{{Name: "Shares", Weight: 1}} }, shares{})
	var want framework.NodeScoreList
	for i := 0; i < 4; i++ {
		state, pod := framework.NewCycleState(), remembered(i)
		s.nextStartNodeIndex = 0
		if err := s.snapshot(); err != nil {
			t.Fatal(err)
		}
		nodes, _, err := s.findNodesThatFitPod(context.Background(), nil, s.fwk, state, pod)
		if err != nil {
			t.Fatal(err)
		}
		got, err := prioritizeNodes(context.Background(), nil, s.fwk, state, pod, nodes)
		if err != nil {
			t.Fatal(err)
		}
		if got = append(framework.NodeScoreList(nil), got...); i == 0 {
			want = got
		}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("pod %d: got %v, want %v", i, got, want)
		}
	}
}

// other is a filter that is not node-local. It counts how often it is prepared, and rejects node-2.
type other struct{ prepared int }

func (*other) Name() string { return "Other" }
func (*other) Filter(_ context.Context, _ *framework.CycleState, _ *v1.Pod, node *framework.NodeInfo) *framework.Status {
	if node.Node().Name == "node-2" {
		return framework.NewStatus(framework.Unschedulable, "no")
	}
	return nil
}

func (pl *other) PrepareFilter(*framework.CycleState, *v1.Pod) func(*framework.NodeInfo) *framework.Status {
	pl.prepared++
	return func(node *framework.NodeInfo) *framework.Status { return pl.Filter(context.TODO(), nil, nil, node) }
}

// failing is a node-local filter that fails for node-2.
type failing struct{}

func (failing) Name() string                                      { return "Failing" }
func (failing) NodeLocalKey(_ *v1.Pod, key []byte) ([]byte, bool) { return key, true }
func (failing) Filter(_ context.Context, _ *framework.CycleState, _ *v1.Pod, node *framework.NodeInfo) *framework.Status {
	if node.Node().Name == "node-2" {
		return framework.NewStatus(framework.Error, "failed")
	}
	return nil
}

func TestFilterBeforeNodeLocalOne(t *testing.T) {
	pl := &other{}
	s := remembering(t, func(p *config.Plugins) {
		p.Filter.Enabled = append([]config.Plugin{{Name: "Other"}, {Name: "Failing"}}, p.Filter.Enabled...)
	}, pl, failing{})
	for i := 0; i < 4; i++ {
		rand.Seed(1)
		if _, err := s.Schedule(context.Background(), nil, s.fwk, framework.NewCycleState(), remembered(i)); err != nil {
			t.Errorf("pod %d: %v, although a filter before the one that fails rejects the node", i, err)
		}
	}
	before := pl.prepared
	if differs := s.fwk.(comparer).CompareCache(s.cache.Dump().Nodes); len(differs) > 0 || pl.prepared != before {
		t.Errorf("differs: %q; a comparison has prepared a filter that is not node-local %d times", differs, pl.prepared-before)
	}
}

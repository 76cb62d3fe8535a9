// SPDX-License-Identifier: Apache-2.0

package scheduler

import (
	"fmt"
	"reflect"
	"sync"
	"testing"

	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	st "k8s.io/kubernetes/pkg/scheduler/testing"
)

func TestRejections(t *testing.T) {
	var r rejections
	// A smaller and a larger search reuse the memory.
	for _, nodes := range []int{100, 10, 200} {
		r.reset(nodes)
		diagnosis := &framework.Diagnosis{NodeToStatusMap: framework.NodeToStatusMap{}, UnschedulablePlugins: sets.NewString()}
		want := framework.NodeToStatusMap{}
		var wg sync.WaitGroup
		for i := 0; i < nodes; i++ {
			nodeInfo := framework.NewNodeInfo()
			nodeInfo.SetNode(st.MakeNode().Name(fmt.Sprint(i)).Obj())
			status := framework.NewStatus(framework.Unschedulable, fmt.Sprint(i)).WithFailedPlugin([]string{"x", "y", "x"}[i%3])
			want[fmt.Sprint(i)] = status
			wg.Add(1)
			go func() {
				defer wg.Done()
				r.add(nodeInfo, status)
			}()
		}
		wg.Wait()
		r.moveTo(diagnosis)
		if !reflect.DeepEqual(diagnosis.NodeToStatusMap, want) || !diagnosis.UnschedulablePlugins.Equal(sets.NewString("x", "y")) {
			t.Errorf("%d nodes: got %v of %v", nodes, diagnosis.NodeToStatusMap, diagnosis.UnschedulablePlugins.List())
		}
		for i := range r.list {
			if r.list[i].nodeInfo != nil {
				t.Fatalf("%d nodes: node %d is still referenced", nodes, i)
			}
		}
	}
	// Results of an earlier search stay in the diagnosis, as for a nominated node.
	diagnosis := &framework.Diagnosis{NodeToStatusMap: framework.NodeToStatusMap{"nominated": nil}, UnschedulablePlugins: sets.NewString()}
	r.reset(1)
	nodeInfo := framework.NewNodeInfo()
	nodeInfo.SetNode(st.MakeNode().Name("n").Obj())
	r.add(nodeInfo, framework.NewStatus(framework.Unschedulable).WithFailedPlugin("x"))
	r.moveTo(diagnosis)
	if len(diagnosis.NodeToStatusMap) != 2 {
		t.Errorf("got %v", diagnosis.NodeToStatusMap)
	}
}

// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"fmt"
	"math/rand"
	"reflect"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	st "k8s.io/kubernetes/pkg/scheduler/testing"
)

// TestUndoneEditsLeaveTheSnapshotAsItWas edits a snapshot at random. After Undo it has the same nodes, pods and lists,
// the cache's nodes have not changed, and each change was reported.
func TestUndoneEditsLeaveTheSnapshotAsItWas(t *testing.T) {
	random := rand.New(rand.NewSource(1))
	cache, snapshot := newSchedulerCache(time.Hour, time.Hour, nil), NewEmptySnapshot()
	made := 0
	newPod := func(node string) *v1.Pod {
		made++
		pod := st.MakePod().Name(fmt.Sprint("pod-", made)).Node(node)
		switch random.Intn(4) {
		case 0:
			pod = pod.PodAffinityExists("app", "zone", st.PodAffinityWithPreferredReq)
		case 1:
			pod = pod.PodAntiAffinityExists("app", "zone", st.PodAntiAffinityWithRequiredReq)
		case 2:
			pod = pod.PVC(fmt.Sprint("claim-", random.Intn(3)))
		}
		pod.Obj().UID = types.UID(pod.Obj().Name)
		return pod.Obj()
	}
	names := make([]string, 6)
	for i := range names {
		names[i] = fmt.Sprint("node-", i)
		cache.AddNode(st.MakeNode().Name(names[i]).Obj())
		for n := random.Intn(3); n > 0; n-- {
			if err := cache.AddPod(newPod(names[i])); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := cache.UpdateSnapshot(snapshot); err != nil {
		t.Fatal(err)
	}
	type view struct {
		nodes                  []framework.NodeInfo
		affinity, antiAffinity []*framework.NodeInfo
		claims                 []map[string]int
	}
	look := func() (v view) {
		for _, node := range snapshot.nodeInfoList {
			v.nodes = append(v.nodes, *node.WithOwnClaims().Clone())
			v.claims = append(v.claims, node.WithOwnClaims().PVCRefCounts)
		}
		v.affinity = append(v.affinity, snapshot.havePodsWithAffinityNodeInfoList...)
		v.antiAffinity = append(v.antiAffinity, snapshot.havePodsWithRequiredAntiAffinityNodeInfoList...)
		return v
	}
	_, position, _ := snapshot.ChangedSince(0)
	views := []view{look()}
	for step := 0; step < 500; step++ {
		if random.Intn(3) == 0 {
			n := random.Intn(snapshot.Edits() + 1)
			snapshot.Undo(n)
			views = views[:n+1]
		} else {
			name := names[random.Intn(len(names))]
			if err := snapshot.Edit(name, func(node *framework.NodeInfo) error {
				if len(node.Pods) > 0 && random.Intn(2) == 0 {
					return node.RemovePod(node.Pods[0].Pod)
				}
				node.AddPod(newPod(name))
				return nil
			}); err != nil {
				t.Fatal(err)
			}
			views = append(views, look())
			changed, now, ok := snapshot.ChangedSince(position)
			if position = now; !ok || changed[len(changed)-1].Node().Name != name {
				t.Fatalf("step %d: the change of %s is not reported", step, name)
			}
		}
		if now := look(); !reflect.DeepEqual(now, views[len(views)-1]) {
			t.Fatalf("step %d: the snapshot is %+v, want %+v", step, now, views[len(views)-1])
		}
	}
	snapshot.Undo(0)
	for i, name := range names {
		if cached := cache.nodes[name].info.PVCRefCounts; !reflect.DeepEqual(cached, views[0].claims[indexOf(snapshot, name)]) {
			t.Errorf("%s (%d) counts %v in the cache, want %v", name, i, cached, views[0].claims[indexOf(snapshot, name)])
		}
	}
}

func indexOf(snapshot *Snapshot, name string) int {
	for i, node := range snapshot.nodeInfoList {
		if node.Node().Name == name {
			return i
		}
	}
	return -1
}

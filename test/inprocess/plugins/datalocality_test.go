// SPDX-License-Identifier: Apache-2.0

package plugins

import (
	"reflect"
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/datalocality"
	st "k8s.io/kubernetes/pkg/scheduler/testing"
	"kube-scheduler-fork/test/inprocess/decision"
)

// dataServer returns a running pod that serves a dataset on a node.
func dataServer(name, node, dataset, cpu string, priority int32) *v1.Pod {
	pod := st.MakePod().Name(name).UID(name).Node(node).Label("dataset", dataset).Priority(priority).
		Req(map[v1.ResourceName]string{v1.ResourceCPU: cpu}).Obj()
	pod.Status.Phase = v1.PodRunning
	return pod
}

// TestPreemptionKeepsTheDataOfThePod has a pod that must be on a node with its data, and full nodes with one CPU each.
func TestPreemptionKeepsTheDataOfThePod(t *testing.T) {
	web := func(name, node, cpu string) *v1.Pod {
		return st.MakePod().Name(name).UID(name).Node(node).Priority(0).Req(map[v1.ResourceName]string{v1.ResourceCPU: cpu}).Obj()
	}
	tests := []struct {
		name    string
		running []*v1.Pod
		// want are the expected victims.
		want []string
	}{
		{
			name:    "on the node with the data, and not on the other",
			running: []*v1.Pod{dataServer("server", "node-0", "sales", "100m", 1000), web("web-0", "node-0", "900m"), web("web-1", "node-1", "1")},
			want:    []string{"web-0"},
		},
		{
			// Preemption first removes all pods of lower priority, including
			// those with the data. Pod affinity has the same limit.
			name:    "none, where the pod that serves the data could be preempted too",
			running: []*v1.Pod{dataServer("server", "node-0", "sales", "500m", 0), web("web-0", "node-0", "500m"), web("web-1", "node-1", "1")},
			want:    nil,
		},
		{
			name:    "never the only pod that serves the data",
			running: []*v1.Pod{dataServer("server", "node-0", "sales", "1", 0), web("web-1", "node-1", "1")},
			want:    nil,
		},
		{
			name: "one of two pods that serve the data, the less important one",
			running: []*v1.Pod{
				dataServer("server-1", "node-0", "sales", "500m", 1000), dataServer("server-2", "node-0", "sales", "500m", 10), web("web-1", "node-1", "1"),
			},
			want: []string{"server-2"},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			nodes := nodesOf(2, "1")
			for _, node := range nodes {
				node.Labels = map[string]string{v1.LabelHostname: node.Name}
			}
			s := decision.New(t, decision.Options{
				Config: with(datalocality.Name, `{servers: [{datasetLabel: dataset}], requireWithin: kubernetes.io/hostname}`), Plugins: registered(), Nodes: nodes,
			})
			s.Create(tt.running...)
			reader := st.MakePod().Name("reader").UID("reader").Priority(100).Req(map[v1.ResourceName]string{v1.ResourceCPU: "500m"}).Obj()
			reader.Annotations = map[string]string{"data-locality.scheduler/datasets": "sales=1Ti"}
			made := s.Schedule(reader)[0]
			if made.Node != "" {
				t.Fatalf("there is no room, and still it goes to %s", made.Node)
			}
			if names := deleted(s); !reflect.DeepEqual(names, tt.want) {
				t.Fatalf("%v deleted, want %v; %s", names, tt.want, made.Failure)
			}
			if tt.want == nil {
				return
			}
			if again := s.Retry("default/reader")[0]; again.Node != "node-0" {
				t.Errorf("afterwards it goes to %q: %s", again.Node, again.Failure)
			}
		})
	}
}

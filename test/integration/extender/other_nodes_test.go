// SPDX-License-Identifier: Apache-2.0

package extender

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	extenderv1 "k8s.io/kube-scheduler/extender/v1"

	"kube-scheduler-fork/build/localcluster"
	"kube-scheduler-fork/test/cluster"
)

// TestExtenderThatKnowsNodesByOtherNames answers filter with the right nodes under names that the cluster does not
// have. This is an error for this project's scheduler as for a stock one: a pod that could preempt evicts nothing, and
// an ignorable extender is skipped. A stock scheduler would detect unknown names, but accept unknown whole nodes.
func TestExtenderThatKnowsNodesByOtherNames(t *testing.T) {
	c := shared.Get(t)
	one := corev1.ResourceList{
		corev1.ResourceCPU: resource.MustParse("1"), corev1.ResourceMemory: resource.MustParse("1Gi"), corev1.ResourcePods: resource.MustParse("10"),
	}
	for _, name := range []string{"full", "free"} {
		c.CreateNodes(t, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}, Status: corev1.NodeStatus{Capacity: one, Allocatable: one}})
	}
	evictable := localcluster.NewPod("evictable", "none")
	evictable.Spec.NodeName = "full"
	evictable.Spec.Containers[0].Resources.Requests[corev1.ResourceCPU] = one[corev1.ResourceCPU]
	evictable = c.CreatePod(t, evictable)

	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		var asked extenderv1.ExtenderArgs
		if err := json.NewDecoder(request.Body).Decode(&asked); err != nil {
			t.Error(err)
		}
		var answer extenderv1.ExtenderFilterResult
		if asked.NodeNames != nil {
			answer.NodeNames = &[]string{}
			for _, name := range *asked.NodeNames {
				*answer.NodeNames = append(*answer.NodeNames, name+".example.com")
			}
		} else {
			answer.Nodes = asked.Nodes
			for i := range answer.Nodes.Items {
				answer.Nodes.Items[i].Name += ".example.com"
			}
		}
		if err := json.NewEncoder(w).Encode(answer); err != nil {
			t.Error(err)
		}
	}))
	t.Cleanup(server.Close)

	pods := 0
	for _, scheduler := range []struct {
		program string
		names   bool
	}{
		{"STOCK_SCHEDULER", true},
		{"KUBE_SCHEDULER", true},
		{"KUBE_SCHEDULER", false},
	} {
		for _, ignorable := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, names: %v, ignorable: %v", scheduler.program, scheduler.names, ignorable), func(t *testing.T) {
				file := filepath.Join(t.TempDir(), "config.yaml")
				cluster.Write(t, file, fmt.Sprintf("apiVersion: kubescheduler.config.k8s.io/v1beta3\nkind: KubeSchedulerConfiguration\n"+
					"profiles: [{schedulerName: default-scheduler}]\n"+
					"extenders: [{urlPrefix: %q, filterVerb: filter, nodeCacheCapable: %v, ignorable: %v}]\n",
					server.URL, scheduler.names, ignorable))
				c.StartScheduler(t, cluster.Program(t, scheduler.program), file)
				pods++
				pod := localcluster.NewPod(fmt.Sprintf("important-%d", pods), "")
				pod.Spec.PriorityClassName = "system-node-critical"
				pod = c.CreatePod(t, pod)
				if ignorable {
					if node := c.AwaitBound(t, pod); node != "free" {
						t.Errorf("the pod is on %s, want the node that is free", node)
					}
				} else {
					(&stand{Cluster: c}).awaitNotBound(t, pod, "which is not found in the input node list")
				}
				if seen, err := c.Pod(t, evictable.Namespace, evictable.Name); err != nil || seen.DeletionTimestamp != nil {
					t.Errorf("the pod on the full node is evicted: %v", err)
				}
				// Otherwise the next scheduler would place it.
				if err := c.Client().CoreV1().Pods(pod.Namespace).Delete(t.Context(), pod.Name, metav1.DeleteOptions{GracePeriodSeconds: new(int64)}); err != nil {
					t.Error(err)
				}
			})
		}
	}
}

// SPDX-License-Identifier: Apache-2.0

package scenarios

import (
	"context"
	"encoding/json"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	"sigs.k8s.io/yaml"

	"kube-scheduler-fork/test/cluster"
)

// TestOvercommitIsTakenBack runs the examples for overcommitting pods: a policy makes such pods, and a script evicts
// them from a node above its bound.
func TestOvercommitIsTakenBack(t *testing.T) {
	const examples = "manifests/examples/overcommit/"
	s := newStand(t)
	s.CreateNodes(t, newNode("node-1", ""))
	scheduler := s.StartScheduler(t, cluster.Program(t, "KUBE_SCHEDULER"), "manifests/config/overcommit-requests.yaml")
	s.Create(t, "{apiVersion: scheduling.k8s.io/v1, kind: PriorityClass, metadata: {name: low}, value: -1}")
	t.Cleanup(func() { s.Kubectl(t, context.Background(), "delete", "priorityclass", "low") })
	ordinary := func(name, cpu string) {
		pod := newPod("default", "ordinary", name)
		pod.Spec.Containers[0].Resources.Requests[corev1.ResourceCPU] = resource.MustParse(cpu)
		s.AwaitBound(t, s.CreatePod(t, pod))
	}
	ordinary("at-first", "5")

	// 7.2 of 8 CPUs can be used. 5 are requested, so four pods of half a core fit.
	policy := cluster.Read(t, examples+"kyverno.yaml")
	overcommitting := func(name, class string) *corev1.Pod {
		pod := newPod("default", "batch", name)
		pod.Spec.PriorityClassName = class
		return s.CreatePod(t, mutate(t, policy, pod))
	}
	old := overcommitting("old", "low")
	s.AwaitBound(t, old)
	s.Await(t, "the next pod to be younger", func() error {
		return cluster.Unless(time.Now().Unix() > old.CreationTimestamp.Unix(), "it would not be")
	})
	for _, pod := range [][2]string{{"young", "low"}, {"usual-1", ""}, {"usual-2", ""}} {
		s.AwaitBound(t, overcommitting(pod[0], pod[1]))
	}

	ordinary("then", "700m")
	state := func(want string) {
		t.Helper()
		s.Await(t, "node-1 to be "+want, func() error {
			page, err := s.Get(t.Context(), scheduler.URL()+"/overcommit")
			return cluster.Unless(err == nil && strings.Contains(string(page), want), "%s (%v)", page, err)
		})
	}
	state(`"state":"exceeded"`)
	state(`"usableMilliCPU":-500`)
	command := exec.CommandContext(t.Context(), "bash", examples+"evict.sh", "node-1", "500")
	command.Env = []string{"PATH=" + filepath.Dir(cluster.Program(t, "KUBECTL")) + ":/usr/bin:/bin", "KUBECONFIG=" + s.Kubeconfig(), "HOME=" + s.Folder()}
	output, err := command.CombinedOutput()
	if want := "evicted default/young, which asked for 500 thousandths of a core\n"; err != nil || string(output) != want {
		t.Errorf("the script says %q (%v), want %q", output, err, want)
	}
	state(`"usableMilliCPU":0`)
	s.awaitCounts(t, "after the eviction", map[string][2]int{"ordinary": {2, 0}, "batch": {3, 0}})
}

// mutate changes a pod with the strategic merge patch of a policy of Kyverno, whose anchor selects each container.
func mutate(t *testing.T, policy string, pod *corev1.Pod) *corev1.Pod {
	t.Helper()
	var parsed struct {
		Spec struct {
			Rules []struct {
				Mutate struct{ PatchStrategicMerge json.RawMessage }
			}
		}
	}
	err := yaml.Unmarshal([]byte(strings.Replace(policy, `(name): "*"`, "name: "+pod.Spec.Containers[0].Name, 1)), &parsed)
	if err != nil || len(parsed.Spec.Rules) != 1 {
		t.Fatalf("the policy has %d rules, want 1 (%v)", len(parsed.Spec.Rules), err)
	}
	content, err := json.Marshal(pod)
	if err != nil {
		t.Fatal(err)
	}
	if content, err = strategicpatch.StrategicMergePatch(content, parsed.Spec.Rules[0].Mutate.PatchStrategicMerge, pod); err != nil {
		t.Fatal(err)
	}
	mutated := &corev1.Pod{}
	if err := json.Unmarshal(content, mutated); err != nil {
		t.Fatal(err)
	}
	return mutated
}

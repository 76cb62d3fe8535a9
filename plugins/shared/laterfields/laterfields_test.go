// SPDX-License-Identifier: Apache-2.0

package laterfields_test

import (
	"encoding/base64"
	encoding "encoding/json"
	"fmt"
	"math/rand"
	"os"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"sigs.k8s.io/json"

	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/shared/laterfields"
)

// example is a pod with a later field in both encodings. testdata/pods.tsv was written with the types of k8s.io/api
// v0.37.2, for workloadRef of v0.35.3, and for the last line of v0.36.1.
type example struct {
	path           string
	json, protobuf []byte
}

func examples(t testing.TB) []example {
	t.Helper()
	file, err := os.ReadFile("testdata/pods.tsv")
	if err != nil {
		t.Fatal(err)
	}
	var all []example
	for _, line := range strings.Split(strings.TrimSpace(string(file)), "\n") {
		fields := strings.Split(line, "\t")
		message, err := base64.StdEncoding.DecodeString(fields[2])
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, example{fields[0], []byte(fields[1]), message})
	}
	return all
}

func fromProtobuf(t testing.TB, message []byte) (*v1.Pod, *laterfields.Found) {
	t.Helper()
	pod := &v1.Pod{}
	if err := pod.Unmarshal(message); err != nil {
		t.Fatal(err)
	}
	return pod, laterfields.FromProtobuf(message, pod)
}

func fromJSON(t testing.TB, data string) (*v1.Pod, *laterfields.Found) {
	t.Helper()
	pod := &v1.Pod{}
	if err := json.UnmarshalCaseSensitivePreserveInts([]byte(data), pod); err != nil {
		t.Fatal(err)
	}
	return pod, laterfields.FromJSON([]byte(data), pod)
}

// effect is what a scheduler of 1.23 sees of the pod, and what lies beside it.
func effect(pod *v1.Pod, found *laterfields.Found) string {
	node := framework.NewNodeInfo(pod)
	s := fmt.Sprintf("%dm of %dm, %d ports", node.Requested.MilliCPU, node.NonZeroRequested.MilliCPU, node.UsedPorts.Len())
	for _, c := range pod.Spec.TopologySpreadConstraints {
		if c.LabelSelector != nil {
			s += ", " + metav1.FormatLabelSelector(c.LabelSelector)
		}
	}
	if found != nil {
		s += fmt.Sprintf(", gates %v, spread %v, %s", found.Gates, found.Spread, found.Refusal)
	}
	return s
}

func refusal(field string, since int) string {
	return fmt.Sprintf(", gates [], spread [], the pod's %s is known to Kubernetes 1.%d and later, and not to this scheduler: "+
		"it does not place this pod", field, since)
}

func TestEffectOfEachField(t *testing.T) {
	want := map[string]string{
		"spec.schedulingGates":                                "0m of 0m, 0 ports, gates [a b], spread [], ",
		"spec.topologySpreadConstraints[].minDomains":         "0m of 0m, 0 ports, gates [], spread [{0  } {3  }], ",
		"spec.topologySpreadConstraints[].nodeAffinityPolicy": "0m of 0m, 0 ports, gates [], spread [{0 Ignore }], ",
		"spec.topologySpreadConstraints[].nodeTaintsPolicy":   "0m of 0m, 0 ports, gates [], spread [{0  Honor}], ",
		"spec.topologySpreadConstraints[].matchLabelKeys":     "0m of 0m, 0 ports, app=a,hash in (x)",
		// The sidecar's 200m run next to the container's 100m, and before that next to the init container's 300m.
		"spec.initContainers[].restartPolicy": "500m of 500m, 1 ports",
		"spec.resourceClaims":                 "0m of 0m, 0 ports" + refusal("spec.resourceClaims", 26),
		"spec.resources":                      "0m of 0m, 0 ports" + refusal("spec.resources", 32),
		"spec.workloadRef":                    "0m of 0m, 0 ports" + refusal("spec.workloadRef", 35),
		"spec.schedulingGroup":                "0m of 0m, 0 ports" + refusal("spec.schedulingGroup", 36),
		"spec.tolerations[].operator":         "0m of 0m, 0 ports" + refusal("spec.tolerations[].operator", 35),
		"spec.hostUsers with spec.hostNetwork": "0m of 0m, 0 ports" +
			refusal("spec.hostUsers with spec.hostNetwork", 35),
		"spec.containers[].restartPolicyRules[].action": "0m of 100m, 0 ports" +
			refusal("spec.containers[].restartPolicyRules[].action", 35),
		"spec.containers[].volumeMounts[].bindMountOptions": "0m of 100m, 0 ports" +
			refusal("spec.containers[].volumeMounts[].bindMountOptions", 37),
		"status.containerStatuses[].allocatedResources": "200m of 200m, 0 ports",
		// The node can never give the 400m of the spec.
		"status.containerStatuses[].resources":      "300m of 300m, 0 ports",
		"status.allocatedResources":                 "250m of 250m, 0 ports",
		"status.allocatedResources behind the spec": "300m of 300m, 0 ports",
		// 350m run at pod level, 300m are asked for; the second container's request is not missing, but 0.
		"status.resources": "350m of 350m, 0 ports",
		// 1 mapped, 10m for the pod and 20m for each of two containers.
		"status.nodeAllocatableResourceClaimStatuses":         "1150m of 1150m, 0 ports",
		"status.nodeAllocatableResourceClaimStatuses of 1.36": "600m of 600m, 0 ports",
	}
	tested := map[string]bool{}
	for _, e := range examples(t) {
		tested[e.path] = true
		t.Run(e.path, func(t *testing.T) {
			if got := effect(fromProtobuf(t, e.protobuf)); got != want[e.path] {
				t.Errorf("protobuf: %s\nwant %s", got, want[e.path])
			}
			if got := effect(fromJSON(t, string(e.json))); got != want[e.path] {
				t.Errorf("JSON: %s\nwant %s", got, want[e.path])
			}
		})
	}
	for _, field := range laterfields.Fields {
		if !tested[field.Path] {
			t.Errorf("testdata/pods.tsv has no pod with %s", field.Path)
		}
	}
}

// TestOverheadCountsOnce has pods with an overhead of 50m, which is in kubelet's sums for the whole pod.
func TestOverheadCountsOnce(t *testing.T) {
	for _, tt := range []struct{ spec, status, want string }{
		{``, `{"allocatedResources": {"cpu": "150m"}, "resources": {"requests": {"cpu": "150m"}}}`, "150m of 150m, 0 ports"},
		{``, `{"allocatedResources": {"cpu": "190m"}}`, "190m of 190m, 0 ports"},
		{`, "resources": {"requests": {"cpu": "300m"}}`, `{"resources": {"requests": {"cpu": "350m"}}}`, "350m of 350m, 0 ports"},
		{`, "resources": {"requests": {"cpu": "300m"}}`, `{"resources": {"requests": {"cpu": "390m"}}}`, "390m of 390m, 0 ports"},
	} {
		pod := fmt.Sprintf(`{"spec": {"nodeName": "n", "overhead": {"cpu": "50m"}, "containers": [{"name": "c",
			"resources": {"requests": {"cpu": "100m"}}}]%s}, "status": %s}`, tt.spec, tt.status)
		if got := effect(fromJSON(t, pod)); got != tt.want {
			t.Errorf("%s: %s, want %s", pod, got, tt.want)
		}
	}
}

func TestFieldsThatAreNotSet(t *testing.T) {
	for _, pod := range []string{
		`{"spec": {"schedulingGates": null, "resourceClaims": null, "resources": null, "schedulingGroup": null}}`,
		`{"spec": {"schedulingGates": [], "resourceClaims": [], "resources": {}, "schedulingGroup": {}, "workloadRef": { }}}`,
		`{"spec": {"schedulingGates": [], "ofTomorrow": {"resources": [1]}}, "status": {"resources": null, "ofTomorrow": 1}}`,
		`{"spec": {"initContainers": null, "topologySpreadConstraints": [{"matchLabelKeys": null, "ofTomorrow": 1}]}}`,
		`{"spec": {"hostUsers": false, "containers": [{"restartPolicyRules": [{"action": "Restart"}]}]}}`,
		`{"spec": {"SchedulingGates": [{"name": "a"}]}}`,
		`{"spec": {"nodeName": "n", "schedulingGates": [{"name": "a"}], "resourceClaims": [{"name": "a"}]}}`,
	} {
		if _, found := fromJSON(t, pod); found != nil {
			t.Errorf("%s: %+v", pod, found)
		}
	}
	// spec.resources, spec.schedulingGroup and a field of tomorrow, each an empty message.
	if _, found := fromProtobuf(t, []byte("\x12\x0c\xc2\x02\x00\xda\x02\x00\xfa\x07\x00\xfa\x07\x00")); found != nil {
		t.Errorf("empty messages: %+v", found)
	}
}

func TestUnreadablePodsAreRefused(t *testing.T) {
	pod := &v1.Pod{}
	for name, message := range map[string]string{
		"a gate that is a number":  "\x12\x03\xb0\x02\x01",
		"a group":                  "\x12\x04\xfb\x07\xfc\x07",
		"a length beyond the end":  "\x12\x7f",
		"a length beyond all ends": "\x12\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01",
		"claims are not a message": "\x12\x04\xc2\x02\x01\x0a",
	} {
		if found := laterfields.FromProtobuf([]byte(message), pod); found == nil || found.Refusal == "" {
			t.Errorf("%s: %+v", name, found)
		}
	}
	if found := laterfields.FromJSON([]byte(`{"spec": {"schedulingGates": 1}}`), pod); found == nil || found.Refusal == "" {
		t.Errorf("a gate that is a number in JSON: %+v", found)
	}
	// No cut and no changed byte makes it panic.
	for _, e := range examples(t) {
		for i := range e.protobuf {
			laterfields.FromProtobuf(e.protobuf[:i], pod.DeepCopy())
			laterfields.FromProtobuf(append(append([]byte{}, e.protobuf[:i]...), 0xff), pod.DeepCopy())
		}
		for i := range e.json {
			laterfields.FromJSON(e.json[:i], pod.DeepCopy())
		}
	}
}

// TestSidecarsAsInKEP753 computes the formula of the KEP step by step: InitContainerUse(i) is the sum of the sidecars
// before i and of container i; the pod needs the largest, or the sum of sidecars and containers.
func TestSidecarsAsInKEP753(t *testing.T) {
	random := rand.New(rand.NewSource(753))
	for n := 0; n < 500; n++ {
		var containers, initContainers []string
		var sidecars, steady, largest int64
		for i := random.Intn(6); i > 0; i-- {
			cpu, policy := random.Int63n(1000), []string{"Always", "Never"}[random.Intn(2)]
			initContainers = append(initContainers,
				fmt.Sprintf(`{"restartPolicy": %q, "resources": {"requests": {"cpu": "%dm"}}}`, policy, cpu))
			if use := sidecars + cpu; use > largest {
				largest = use
			}
			if policy == "Always" {
				sidecars += cpu
			}
		}
		for i := random.Intn(4); i > 0; i-- {
			cpu := random.Int63n(1000)
			containers = append(containers, fmt.Sprintf(`{"resources": {"requests": {"cpu": "%dm"}}}`, cpu))
			steady += cpu
		}
		if steady += sidecars; steady > largest {
			largest = steady
		}
		pod, _ := fromJSON(t, fmt.Sprintf(`{"spec": {"containers": [%s], "initContainers": [%s]}}`,
			strings.Join(containers, ", "), strings.Join(initContainers, ", ")))
		if got := framework.NewNodeInfo(pod).Requested.MilliCPU; got != largest {
			t.Fatalf("containers %v, init containers %v: %dm, want %dm", containers, initContainers, got, largest)
		}
	}
}

// TestLongLists has pods whose lists would multiply each other.
func TestLongLists(t *testing.T) {
	const n = 300
	var containers, sidecars, ordinary, resources []string
	for i := 0; i < n; i++ {
		requests := fmt.Sprintf(`"resources": {"requests": {"example.com/%d": 1}}`, i)
		containers = append(containers, "{"+requests+"}")
		sidecars = append(sidecars, `{"restartPolicy": "Always", `+requests+"}")
		ordinary = append(ordinary, "{"+requests+"}")
		resources = append(resources, fmt.Sprintf(`"hugepages-%d": 1`, i))
	}
	for _, spec := range []string{
		fmt.Sprintf(`"initContainers": [%s, %s]`, strings.Join(sidecars, ", "), strings.Join(ordinary, ", ")),
		fmt.Sprintf(`"containers": [%s], "resources": {"requests": {%s}}`, strings.Join(containers, ", "), strings.Join(resources, ", ")),
	} {
		pod, _ := fromJSON(t, `{"spec": {"nodeName": "n", `+spec+`}}`)
		requests := 0
		for _, c := range append(pod.Spec.Containers, pod.Spec.InitContainers...) {
			requests += len(c.Resources.Requests)
		}
		if requests != 2*n {
			t.Errorf("%.40s…: %d requests, want %d", spec, requests, 2*n)
		}
	}
}

// withoutLaterFields is a pod of 1.23 and its message.
func withoutLaterFields(t testing.TB) ([]byte, *v1.Pod) {
	t.Helper()
	requests := v1.ResourceList{v1.ResourceCPU: resource.MustParse("100m")}
	container := v1.Container{Name: "c", Resources: v1.ResourceRequirements{Requests: requests},
		VolumeMounts: []v1.VolumeMount{{Name: "v", MountPath: "/v"}}}
	pod := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p", Labels: map[string]string{"app": "a"}}, Spec: v1.PodSpec{
		Containers: []v1.Container{container, container}, InitContainers: []v1.Container{container},
		TopologySpreadConstraints: []v1.TopologySpreadConstraint{{MaxSkew: 1, TopologyKey: "zone"}},
		Tolerations:               []v1.Toleration{{Key: "a", Operator: v1.TolerationOpExists}},
	}, Status: v1.PodStatus{ContainerStatuses: []v1.ContainerStatus{{Name: "c"}}}}
	message, err := pod.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	return message, pod
}

func TestPodsWithoutLaterFieldsCostNoMemory(t *testing.T) {
	message, pod := withoutLaterFields(t)
	if n := testing.AllocsPerRun(100, func() { laterfields.FromProtobuf(message, pod) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
	text, err := encoding.Marshal(pod)
	if err != nil {
		t.Fatal(err)
	}
	if n := testing.AllocsPerRun(100, func() { laterfields.FromJSON(text, pod) }); n != 0 {
		t.Errorf("JSON: %v allocations", n)
	}
}

func BenchmarkFromProtobuf(b *testing.B) {
	message, pod := withoutLaterFields(b)
	b.ReportAllocs()
	for i := 0; i < b.N; i++ {
		laterfields.FromProtobuf(message, pod)
	}
}

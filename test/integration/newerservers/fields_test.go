// SPDX-License-Identifier: Apache-2.0

package newerservers

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"kube-scheduler-fork/test/cluster"
)

// gates are the features that the rows need and that a release has switched off.
var gates = map[string]string{
	"1.24.17": "MinDomainsInPodTopologySpread=true",
	"1.26.15": "MinDomainsInPodTopologySpread=true,MatchLabelKeysInPodTopologySpread=true,PodSchedulingReadiness=true,DynamicResourceAllocation=true",
	"1.32.0":  "PodLevelResources=true,DynamicResourceAllocation=true,InPlacePodVerticalScaling=true",
	"1.37.2": "GenericWorkload=true,TaintTolerationComparisonOperators=true,UserNamespacesHostNetworkSupport=true,VolumeBindMountOptions=true," +
		"DRANodeAllocatableResources=true",
}

// row is a pod with a later field, and what comes of it and of a second pod. A release of 1.23 would do otherwise.
type row struct {
	field string
	// since and until are the first and the last minor release whose API has the field in this form; 0 is the newest.
	since, until int
	// spec is that of the first pod, without its container of 1 CPU, and status a patch for it while it runs.
	spec, status string
	// waits has words of the sentence with which the first pod waits.
	waits string
	// second is the spec of the second pod, with secondCPU, and secondWaits words of why that waits.
	second, secondCPU, secondWaits string
	// thirdCPU is the request of a pod for which there is just room besides.
	thirdCPU string
}

const (
	onA, onEither = "nodeSelector: {only: a}", "nodeSelector: {later: fields}"
	tooMuch       = "Insufficient cpu"
	tooSkewed     = "topology spread constraints"
)

// spread is a constraint with a later field. Without that, the second pod is bound on the only node a, and waits if it may
// run on either, because the tainted node counts as empty.
func spread(where, field string) string {
	return where + "\n  topologySpreadConstraints: [{maxSkew: 1, topologyKey: kubernetes.io/hostname, whenUnsatisfiable: DoNotSchedule, " +
		"labelSelector: {matchLabels: {test: later}}, " + field + "}]"
}

func refused(field string, since, until int, spec string) row {
	return row{field: field, since: since, until: until, spec: spec,
		waits: fmt.Sprintf("the pod's %s is known to Kubernetes 1.%d and later", field, since)}
}

// counted is a row in which the first pod uses 5 of the node's 8 CPUs, and not what its container of 1 CPU says.
func counted(field string, since int, spec, status string) row {
	return row{field: field, since: since, spec: onA + spec, status: status, second: onA, secondCPU: "4", secondWaits: tooMuch, thirdCPU: "3"}
}

var rows = []row{
	{field: "minDomains", since: 24, spec: spread(onA, "minDomains: 5"), second: spread(onA, "minDomains: 5"), secondWaits: tooSkewed},
	{field: "nodeTaintsPolicy", since: 25, spec: spread(onEither, "nodeTaintsPolicy: Honor"), second: spread(onEither, "nodeTaintsPolicy: Honor")},
	{field: "nodeAffinityPolicy", since: 25, spec: spread(onA, "nodeAffinityPolicy: Ignore"), second: spread(onA, "nodeAffinityPolicy: Ignore"), secondWaits: tooSkewed},
	{field: "matchLabelKeys", since: 25, spec: spread(onEither, "matchLabelKeys: [name]"), second: spread(onEither, "matchLabelKeys: [name]")},
	counted("initContainers[].restartPolicy", 28, "\n  initContainers: [{name: side, image: pause, restartPolicy: Always, resources: {requests: {cpu: '4'}}}]", ""),
	counted("containerStatuses[].resources", 32, "", `{"containerStatuses": [{"name": "main", "image": "pause", "imageID": "", "resources": {"requests": {"cpu": "5"}}}]}`),
	counted("containerStatuses[].allocatedResources", 32, "", `{"containerStatuses": [{"name": "main", "image": "pause", "imageID": "", "allocatedResources": {"cpu": "5"}}]}`),
	counted("status.resources", 36, "", `{"resources": {"requests": {"cpu": "5"}}}`),
	counted("status.allocatedResources", 36, "", `{"allocatedResources": {"cpu": "5"}}`),
	// It is bound by another scheduler.
	counted("nodeAllocatableResourceClaimStatuses", 37, "\n  nodeName: later-a\n  resourceClaims: [{name: gpu, resourceClaimName: one}]", `{"nodeAllocatableResourceClaimStatuses": [{"resourceClaimName": "one", "containers": ["main"], "mapping": [{"name": "cpu", "quantity": "4"}]}]}`),
	refused("spec.resourceClaims", 26, 30, "resourceClaims: [{name: gpu, source: {resourceClaimName: missing}}]"),
	{field: "spec.resourceClaims", since: 31, spec: "resourceClaims: [{name: gpu, resourceClaimName: missing}]", waits: "known to Kubernetes 1.26 and later"},
	refused("spec.resources", 32, 0, "resources: {requests: {cpu: '64'}}"),
	refused("spec.schedulingGroup", 36, 0, "schedulingGroup: {podGroupName: missing}"),
	refused("spec.tolerations[].operator", 35, 0, "tolerations: [{key: example.com/sla, operator: Gt, value: '5', effect: NoSchedule}]"),
	refused("spec.hostUsers with spec.hostNetwork", 35, 0, "hostNetwork: true\n  hostUsers: false"),
	refused("spec.containers[].restartPolicyRules[].action", 35, 0, "initContainers: [{name: first, image: pause, restartPolicy: Never, "+
		"restartPolicyRules: [{action: RestartAllContainers, exitCodes: {operator: In, values: [9]}}]}]"),
	refused("spec.containers[].volumeMounts[].bindMountOptions", 37, 0, "volumes: [{name: v, emptyDir: {}}]\n"+
		"  initContainers: [{name: first, image: pause, volumeMounts: [{name: v, mountPath: /v, bindMountOptions: [noexec]}]}]"),
}

// createLater creates a pod with a spec in YAML, which the types of this client need not know.
func (s *stand) createLater(t *testing.T, name, spec, cpu string) *corev1.Pod {
	t.Helper()
	s.Create(t, fmt.Sprintf("apiVersion: v1\nkind: Pod\nmetadata: {name: %s, namespace: default, labels: {test: later, name: %[1]s}}\nspec:\n"+
		"  terminationGracePeriodSeconds: 0\n  containers: [{name: main, image: pause, resources: {requests: {cpu: '%s'}}}]\n  %s\n", name, cpu, spec))
	pod, err := s.Pod(t, corev1.NamespaceDefault, name)
	if err != nil {
		t.Fatal(err)
	}
	return pod
}

// laterFields creates the pods of the rows that the API server knows.
func (s *stand) laterFields(t *testing.T) {
	for _, row := range rows {
		if s.minor < row.since || row.until > 0 && s.minor > row.until {
			continue
		}
		t.Run(row.field, func(t *testing.T) {
			defer s.removePods(t)
			first := s.createLater(t, "first", row.spec, "1")
			if row.waits != "" {
				s.AwaitPending(t, first.Namespace, first.Name, row.waits)
				return
			}
			s.AwaitBound(t, first)
			if row.status != "" {
				s.patchStatus(t, first, row.field, row.status)
			}
			second := s.createLater(t, "second", row.second, cpuOr1(row.secondCPU))
			if row.secondWaits == "" {
				s.AwaitBound(t, second)
				return
			}
			s.AwaitPending(t, second.Namespace, second.Name, row.secondWaits)
			if row.thirdCPU != "" {
				s.AwaitBound(t, s.createLater(t, "third", row.second, row.thirdCPU))
			}
		})
	}
	if s.minor >= 26 {
		t.Run("schedulingGates", s.gate)
	}
}

func cpuOr1(cpu string) string {
	if cpu == "" {
		return "1"
	}
	return cpu
}

// patchStatus changes the status of a pod that runs, as kubelet does. The field must be in the API server's answer.
func (s *stand) patchStatus(t *testing.T, pod *corev1.Pod, field, status string) {
	t.Helper()
	s.Await(t, "the pod to run", func() error {
		seen, err := s.Pod(t, pod.Namespace, pod.Name)
		if err != nil {
			return err
		}
		return cluster.Unless(seen.Status.Phase == corev1.PodRunning, "it is %s", seen.Status.Phase)
	})
	answer, err := s.Client().CoreV1().RESTClient().Patch(types.MergePatchType).Namespace(pod.Namespace).Resource("pods").Name(pod.Name).
		SubResource("status").SetHeader("Accept", "application/json").Body([]byte(`{"status": ` + status + `}`)).DoRaw(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if field = field[strings.LastIndexAny(field, ".]")+1:]; !strings.Contains(string(answer), `"`+field+`":`) {
		t.Fatalf("the API server dropped %s: %s", field, answer)
	}
}

// gate checks that a pod with a gate is not tried until that is gone.
func (s *stand) gate(t *testing.T) {
	defer s.removePods(t)
	gated := s.createLater(t, "gated", "schedulingGates: [{name: example.com/quota}]", "1")
	// One that comes later is tried before.
	s.AwaitBound(t, s.createLater(t, "other", onA, "1"))
	events, err := s.Client().EventsV1().Events(gated.Namespace).List(t.Context(), metav1.ListOptions{FieldSelector: "regarding.uid=" + string(gated.UID)})
	if err != nil || len(events.Items) > 0 {
		t.Fatalf("the gated pod has events: %v, %v", events.Items, err)
	}
	if _, err := s.Client().CoreV1().Pods(gated.Namespace).Patch(t.Context(), gated.Name, types.MergePatchType,
		[]byte(`{"spec": {"schedulingGates": null}}`), metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	s.AwaitBound(t, gated)
}

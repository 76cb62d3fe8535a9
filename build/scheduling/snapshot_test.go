// SPDX-License-Identifier: Apache-2.0

package scheduling

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/util/jsonpath"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
)

// live are objects of a cluster. Texts with "secret" must be in no snapshot, and those with "corp" in no anonymized one.
const live = `
{apiVersion: v1, kind: Node, metadata: {name: corp-node-10, managedFields: [{manager: secret}], annotations: {kubectl.kubernetes.io/last-applied-configuration: secret, corp/x: corp},
  labels: {kubernetes.io/hostname: corp-node-10, kubernetes.io/os: linux, topology.kubernetes.io/zone: corp-a, corp.example/pool: corp-fast, corp.example/generation: "7", corp.example/kept: corpkept}},
 spec: {providerID: secret, taints: [{key: corp.example/team, value: corp-red, effect: NoSchedule}]},
 status: {allocatable: {cpu: "4", example.com/gpu: "2"}, nodeInfo: {machineID: secret}, addresses: [{type: InternalIP, address: secret}],
  conditions: [{type: Ready, status: "True", reason: KubeletReady, message: secret}], images: [{names: ["corp.example/web:latest", "corp.example/web@sha256:c0"], sizeBytes: 9}]}}
---
{apiVersion: v1, kind: Pod, metadata: {name: corp-web-5d7f8-abcde, namespace: corp-shop, uid: corp-uid, labels: {app.kubernetes.io/name: corp-web, pod-template-hash: 5d7f8, corp.example/part: corp-a},
  ownerReferences: [{apiVersion: apps/v1, kind: ReplicaSet, name: corp-web-5d7f8, controller: true}, {apiVersion: corp.example/v1, kind: CorpThing, name: corp-web}]},
 spec: {nodeName: corp-node-10, schedulerName: second-scheduler, priorityClassName: system-node-critical, serviceAccountName: secret, imagePullSecrets: [{name: secret}],
  nodeSelector: {corp.example/pool: corp-fast}, tolerations: [{key: corp.example/team, operator: Equal, value: corp-red, effect: NoSchedule}],
  affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{matchExpressions: [{key: corp.example/generation, operator: Gt, values: ["6"]},
     {key: corp.example/kept, operator: In, values: [corpkept]}, {key: topology.kubernetes.io/zone, operator: NotIn, values: [corp-b]}], matchFields: [{key: metadata.name, operator: In, values: [corp-node-10]}]}]}},
   podAntiAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [{topologyKey: corp.example/pool, namespaces: [corp-shop], labelSelector: {matchExpressions: [{key: app.kubernetes.io/name, operator: In, values: [corp-web]}]}, mismatchLabelKeys: [corp.example/part]}]}},
  schedulingGates: [{name: corp.example/gate}], resourceClaims: [{name: corp-gpu, resourceClaimTemplateName: corp-gpus}], resources: {requests: {cpu: "3"}}, schedulingGroup: {podGroupName: corp-group}, hostUsers: false,
  topologySpreadConstraints: [{topologyKey: corp.example/pool, minDomains: 2, nodeAffinityPolicy: Ignore, nodeTaintsPolicy: Honor, matchLabelKeys: [pod-template-hash]}],
  initContainers: [{name: corp-side, restartPolicy: Always, env: [{name: secret}]}],
  containers: [{name: corp-main, image: corp.example/web, command: [secret], args: [secret], env: [{name: secret, value: secret}], envFrom: [{secretRef: {name: secret}}],
    resources: {requests: {cpu: 100m, example.com/gpu: "1"}, claims: [{name: corp-gpu}]}, livenessProbe: {exec: {command: [secret]}}, lifecycle: {preStop: {exec: {command: [secret]}}}, volumeMounts: [{name: corp-data, mountPath: /secret, bindMountOptions: [corp]}], restartPolicyRules: [{action: RestartAllContainers, exitCodes: {operator: secret}}]}],
  volumes: [{name: corp-token, secret: {secretName: secret}}, {name: corp-config, configMap: {name: secret}}, {name: corp-host, hostPath: {path: /secret}},
   {name: corp-data, persistentVolumeClaim: {claimName: corp-claim}}, {name: corp-tmp, ephemeral: {volumeClaimTemplate: {spec: {storageClassName: corp-class}}}}]},
 status: {phase: Running, podIP: secret, message: secret, conditions: [{type: PodScheduled, status: "True", message: secret}, {type: PodResizePending, status: "True", reason: Infeasible}],
  nodeAllocatableResourceClaimStatuses: [{resourceClaimName: corp-gpu, containers: [corp-main], resources: {cpu: 60m}, mapping: [{name: cpu, quantity: 50m}], overhead: [{name: cpu, perPod: 40m}]}],
  allocatedResources: {cpu: "3"}, resources: {requests: {cpu: "3"}}, containerStatuses: [{name: corp-main, containerID: secret, allocatedResources: {cpu: 70m}, resources: {requests: {cpu: 80m}}}],
  initContainerStatuses: [{name: corp-side, imageID: secret, allocatedResources: {cpu: 90m}}]}}
---
{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: corp-web-5d7f8-abcde-corp-tmp, namespace: corp-shop, annotations: {pv.kubernetes.io/bind-completed: "yes", volume.kubernetes.io/selected-node: corp-node-10}},
 spec: {storageClassName: corp-class, volumeName: corp-volume, dataSource: {name: secret}}}
---
{apiVersion: storage.k8s.io/v1, kind: StorageClass, metadata: {name: corp-class}, provisioner: disks.example.com, parameters: {password: secret}}
---
{apiVersion: policy/v1, kind: PodDisruptionBudget, metadata: {name: corp-web, namespace: corp-shop}, spec: {minAvailable: 50%, selector: {matchLabels: {app.kubernetes.io/name: corp-web}}}, status: {disruptedPods: {secret: "2026-01-01T00:00:00Z"}}}
---
{apiVersion: apps/v1, kind: ReplicaSet, metadata: {name: corp-web-5d7f8, namespace: corp-shop}, spec: {replicas: 1, template: {spec: {containers: [{name: corp-main, env: [{name: secret}]}]}}}}
---
{apiVersion: apps/v1, kind: ReplicaSet, metadata: {name: corp-web-secret, namespace: corp-shop}, spec: {replicas: 0}}
---
{apiVersion: batch/v1, kind: Job, metadata: {name: corp-secret, namespace: corp-shop}, status: {conditions: [{type: Complete, status: "True"}]}}
`

// snapshotOf returns what a command prints about a cluster with the live objects, and the objects in it by kind.
func snapshotOf(t *testing.T, hide func(map[string]any), forbidden ...string) (text, warnings string, printed map[string]*unstructured.Unstructured, err error) {
	t.Helper()
	var objects []runtime.Object
	for _, object := range documents(t, live) {
		objects = append(objects, object)
	}
	kinds := map[schema.GroupVersionResource]string{}
	var served []*metav1.APIResourceList
	for _, one := range taken {
		if strings.HasSuffix(one.group, "sigs.k8s.io") {
			continue
		}
		version := schema.GroupVersion{Group: one.group, Version: "v1"}
		kinds[version.WithResource(one.resource)] = "List"
		served = append(served, &metav1.APIResourceList{GroupVersion: version.String(), APIResources: []metav1.APIResource{{Name: one.resource}}})
	}
	client := dynamicfake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), kinds, objects...)
	for _, resource := range forbidden {
		client.PrependReactor("list", resource, func(action clienttesting.Action) (bool, runtime.Object, error) {
			return true, nil, apierrors.NewForbidden(action.GetResource().GroupResource(), "", errors.New("you may not"))
		})
	}
	var output, complaints bytes.Buffer
	o := &options{IOStreams: genericclioptions.IOStreams{Out: &output, ErrOut: &complaints}}
	err = o.printServed(context.Background(), served, client, hide)
	printed = map[string]*unstructured.Unstructured{}
	var list unstructured.UnstructuredList
	if err == nil {
		err = list.UnmarshalJSON(output.Bytes())
	}
	for i := range list.Items {
		printed[list.Items[i].GetKind()] = &list.Items[i]
	}
	return output.String(), complaints.String(), printed, err
}

func documents(t *testing.T, text string) (objects []*unstructured.Unstructured) {
	t.Helper()
	decoder := utilyaml.NewYAMLToJSONDecoder(strings.NewReader(text))
	for {
		object := &unstructured.Unstructured{}
		if err := decoder.Decode(object); err == io.EOF {
			return objects
		} else if err != nil {
			t.Fatal(err)
		}
		objects = append(objects, object)
	}
}

func typed[T any](t *testing.T, object *unstructured.Unstructured) (found T) {
	t.Helper()
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &found); err != nil {
		t.Fatal(err)
	}
	return found
}

func TestSnapshot(t *testing.T) {
	anonymize := newAnonymizer([]string{"corp.example/kept"}).object
	for name, hide := range map[string]func(map[string]any){"as it is": func(map[string]any) {}, "anonymized": anonymize} {
		t.Run(name, func(t *testing.T) {
			text, warnings, printed, err := snapshotOf(t, hide, "csidrivers")
			if err != nil {
				t.Fatal(err)
			}
			if strings.Contains(text, "secret") {
				t.Errorf("secrets are in the snapshot:\n%s", text)
			}
			if name == "anonymized" && regexp.MustCompile(`(?i)corp[^k]`).MatchString(strings.ReplaceAll(text, "corp.example/kept", "")) {
				t.Errorf("names are in the snapshot:\n%s", text)
			}
			if len(printed) != 6 || !strings.Contains(text, "second-scheduler") || !strings.Contains(text, "disks.example.com") || !strings.Contains(text, `"kubernetes.io/os":"linux"`) {
				t.Errorf("something is missing in the snapshot:\n%s", text)
			}
			if !strings.Contains(warnings, "warning: csidrivers.storage.k8s.io left out: ") || !strings.Contains(warnings, "1 pods, 1 nodes") || !strings.Contains(warnings, "; 3 kinds left out") {
				t.Errorf("warnings are\n%s", warnings)
			}
			relations(t, printed)
			laterRelations(t, printed["Pod"])
		})
	}
	if _, _, _, err := snapshotOf(t, anonymize, "pods"); err == nil || !strings.Contains(err.Error(), "; next: kubectl auth can-i list pods --all-namespaces") {
		t.Errorf("a snapshot without pods: %v", err)
	}
}

// relations checks that scheduling finds the same relations between the objects of a snapshot as between the live ones.
func relations(t *testing.T, printed map[string]*unstructured.Unstructured) {
	t.Helper()
	pod, node := typed[corev1.Pod](t, printed["Pod"]), typed[corev1.Node](t, printed["Node"])
	claim, budget := typed[corev1.PersistentVolumeClaim](t, printed["PersistentVolumeClaim"]), typed[policyv1.PodDisruptionBudget](t, printed["PodDisruptionBudget"])
	fits, err := nodeaffinity.GetRequiredNodeAffinity(&pod).Match(&node)
	term := pod.Spec.Affinity.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution[0]
	own, ownErr := metav1.LabelSelectorAsSelector(term.LabelSelector)
	covered, coveredErr := metav1.LabelSelectorAsSelector(budget.Spec.Selector)
	if err := errors.Join(err, ownErr, coveredErr); err != nil {
		t.Fatal(err)
	}
	_, keyed := node.Labels[term.TopologyKey]
	owner := printed["ReplicaSet"].GetName()
	for relation, holds := range map[string]bool{
		"the pod's node affinity and selector match":  fits,
		"the pod tolerates the taint":                 pod.Spec.Tolerations[0].ToleratesTaint(&node.Spec.Taints[0]),
		"the pod matches its anti-affinity":           own.Matches(labels.Set(pod.Labels)) && term.Namespaces[0] == pod.Namespace,
		"the node has the topology key":               keyed,
		"the budget covers the pod":                   covered.Matches(labels.Set(pod.Labels)) && budget.Namespace == pod.Namespace && budget.Spec.MinAvailable.StrVal == "50%",
		"the pod is on the node":                      pod.Spec.NodeName == node.Name && node.Labels[corev1.LabelHostname] == node.Name,
		"the owner is named":                          pod.OwnerReferences[0].Name == owner && strings.HasSuffix(owner, "-"+pod.Labels["pod-template-hash"]),
		"the claim is that of the ephemeral volume":   claim.Name == fmt.Sprintf("%s-%s", pod.Name, pod.Spec.Volumes[4].Name) && len(claim.Annotations) == 2,
		"the claim's class is there":                  *claim.Spec.StorageClassName == printed["StorageClass"].GetName(),
		"the node has the image":                      node.Status.Images[0].Names[0] == pod.Spec.Containers[0].Image+":latest",
		"amounts stay":                                pod.Spec.Containers[0].Resources.Requests.Cpu().MilliValue() == 100 && node.Status.Allocatable.Cpu().Value() == 4,
		"what is of the system stays":                 pod.Spec.PriorityClassName == "system-node-critical" && node.Status.Conditions[0].Type == corev1.NodeReady,
		"Lt and Gt compare numbers, kept values stay": len(node.Labels) == 6 && node.Labels["corp.example/kept"] == "corpkept",
	} {
		if !holds {
			t.Errorf("not so any more: %s", relation)
		}
	}
}

// laterRelations checks the fields of later releases, which the types lack.
func laterRelations(t *testing.T, pod *unstructured.Unstructured) {
	t.Helper()
	key := ""
	for label := range pod.GetLabels() {
		if label != "app.kubernetes.io/name" && label != "pod-template-hash" {
			key = label
		}
	}
	for path, want := range map[string]string{
		"{.spec.topologySpreadConstraints[*]['matchLabelKeys','minDomains','nodeAffinityPolicy','nodeTaintsPolicy']}":           `["pod-template-hash"] 2 Ignore Honor`,
		"{.spec.affinity.podAntiAffinity..mismatchLabelKeys}":                                                                   `["` + key + `"]`,
		"{.spec.resources.requests.cpu} {.spec.initContainers[0].restartPolicy}":                                                "3 Always",
		"{.status.resources.requests.cpu} {.status.allocatedResources}":                                                         `3 {"cpu":"3"}`,
		"{.spec.containers[0].resources.claims[0].name}":                                                                        found(t, pod, "{.spec.resourceClaims[0].name}"),
		"{.status.containerStatuses[0].name}":                                                                                   found(t, pod, "{.spec.containers[0].name}"),
		"{.status.initContainerStatuses[0].name}":                                                                               found(t, pod, "{.spec.initContainers[0].name}"),
		"{.spec.hostUsers} {.spec.containers[0].restartPolicyRules[0].action}":                                                  "false RestartAllContainers",
		"{.status.nodeAllocatableResourceClaimStatuses[0].resources} {.status.nodeAllocatableResourceClaimStatuses[0].mapping}": `{"cpu":"60m"} [{"name":"cpu","quantity":"50m"}]`,
		"{.status.nodeAllocatableResourceClaimStatuses[0].overhead}":                                                            `[{"name":"cpu","perPod":"40m"}]`,
		"{.status.conditions[1]['type','reason']}":                                                                              "PodResizePending Infeasible",
		"{.status.containerStatuses[0].resources.requests.cpu} {.status.containerStatuses[0].allocatedResources}":               `80m {"cpu":"70m"}`,
		"{.status.initContainerStatuses[0].allocatedResources}":                                                                 `{"cpu":"90m"}`,
	} {
		if got := found(t, pod, path); got != want {
			t.Errorf("%s is %s, want %s", path, got, want)
		}
	}
	for _, path := range []string{"{.spec.schedulingGates[0].name}", "{.spec.resourceClaims[0].name}", "{.spec.resourceClaims[0].resourceClaimTemplateName}", "{.spec.schedulingGroup.podGroupName}",
		"{.spec.containers[0].volumeMounts[0].bindMountOptions[0]}"} {
		if found(t, pod, path) == "" {
			t.Errorf("%s is missing", path)
		}
	}
}

// found returns what a JSONPath finds in an object.
func found(t *testing.T, object *unstructured.Unstructured, path string) string {
	t.Helper()
	template, text := jsonpath.New("").AllowMissingKeys(true), &strings.Builder{}
	if err := errors.Join(template.Parse(path), template.Execute(text, object.Object)); err != nil {
		t.Fatal(err)
	}
	return text.String()
}

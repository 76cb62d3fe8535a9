// SPDX-License-Identifier: Apache-2.0

package nodelocal

import (
	"encoding/json"
	"fmt"
	"math/rand"
	"regexp"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/shared/plugintest"
	st "k8s.io/kubernetes/pkg/scheduler/testing"
	"sigs.k8s.io/yaml"
)

// pods returns a pod that has everything that plugins might read, and one that has little.
func pods(t testing.TB) []map[string]interface{} {
	var pods []map[string]interface{}
	if err := yaml.Unmarshal([]byte(yamlOfPods), &pods); err != nil {
		t.Fatal(err)
	}
	return pods
}

const yamlOfPods = `
- metadata: {namespace: team-1, name: rich, uid: rich, labels: {app: web, tier: db}, annotations: {disk: ssd},
    ownerReferences: [{apiVersion: apps/v1, kind: ReplicaSet, name: web, uid: web, controller: true}]}
  spec:
    schedulerName: default-scheduler
    priority: 1
    nodeSelector: {disk: ssd}
    affinity:
      nodeAffinity:
        requiredDuringSchedulingIgnoredDuringExecution:
          nodeSelectorTerms:
          - {matchExpressions: [{key: zone, operator: In, values: [a, web]}, {key: disk, operator: NotIn, values: [hdd]}]}
          - {matchFields: [{key: metadata.name, operator: In, values: [node-2]}]}
        preferredDuringSchedulingIgnoredDuringExecution:
        - {weight: 2, preference: {matchExpressions: [{key: disk, operator: In, values: [hdd]}]}}
        - {weight: 3, preference: {matchExpressions: [{key: zone, operator: In, values: [a]}, {key: zone, operator: Exists}],
            matchFields: [{key: metadata.name, operator: NotIn, values: [node-1]}]}}
    tolerations:
    - {key: dedicated, operator: Equal, value: gpu, effect: NoSchedule, tolerationSeconds: 1}
    - {key: slow, operator: Exists, effect: PreferNoSchedule}
    - {key: node.kubernetes.io/unschedulable, operator: Equal, value: "", effect: NoSchedule}
    overhead: {cpu: "1"}
    initContainers:
    - {name: init, image: "db:1", resources: {requests: {cpu: "3", memory: 1Gi}}, ports: [{containerPort: 82, hostPort: 82}]}
    containers:
    - {name: web, image: "web:1", resources: {requests: {cpu: "1", memory: 1Gi, ephemeral-storage: 1Gi, example.com/gpu: "1"}, limits: {cpu: "2"}},
        ports: [{name: web, containerPort: 80, hostPort: 80, protocol: TCP, hostIP: 127.0.0.1}, {containerPort: 90, hostPort: 90, protocol: UDP}]}
    - {name: db, image: "db:1", resources: {requests: {memory: 1Gi}}}
    volumes: [{name: web, emptyDir: {}}]
- {metadata: {namespace: team-2, name: plain, uid: plain, labels: {app: db}}, spec: {nodeName: node-1, containers: [{name: plain, image: plain}]}}
`

// typed returns a new pod, or nil if it has values of another type.
func typed(object map[string]interface{}) *v1.Pod {
	pod := &v1.Pod{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object, pod); err != nil {
		return nil
	}
	return pod
}

// words returns the strings that pods get: names, keys and values of the nodes and pods here, and those of the args.
func words(args runtime.Object) []string {
	words := strings.Split(`a b ssd hdd disk zone web db app tier team-1 team-2 dedicated slow gpu NoSchedule PreferNoSchedule NoExecute `+
		`Exists Equal In NotIn node-1 node-2 web:1 db:1 TCP UDP memory example.com/gpu 10 1Gi `, " ")
	text, _ := json.Marshal(args)
	for _, quoted := range regexp.MustCompile(`"[^"]*"`).FindAllString(string(text), -1) {
		words = append(words, strings.Trim(quoted, `"`))
	}
	return sets.NewString(words...).List()
}

// size is the number of nodes of snapshots.
const size = 30

// snapshot is a SharedLister.
type snapshot []*framework.NodeInfo

func (s snapshot) NodeInfos() framework.NodeInfoLister                      { return s }
func (s snapshot) List() ([]*framework.NodeInfo, error)                     { return s, nil }
func (s snapshot) HavePodsWithAffinityList() ([]*framework.NodeInfo, error) { return s, nil }
func (s snapshot) HavePodsWithRequiredAntiAffinityList() ([]*framework.NodeInfo, error) {
	return s, nil
}
func (s snapshot) Get(name string) (*framework.NodeInfo, error) {
	for _, info := range s {
		if info.Node().Name == name {
			return info, nil
		}
	}
	return nil, fmt.Errorf("the snapshot has no node %q", name)
}

// objects are known to informers.
func (s snapshot) objects() (objects []runtime.Object) {
	for _, info := range s {
		objects = append(objects, info.Node())
		for _, pod := range info.Pods {
			objects = append(objects, pod.Pod)
		}
	}
	return objects
}

// snapshots returns snapshots that have NodeInfos in common, the first two all of these. The last has one node more.
func snapshots() []snapshot {
	random := rand.New(rand.NewSource(1))
	var common []*framework.NodeInfo
	for i := 0; i < 20; i++ {
		common = append(common, newNode(random, fmt.Sprintf("node-%d", i)))
	}
	snapshots := make([]snapshot, 6)
	for number := range snapshots {
		var nodes snapshot
		for _, info := range common {
			if number < 2 || random.Intn(3) > 0 {
				nodes = append(nodes, info)
			}
		}
		for len(nodes) < size+number/5 {
			nodes = append(nodes, newNode(random, fmt.Sprintf("other-%d-%d", number, len(nodes))))
		}
		random.Shuffle(len(nodes), func(i, j int) { nodes[i], nodes[j] = nodes[j], nodes[i] })
		snapshots[number] = nodes
	}
	return snapshots
}

// newNode returns a node with pods, all drawn at random.
func newNode(random *rand.Rand, name string) *framework.NodeInfo {
	pick := func(of ...string) string { return of[random.Intn(len(of))] }
	resources := func(of ...string) map[v1.ResourceName]string {
		return map[v1.ResourceName]string{
			v1.ResourceCPU: pick(of...), v1.ResourceMemory: pick(of...) + "Gi", v1.ResourceEphemeralStorage: pick(of...) + "Gi", "example.com/gpu": pick(of...),
		}
	}
	capacity := resources("1", "4", "9", "30")
	capacity[v1.ResourcePods] = pick("2", "110")
	node := st.MakeNode().Name(name).Label("disk", pick("ssd", "hdd")).Label("zone", pick("a", "b")).Capacity(capacity).Obj()
	node.Annotations = map[string]string{"disk": pick("ssd", "hdd")}
	node.Spec.Unschedulable = random.Intn(4) == 0
	for i := random.Intn(3); i > 0; i-- {
		node.Spec.Taints = append(node.Spec.Taints, v1.Taint{
			Key: pick("dedicated", "slow"), Value: pick("gpu", "cpu", ""), Effect: v1.TaintEffect(pick("NoSchedule", "PreferNoSchedule", "NoExecute")),
		})
	}
	info := plugintest.NodeInfo(node)
	for i := random.Intn(4); i > 0; i-- {
		pod := st.MakePod().Namespace(pick("team-1", "team-2")).Name(fmt.Sprintf("%s-%d", name, i)).Node(name).
			Label("app", pick("web", "db")).Label("tier", pick("web", "db")).Req(resources("0", "1")).Obj()
		pod.Spec.Containers[0].Ports = []v1.ContainerPort{
			{HostPort: int32(80 + random.Intn(3)), Protocol: v1.Protocol(pick("TCP", "UDP")), HostIP: pick("", "127.0.0.1", "10.0.0.1")},
		}
		info.AddPod(pod)
	}
	for _, image := range []string{"web:1", "db:1"} {
		if random.Intn(2) == 0 {
			info.ImageStates[image] = &framework.ImageStateSummary{Size: int64(100+random.Intn(800)) << 20, NumNodes: 1 + random.Intn(20)}
		}
	}
	return info
}

// SPDX-License-Identifier: Apache-2.0

package input

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"golang.org/x/text/encoding/unicode"
	v1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	storagev1beta1 "k8s.io/api/storage/v1beta1"
	"k8s.io/apimachinery/pkg/api/equality"
	podresource "k8s.io/kubernetes/pkg/api/v1/resource"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/shared/laterfields"
)

const (
	node = `- apiVersion: v1
  kind: Node
  metadata:
    name: n1
    creationTimestamp: "2026-01-01T00:00:00Z"
  status:
    allocatable: {cpu: "4", memory: 8Gi, pods: "110"}
    conditions:
    - {type: Ready, status: "True", lastHeartbeatTime: "2026-01-03T00:00:00Z", lastTransitionTime: "2100-01-01T00:00:01Z"}
`
	pod = `- apiVersion: v1
  kind: Pod
  metadata:
    name: a
    namespace: x
    managedFields: [{manager: kubectl}]
    annotations: {kubectl.kubernetes.io/last-applied-configuration: s3cret}
  spec:
    nodeName: n1
    fieldOfTheFuture: 1
    containers:
    - name: c
      args: [s3cret]
      env:
      - name: TEXT
        value: |
          s3cret

          kind: Pod
      resources: {limits: {cpu: "1"}}
`
	list = "apiVersion: v1\nitems:\n"
	end  = "kind: List\nmetadata:\n  resourceVersion: \"\"\n"
	// jsonNode is node as JSON of one line.
	jsonNode = `{"apiVersion":"v1","kind":"Node","metadata":{"name":"n1"},"status":{"allocatable":{"cpu":"4"}}}`
)

// encoded returns text in UTF-16 with a byte order mark, as Windows PowerShell writes it.
func encoded(order unicode.Endianness, text string) string {
	text, err := unicode.UTF16(order, unicode.UseBOM).NewEncoder().String(text)
	if err != nil {
		panic(err)
	}
	return text
}

// untyped has the objects as items without kind and apiVersion.
func untyped(text string) string {
	for _, kind := range []string{"Node", "Pod"} {
		text = strings.NewReplacer(`"apiVersion":"v1","kind":"`+kind+`",`, "", "- apiVersion: v1\n  kind: "+kind+"\n  ", "- ").Replace(text)
	}
	return text
}

// compressed returns text as gzip.
func compressed(text string) string {
	var buffer bytes.Buffer
	writer := gzip.NewWriter(&buffer)
	_, _ = writer.Write([]byte(text))
	_ = writer.Close()
	return buffer.String()
}

// write creates a file, and returns its path.
func write(t *testing.T, directory, name, text string) string {
	t.Helper()
	path := filepath.Join(directory, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

// names returns what is in a cluster.
func names(c *Cluster) string {
	var all []string
	for _, n := range c.Nodes {
		all = append(all, n.Name)
	}
	for _, p := range c.Pods {
		all = append(all, p.Namespace+"/"+p.Name)
	}
	for _, o := range c.Objects {
		all = append(all, o.GetObjectKind().GroupVersionKind().Version+" "+o.GetObjectKind().GroupVersionKind().Kind)
	}
	for _, o := range c.Custom {
		all = append(all, o.GetKind())
	}
	return strings.Join(all, ", ")
}

func TestReadCluster(t *testing.T) {
	other := `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"b"},"spec":{"containers":[{"name":"c"}]}}`
	dashes := strings.Replace(strings.Replace(node, "\n  ", "\n", -1), "- ", "", 1)
	tests := []struct {
		name  string
		files map[string]string
		want  string
	}{
		{"List", map[string]string{"a.yaml": list + node + pod + end}, "n1, x/a"},
		{"List that begins with its kind", map[string]string{"a.yaml": "kind: List\n" + list + node + pod}, "n1, x/a"},
		{"List with indented items", map[string]string{"a.yaml": list + "  " + strings.Replace(strings.TrimSpace(node), "\n", "\n  ", -1) + "\n" + end}, "n1"},
		{"several documents", map[string]string{"a.yaml": "# first\n---\n" + dashes + "---\n" + list + pod + end + "---\n" + other + "\n"},
			"n1, x/a, default/b"},
		{"kind after that of a field", map[string]string{"a.yaml": list + node + end +
			"---\napiVersion: v1\ninvolvedObject:\n  kind: Node\nkind: Event\n"}, "n1"},
		{"List in flow style", map[string]string{"a.yaml": "kind: List\napiVersion: v1\nitems: [" + jsonNode + "]\n"}, "n1"},
		{"carriage returns", map[string]string{"a.yaml": strings.Replace(list+node+pod+end, "\n", "\r\n", -1)}, "n1, x/a"},
		{"JSON List", map[string]string{"a.json": `{"apiVersion":"v1","items":[` + jsonNode + "," + other + `],"kind":"List"}`}, "n1, default/b"},
		{"JSON objects that follow each other", map[string]string{"a.json": jsonNode + "\n" + other}, "n1, default/b"},
		{"directory with gzip", map[string]string{"z/b.yml.gz": compressed(list + pod + end), "a.json": jsonNode, "README.md": "{"}, "n1, x/a"},
		{"gzip without its ending", map[string]string{"a.yaml": compressed(list + node + end)}, "n1"},
		{"export of kube-scheduler-simulator", map[string]string{"a.json": `{"pods":[{"metadata":{"name":"b","namespace":"x"},"spec":{"nodeName":"n1"}}],
			"nodes":[{"metadata":{"name":"n1"},"status":{"allocatable":{"cpu":"4"}}}],"storageClasses":[{"metadata":{"name":"s"}}],
			"schedulerConfig":{"kind":"KubeSchedulerConfiguration"}}`}, "n1, x/b, v1 StorageClass"},
		{"nodes of OpenB", map[string]string{"a.csv": openBNodes + "\no1,32000,262144,2,V100\no2,1000,1,0,\n"}, "o1, o2"},
		{"UTF-16", map[string]string{
			"a.yaml": encoded(unicode.LittleEndian, strings.Replace(list+node+end, "\n", "\r\n", -1)),
			"b.json": encoded(unicode.BigEndian, other), "c.csv.gz": compressed(encoded(unicode.LittleEndian, openBNodes+"\r\no1,1,1,0,\r\n"))},
			"n1, o1, default/b"},
		{"byte order marks of UTF-8", map[string]string{"a.json": "\ufeff" + jsonNode, "b.csv": "\ufeff" + openBNodes + "\no1,1,1,0,\n"}, "n1, o1"},
		{"white space first", map[string]string{"a.json": "\r\n \n" + jsonNode, "b.csv": "\r\n" + openBNodes + "\no1,1,1,0,\n"}, "n1, o1"},
		{"lists of the API server", map[string]string{"a.json": `{"kind":"NodeList","apiVersion":"v1","metadata":{},"items":[` + untyped(jsonNode) + `]}
			{"kind":"EndpointsList","apiVersion":"v1","items":[{"metadata":{"name":"e"}}]}{"kind":"ServiceList","apiVersion":"v1","items":null}`,
			"b.json": `{"apiVersion":"v1","items":[` + untyped(other) + `],"kind":"PodList"}`}, "n1, default/b"},
		{"lists of cluster-info dump in YAML", map[string]string{"a.yaml": list + untyped(node) + "kind: NodeList\n---\n" + list + untyped(pod) + "kind: PodList\n"},
			"n1, x/a"},
		{"versions and other projects", map[string]string{"a.json": jsonNode + `
			{"apiVersion":"policy/v1beta1","kind":"PodDisruptionBudget","metadata":{"name":"p"},"spec":{"selector":{}}}
			{"apiVersion":"storage.k8s.io/v1","kind":"CSIStorageCapacity","metadata":{"name":"p"},"storageClassName":"s"}
			{"apiVersion":"scheduling.sigs.k8s.io/v1alpha1","kind":"PodGroup","metadata":{"name":"p","namespace":"x"}}`},
			"n1, v1 PodDisruptionBudget, v1beta1 CSIStorageCapacity, PodGroup"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			directory := t.TempDir()
			for name, text := range tt.files {
				write(t, directory, name, text)
			}
			c, err := ReadCluster([]string{directory})
			if err != nil {
				t.Fatal(err)
			}
			if got := names(c); got != tt.want {
				t.Errorf("got %s, want %s", got, tt.want)
			}
			if strings.Contains(fmt.Sprintf("%+v", c.Pods), "s3cret") {
				t.Error("a secret is in the pods")
			}
			for _, object := range c.Objects {
				switch o := object.(type) {
				case *policyv1.PodDisruptionBudget:
					if o.Spec.Selector != nil {
						t.Error("the empty selector of v1beta1 matches pods")
					}
				case *storagev1beta1.CSIStorageCapacity:
					if o.StorageClassName != "s" {
						t.Error("the capacity lost its class")
					}
				}
			}
		})
	}
}

func TestReadClusterFields(t *testing.T) {
	text := list + node + pod + `- apiVersion: v1
  kind: Secret
  metadata: {name: s}
  data: {password: s3cret}
- apiVersion: v1
  kind: Pod
  metadata: {name: done, namespace: x}
  status: {phase: Succeeded}
- apiVersion: metrics.k8s.io/v1beta1
  kind: NodeMetrics
  metadata: {name: n1}
  usage: {cpu: 100m}
- apiVersion: metrics.k8s.io/v1beta1
  kind: PodMetrics
  metadata: {name: a, namespace: x}
  containers: [{name: c, usage: {cpu: 10m}}, {name: d, usage: {cpu: 20m}}]
` + end
	c, err := ReadCluster([]string{write(t, t.TempDir(), "a.yaml", text)})
	if err != nil {
		t.Fatal(err)
	}
	if want := time.Date(2026, 1, 3, 0, 0, 0, 0, time.UTC); !c.Taken.Equal(want) {
		t.Errorf("taken at %v, want the last heartbeat", c.Taken)
	}
	if want := map[string]int{"Secret": 1, "ended Pod": 1}; !reflect.DeepEqual(c.Ignored, want) {
		t.Errorf("ignored %v, want %v", c.Ignored, want)
	}
	node, pod := c.NodeUse["n1"], c.PodUse["x/a"]
	if node.Cpu().MilliValue() != 100 || pod.Cpu().MilliValue() != 30 {
		t.Errorf("use of the node %v, of the pod %v, want 100m and 10m + 20m", node, pod)
	}
	if c.Pods[0].ManagedFields != nil {
		t.Error("the pod has managed fields")
	}
	spec := c.Pods[0].Spec
	if spec.Containers[0].Resources.Requests.Cpu().Value() != 1 || spec.SchedulerName != v1.DefaultSchedulerName {
		t.Errorf("the pod has no defaults: %+v", spec)
	}
}

// TestReadClusterWarnings reads imperfect objects, which a running cluster has, too.
func TestReadClusterWarnings(t *testing.T) {
	orphan := strings.Replace(pod, "nodeName: n1", "nodeName: gone", 1)
	text := list + node + pod + strings.Replace(orphan, "name: a", "name: b", 1) + strings.Replace(orphan, "name: a", "name: c", 1) +
		"- {apiVersion: v1, kind: Node, metadata: {name: new}}\n" + end
	path := write(t, t.TempDir(), "a.yaml", text)
	c, err := ReadCluster([]string{path})
	if err != nil {
		t.Fatal(err)
	}
	if got := names(c); got != "n1, new, x/a" {
		t.Errorf("got %s, want the pods of the node that is gone left out", got)
	}
	want := []string{
		path + ":32: Pod x/b is on node gone, which is not in the input; pods of such nodes are left out, and no new pods replace them: 2",
		path + ":72: Node new has no status.allocatable, so no pod fits; nodes without it: 1",
	}
	if !reflect.DeepEqual(c.Warnings, want) {
		t.Errorf("warnings %q, want %q", c.Warnings, want)
	}
}

func TestReadClusterIsStreamed(t *testing.T) {
	// More than one batch, of which each keeps its order.
	var text strings.Builder
	text.WriteString(list + node)
	comment := "    # " + strings.Repeat("x", 1<<16) + "\n"
	for i := 0; i < 300; i++ {
		fmt.Fprintf(&text, "- apiVersion: v1\n  kind: Pod\n  metadata:\n%s    name: p%03d\n", comment, i)
	}
	text.WriteString("- apiVersion: v1\n  kind: Pod\n  metadata:\n    name: p000\n" + end)
	path := write(t, t.TempDir(), "a.yaml", text.String())
	_, err := ReadCluster([]string{path})
	if want := path + ":1512: Pod default/p000 is also at " + path + ":12;"; err == nil || !strings.HasPrefix(err.Error(), want) {
		t.Errorf("got %v, want %s", err, want)
	}
}

func TestReadClusterErrors(t *testing.T) {
	tests := []struct{ name, file, text, want string }{
		{"two objects of one name", "a.json", "{\"items\":[\n" + jsonNode + ",\n" + jsonNode + "]}", ":3: Node n1 is also at "},
		{"version that is unknown", "a.json", `{"apiVersion":"v2","kind":"Pod"}`, ":1: Pod has version v2, which cannot be converted"},
		{"cut JSON", "a.json", "{\"items\":[\n" + jsonNode + ",\n{\"kind\":", ":2: the file is cut"},
		{"JSON cut between items", "a.json", "{\"items\":[\n" + jsonNode, ":2: the file is cut"},
		{"cut gzip", "a.yaml", compressed(list + node + end)[:60], "the file is cut"},
		{"YAML cut between items", "a.yaml", list + node, ":11: the file is cut: the list ends without its kind"},
		{"YAML cut in an item", "a.yaml", list + node + "- apiVersion: v1\n  kind: Pod\n  metadata: {name: \"s3c", ":12: the object that begins here is not valid YAML"},
		{"not JSON", "a.json", "{\"kind\": s3cret}", ":1: the file is not valid JSON here"},
		{"List of items without kind", "a.yaml", list + untyped(node) + end, ":3: the object has no kind and apiVersion"},
		{"no nodes", "a.yaml", list + end, ": there are no nodes"},
		{"empty", "a.yaml", "", ": there are no nodes"},
		{"no name", "a.yaml", "kind: Node\napiVersion: v1\n", ":1: Node has no name"},
		{"no kind", "a.yaml", "\na: s3cret\n", ":2: the object has no kind and apiVersion"},
		{"wrong type", "a.yaml", list + node + "- apiVersion: v1\n  kind: Pod\n  spec: {containers: [{env: [{name: [s3cret]}]}]}\n" + end,
			":12: Pod cannot be decoded: field EnvVar.spec.containers.env.name is not of type string"},
		{"wrong quantity", "a.yaml", "kind: Node\napiVersion: v1\nstatus: {allocatable: {cpu: s3cret}}\n", ":1: Node cannot be decoded: a quantity is not valid"},
		{"wrong time", "a.yaml", "kind: Node\napiVersion: v1\nmetadata: {creationTimestamp: s3cret}\n", ":1: Node cannot be decoded: a field has a wrong value"},
		{"name of a pod", "a.json", `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a/b"}}`, ":1: Pod default/a/b has a name or namespace that is not valid"},
		{"other CSV", "a.csv", "time,name\n", ":1: the header is not sn,"},
		{"not a number", "a.csv", openBNodes + "\no1,s3cret,1,0,\n", ":2: cpu is not a quantity"},
		{"cut CSV", "a.csv", openBNodes + "\no1,1,1,0,\no2,1\n", ":3: the line is not valid CSV: wrong number of fields"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := ReadCluster([]string{write(t, t.TempDir(), tt.file, tt.text)})
			wantError(t, err, tt.file, tt.want)
		})
	}
	_, err := ReadCluster([]string{"missing.yaml"})
	wantError(t, err, "missing.yaml", ": cannot be read: no such file or directory; next: check the path")
}

func wantError(t *testing.T, err error, file, want string) {
	t.Helper()
	var of *Error
	if !errors.As(err, &of) || of.Next == "" || !strings.Contains(of.Where, file) {
		t.Fatalf("got %v, want an error of %s with a next step", err, file)
	}
	if !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "s3c") {
		t.Errorf("got %v, want %s and no secret", err, want)
	}
}

func TestReadWorkloads(t *testing.T) {
	template := `{"metadata":{"labels":{"app":"a"}},"spec":{"nodeName":"n1","containers":[{"name":"c","resources":{"limits":{"cpu":"2"}}}]}}`
	manifest := func(version, kind, spec string) string {
		return `{"apiVersion":"` + version + `","kind":"` + kind + `","metadata":{"name":"a"},"spec":` + spec + `}`
	}
	tests := []struct {
		manifest, owner string
		count           int
	}{
		{strings.Replace(template, `{"metadata":{`, `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a",`, 1), "", 1},
		{manifest("apps/v1", "Deployment", `{"replicas":3,"template":`+template+`}`), "Deployment/a", 3},
		{manifest("apps/v1", "ReplicaSet", `{"replicas":0,"template":`+template+`}`), "ReplicaSet/a", 0},
		{manifest("apps/v1", "StatefulSet", `{"template":`+template+`}`), "StatefulSet/a", 1},
		{manifest("batch/v1", "Job", `{"parallelism":4,"completions":9,"template":`+template+`}`), "Job/a", 4},
		{manifest("batch/v1", "Job", `{"parallelism":4,"completions":2,"template":`+template+`}`), "Job/a", 2},
		{manifest("batch/v1", "CronJob", `{"jobTemplate":{"spec":{"parallelism":2,"template":`+template+`}}}`), "CronJob/a", 2},
	}
	for _, tt := range tests {
		got, err := ReadWorkloads([]string{write(t, t.TempDir(), "a.json", tt.manifest+manifest("v1", "Service", "{}"))}, "x")
		if err != nil || len(got) != 1 {
			t.Fatalf("%s: got %v and %v", tt.manifest, got, err)
		}
		w := got[0]
		if w.Owner != tt.owner || w.Count != tt.count || w.Pod.Namespace+"/"+w.Pod.Name != "x/a" || w.Pod.Labels["app"] != "a" {
			t.Errorf("%s: got %+v", tt.manifest, w)
		}
		if w.Pod.Spec.NodeName != "" || w.Pod.Spec.Containers[0].Resources.Requests.Cpu().Value() != 2 {
			t.Errorf("%s: the pod has a node, or no requests: %+v", tt.manifest, w.Pod.Spec)
		}
	}
	for text, want := range map[string]string{
		manifest("apps/v1", "DaemonSet", `{"template":`+template+`}`): ":1: DaemonSet x/a has a pod on each node",
		manifest("v1", "Service", "{}"):                               ": there is no object that creates pods",
		manifest("v1", "Pod", "{}"):                                   ":1: Pod x/a has no containers",
		manifest("apps/v1", "ReplicaSet", `{"template":{"spec":{"containers":[{"resources":{"requests":{"cpu":"-1"}}}]}}}`): ":1: Pod x/a requests less than 0 of cpu",
	} {
		_, err := ReadWorkloads([]string{write(t, t.TempDir(), "a.json", text)}, "x")
		wantError(t, err, "a.json", want)
	}
}

func TestReadTrace(t *testing.T) {
	csv := `time,name,namespace,count,cpu,memory,nvidia.com/gpu,duration,start_delay,priority,priority_class,gang,gang_size,labels,node_selector,tolerations,scheduler,use_cpu,use_memory,owner,node,change,delete
0,web,x,3,500m,1Gi,2,1h,2s,7,high,g,,a=b; c=d,zone=z,k=v:NoSchedule;other:NoExecute,mine,0s=100m;10m=2,5Mi,Job/j,,,
90,,,,,,,,,,,,,,,,,,,,n1,drain,
2m,,,,,,,,,,,,,,,,,,,,,,x/web-0
`
	json := `{"time":"0","pod":{"metadata":{"name":"web","namespace":"x","labels":{"a":"b","c":"d"}},"spec":{"priority":7,"priorityClassName":"high",
"nodeSelector":{"zone":"z"},"schedulerName":"mine","tolerations":[{"key":"k","operator":"Equal","value":"v","effect":"NoSchedule"},{"key":"other","operator":"Exists","effect":"NoExecute"}],
"containers":[{"name":"main","resources":{"requests":{"cpu":"500m","memory":"1Gi","nvidia.com/gpu":"2"}}}]}},"count":3,"duration":"1h","startDelay":"2s","owner":"Job/j","gang":"g",
"use":[{"after":"0s","cpu":"100m","memory":"5Mi"},{"after":"10m","cpu":"2"}]}`
	json = strings.Replace(json, "\n", "", -1) + "\n\n" + `{"time":"90","node":"n1","change":"drain"}` + "\n" + `{"time":"2m","delete":"x/web-0"}`
	var traces []*Trace
	for name, text := range map[string]string{"a.csv": csv, "a.json.gz": compressed(json),
		"b.csv": "\ufeff" + csv, "c.csv": encoded(unicode.LittleEndian, csv), "b.json": "\n" + json} {
		trace, err := ReadTrace(write(t, t.TempDir(), name, text))
		if err != nil {
			t.Fatal(err)
		}
		for i := range trace.Events {
			trace.Events[i].Where = ""
		}
		traces = append(traces, trace)
	}
	for _, other := range traces[1:] {
		if !equality.Semantic.DeepEqual(traces[0].Events, other.Events) {
			t.Errorf("two forms differ:\n%+v\n%+v", traces[0].Events[0].Pods, other.Events[0].Pods)
		}
	}
	events := traces[0].Events
	w := events[0].Pods
	if len(events) != 3 || w.Count != 3 || w.GangSize != 3 || w.Duration != time.Hour || w.StartDelay != 2*time.Second ||
		w.Owner != "Job/j" || w.Pod.Labels[gangLabel] != "g" || len(w.Pod.Spec.Tolerations) != 2 || *w.Pod.Spec.Priority != 7 {
		t.Errorf("got %+v of %+v", w, w.Pod)
	}
	if len(w.Use) != 2 || w.Use[1].After != 10*time.Minute || w.Use[1].Resources.Cpu().Value() != 2 || w.Use[1].Resources.Memory().Value() != 5<<20 {
		t.Errorf("got %+v, want that memory stays", w.Use)
	}
	if e := events[1]; e.At != 90*time.Second || e.Node != "n1" || e.Change != DrainNode || events[2].Delete != "x/web-0" {
		t.Errorf("got %+v and %+v", e, events[2])
	}
}

// TestEqualPodsAreOne verifies that lines with equal pods share one, and keep their names and namespaces.
func TestEqualPodsAreOne(t *testing.T) {
	line := func(name, namespace, more string) string {
		return `{"time":"0","pod":{"metadata":{"name":"` + name + `","namespace":"` + namespace + `"` + more + `},"spec":{"containers":[{"name":"c"}]}}}` + "\n"
	}
	for text, want := range map[string]string{
		`time,name,count,namespace,cpu,memory,labels,gang,owner,example.com/gpu
0,a,,x,1,1Gi,k=v,,,
0,b,2,x,1,1Gi,k=v,,Job/b,
0,c,,x,1000m,1024Mi,k=v,,,
0,,,x,1,1Gi,k=v,,,
0,d,,x,1,1Gi,k=w,,,
0,e,,x,1,1Gi,k=v,g,,
0,f,,x,1,1Gi,k=v,,,1
0,g,,x,2,1Gi,k=v,,,
0,h,,y,1,1Gi,k=v,,,
0,i,,x,1,1Gi,k=v,,,
`: "x/a=a x/b-0=a x/c=a x/pod-5=a x/d=d x/e=e x/f=f x/g=g y/h=h x/i=a",
		line("a", "x", "") + line("b", "x", "") + line("c", "y", "") + line("d", "y", `,"annotations":{"a":"b"}`):                   "x/a=a x/b=a y/c=c y/d=d",
		prometheus + nodeOne + podOne + like("1s", "b", "") + `{"time":"2s","namespace":"y","name":"c","like":"x/b"}` + "\n" + last: "x/b=b y/c=c",
	} {
		trace, err := ReadTrace(write(t, t.TempDir(), "a", text))
		if err != nil {
			t.Fatal(err)
		}
		first, got := map[*v1.Pod]string{}, []string(nil)
		for _, of := range trace.Events {
			if w := of.Pods; first[w.Pod] == "" {
				first[w.Pod] = w.Name
			}
			got = append(got, of.Pods.Pod.Namespace+"/"+of.Pods.NameOf(0)+"="+first[of.Pods.Pod])
		}
		if got := strings.Join(got, " "); got != want {
			t.Errorf("got pods %s, want %s", got, want)
		}
	}
}

func TestReadTraceOfOpenB(t *testing.T) {
	trace, err := ReadTrace(write(t, t.TempDir(), "a.csv", openBPods+`
late,2000,1024,2,1000,V100M16|V100M32,LS,Running,110,170,120
share,1000,1,1,460,,BE,Running,50,50,
`))
	if err != nil {
		t.Fatal(err)
	}
	share, late := trace.Events[0], trace.Events[1]
	if share.At != 0 || share.Pods.Pod.Annotations[gpuMilli] != "460" || share.Pods.Duration != time.Second || len(trace.Warnings) != 1 ||
		!strings.Contains(trace.Warnings[0], "1 pods ask for a share") {
		t.Errorf("got %+v, warnings %v", share, trace.Warnings)
	}
	spec := late.Pods.Pod.Spec
	gpus := spec.Containers[0].Resources.Requests[nvidiaGPU]
	models := spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms[0].MatchExpressions[0].Values
	if late.At != 60*time.Second || late.Pods.Duration != 50*time.Second || gpus.Value() != 2 || len(models) != 2 {
		t.Errorf("got %+v, GPUs %v, models %v", late, gpus, models)
	}
}

func TestReadTraceErrors(t *testing.T) {
	tests := []struct{ name, text, want string }{
		{"unknown column", "time,nam\n", `:1: the column "nam" is unknown; next: use time,name,`},
		{"time goes back", "time,cpu\n1m,1\n59,1\n", ":3: the time goes back, from 1m0s to 59s"},
		{"no time", "name\na\n", ":2: time is not a time"},
		{"quantity", "time,cpu\n0,x\n", ":2: cpu is not a quantity"},
		{"count", "time,count\n0,x\n", ":2: count is not a number"},
		{"no pods", "time,count\n0,0\n", ":2: count is not a number from 1 on"},
		{"duration", "time,duration\n0,-1\n", ":2: duration is not a time"},
		{"use", "time,use_cpu\n0,1m=x\n", ":2: use_cpu is not a quantity"},
		{"too long", "time,duration\n0,87601h\n", ":2: duration is not a time"},
		{"negative use", "time,use_cpu\n0,-5\n", ":2: use_cpu is not a quantity"},
		{"name", "time,name,cpu\n0,Bad Name,1\n", ":2: Pod default/Bad Name has a name or namespace that is not valid"},
		{"negative request", `{"time":"0","pod":{"spec":{"containers":[{"resources":{"requests":{"cpu":"-1"}}}]}}}`, ":1: Pod default/pod-1 requests less than 0 of cpu"},
		{"labels", "time,labels\n0,x\n", ":2: labels is not valid"},
		{"effect", "time,tolerations\n0,a:b\n", ":2: tolerations is not valid"},
		{"change", "time,node,change\n0,n1,explode\n", ":2: the change of node n1 is unknown"},
		{"node without change", "time,node\n0,n1\n", ":2: the event is not clear"},
		{"no events", "time\n", ": there are no events"},
		{"unknown field", `{"time":"0","delet":"x/a"}`, `:1: the column "delet" is unknown`},
		{"unknown field of a pod", `{"time":"0","pod":{"spec":{"container":[]}}}`, ":1: pod cannot be decoded: field container is unknown"},
		{"later field in a wrong place", `{"time":"0","pod":{"schedulingGates":[],"spec":{"schedulingGates":[],"containers":[{}]}}}`, ":1: pod cannot be decoded: field schedulingGates is unknown"},
		{"cut line", `{"time":"0","delete":"x/a"}` + "\n" + `{"time":"0`, ":2: the file is cut"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := ReadTrace(write(t, t.TempDir(), "a", tt.text))
			wantError(t, err, "a", tt.want)
		})
	}
}

// TestReadLaterFields verifies that pods of all sources have their later fields, and requests that include sidecars.
func TestReadLaterFields(t *testing.T) {
	const spec = `{%s"schedulingGates":[{"name":"quota"}],"resourceClaims":[{"name":"gpu","resourceClaimName":"gpu"}],"containers":[{"name":"c","resources":{"requests":{"cpu":"1"}}}],` +
		`"initContainers":[{"name":"side","restartPolicy":"Always","resources":{"requests":{"cpu":"2"}}}]}`
	waiting, placed := fmt.Sprintf(spec, ""), fmt.Sprintf(spec, `"nodeName":"n1",`)
	snapshot := func(objects string) *Cluster {
		c, err := ReadCluster([]string{write(t, t.TempDir(), "a.json", jsonNode+objects)})
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	ofSnapshot := func(objects string) (*v1.Pod, *laterfields.Found) {
		c := snapshot(objects)
		return c.Pods[0], c.Later[c.Pods[0].UID]
	}
	ofManifest := func(object string) (*v1.Pod, *laterfields.Found) {
		w, err := ReadWorkloads([]string{write(t, t.TempDir(), "a.json", object)}, "x")
		if err != nil {
			t.Fatal(err)
		}
		return w[0].Pod, w[0].Later
	}
	ofTrace := func(line string) (*v1.Pod, *laterfields.Found) {
		trace, err := ReadTrace(write(t, t.TempDir(), "a.json", line))
		if err != nil {
			t.Fatal(err)
		}
		return trace.Events[0].Pods.Pod, trace.Events[0].Pods.Later
	}
	for name, test := range map[string]struct {
		read func(string) (*v1.Pod, *laterfields.Found)
		text string
	}{
		"pod that waits":                {ofSnapshot, `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a","uid":"u"},"spec":` + waiting + `}`},
		"pod with a node, for the next": {ofSnapshot, `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a"},"spec":` + placed + `}`},
		"manifest of a pod":             {ofManifest, `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a"},"spec":` + placed + `}`},
		"Deployment":                    {ofManifest, `{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"a"},"spec":{"template":{"spec":` + waiting + `}}}`},
		"CronJob":                       {ofManifest, `{"apiVersion":"batch/v1","kind":"CronJob","metadata":{"name":"a"},"spec":{"jobTemplate":{"spec":{"template":{"spec":` + waiting + `}}}}}`},
		"trace":                         {ofTrace, `{"time":"0","pod":{"spec":` + waiting + `}}`},
		"trace with a template":         {ofTrace, `{"time":"0","pod":{"kind":"PodTemplate","template":{"spec":` + waiting + `}}}`},
	} {
		t.Run(name, func(t *testing.T) {
			pod, found := test.read(test.text)
			if found == nil || len(found.Gates) != 1 || found.Gates[0] != "quota" || !strings.Contains(found.Refusal, "spec.resourceClaims") {
				t.Errorf("later fields %+v", found)
			}
			if requests, _ := podresource.PodRequestsAndLimits(pod); requests.Cpu().Value() != 3 {
				t.Errorf("the pod requests %v CPUs, want 1 and 2 of the sidecar", requests.Cpu())
			}
		})
	}
	c := snapshot(`{"apiVersion":"apps/v1","kind":"DaemonSet","metadata":{"name":"a"},"spec":{"template":{"spec":` + waiting + `}}}
		{"apiVersion":"policy/v1","kind":"PodDisruptionBudget","metadata":{"name":"a"},"spec":{"unhealthyPodEvictionPolicy":"IfHealthyBudget"}}
		{"apiVersion":"policy/v1","kind":"PodDisruptionBudget","metadata":{"name":"b","namespace":"x"},"spec":{"unhealthyPodEvictionPolicy":"AlwaysAllow"}}`)
	if template, _ := templateOf(c.Objects[0]); len(template.Spec.Containers) != 2 {
		t.Errorf("the sidecar of a DaemonSet is not a container: %+v", template.Spec)
	}
	if want := map[string]bool{"x/b": true}; !reflect.DeepEqual(c.EvictUnhealthy, want) {
		t.Errorf("budgets that allow all evictions of unhealthy pods: %v, want %v", c.EvictUnhealthy, want)
	}
}

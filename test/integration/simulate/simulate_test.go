// SPDX-License-Identifier: Apache-2.0

// Package simulate compares kube-scheduler-simulate with a real scheduler on a local control plane. It needs programs
// that were built before, so it has its own make target.
package simulate

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kube-scheduler-fork/build/localcluster"
	"kube-scheduler-fork/test/cluster"
)

var shared cluster.Shared

func TestMain(m *testing.M) { cluster.Main(m, &shared) }

const pods, nodes = 500, 30

// stand is a control plane with a scheduler, and a directory for files.
type stand struct {
	*cluster.Cluster
	folder string
}

// run runs kubectl scheduling, and returns its output.
func (s *stand) run(t *testing.T, arguments ...string) []byte {
	t.Helper()
	command := exec.CommandContext(t.Context(), cluster.Program(t, "KUBECTL_SCHEDULING"), arguments...)
	command.Dir, command.Env = s.folder, append(os.Environ(), "KUBECONFIG="+s.Kubeconfig(), "HOME="+s.folder)
	var failure bytes.Buffer
	command.Stderr = &failure
	output, err := command.Output()
	if err != nil {
		t.Fatalf("kubectl scheduling %s: %v\n%s", strings.Join(arguments, " "), err, &failure)
	}
	return output
}

// snapshot takes a snapshot to a file.
func (s *stand) snapshot(t *testing.T, file string, arguments ...string) {
	t.Helper()
	cluster.Write(t, filepath.Join(s.folder, file), string(s.run(t, append([]string{"snapshot"}, arguments...)...)))
}

// ask asks the simulator a question, and decodes the answer for mine.yaml.
func (s *stand) ask(t *testing.T, answer any, arguments ...string) {
	t.Helper()
	output := s.run(t, append([]string{"simulate", "--config", "mine.yaml", "--output", "json"}, arguments...)...)
	answers := map[string]json.RawMessage{}
	if err := json.Unmarshal(output, &answers); err != nil {
		t.Fatalf("%v: %s", err, output)
	}
	if err := json.Unmarshal(answers["mine"], answer); err != nil {
		t.Fatalf("%v: %s", err, output)
	}
}

// place creates the pods, each when the one before runs. It returns their nodes by namespace/name, and writes a trace
// of them.
func (s *stand) place(t *testing.T) map[string]string {
	t.Helper()
	client := s.Client().CoreV1().Pods(corev1.NamespaceDefault)
	watched, err := client.Watch(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer watched.Stop()
	placed := map[string]string{}
	var trace strings.Builder
	for i := range pods {
		pod := cluster.ShapedPod(i)
		pod.APIVersion, pod.Kind = "v1", "Pod"
		text, err := json.Marshal(pod)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&trace, `{"time": "%dms", "owner": "ReplicaSet/%s", "pod": %s}`+"\n", i, pod.Labels["app"], text)
		s.CreatePod(t, pod)
		placed["default/"+pod.Name] = cluster.AwaitRunning(t, watched, pod.Name)
	}
	cluster.Write(t, filepath.Join(s.folder, "trace.jsonl"), trace.String())
	return placed
}

// outcome is what this test reads of a comparison.
type outcome struct {
	Runs []struct {
		Pods []struct{ Name, Node string }
	}
}

func TestSimulatorAgreesWithARealScheduler(t *testing.T) {
	s := &stand{shared.Get(t), t.TempDir()}
	cluster.Write(t, filepath.Join(s.folder, "mine.yaml"), cluster.RankedConfig(nodes))
	var created []*corev1.Node
	for i := range nodes {
		created = append(created, cluster.ShapedNode(i))
	}
	s.CreateNodes(t, created...)
	// The pods of the first shape are spread by default, because a service has them.
	for i := range pods / 100 {
		s.Create(t, fmt.Sprintf("{apiVersion: v1, kind: Service, metadata: {name: lyra-0-%[1]d}, spec: {selector: {app: lyra-0-%[1]d}, ports: [{port: 80}]}}", i))
	}
	s.snapshot(t, "empty.json")
	s.StartScheduler(t, cluster.Program(t, "KUBE_SCHEDULER"), filepath.Join(s.folder, "mine.yaml"))
	placed := s.place(t)
	s.snapshot(t, "full.json")
	s.snapshot(t, "anonymous.json", "--anonymize", "--keep-label", cluster.Rank)

	t.Run("a trace of the pods in the same order", func(t *testing.T) {
		var simulated outcome
		output := s.run(t, "simulate", "--config", "mine.yaml", "--snapshot", "empty.json", "--trace", "trace.jsonl", "--output", "json")
		if err := json.Unmarshal(output, &simulated); err != nil {
			t.Fatalf("%v: %s", err, output)
		}
		if got := len(simulated.Runs[0].Pods); got != pods {
			t.Errorf("%d pods were simulated, want %d", got, pods)
		}
		differ := 0
		for _, pod := range simulated.Runs[0].Pods {
			if real := placed[pod.Name]; pod.Node != real {
				differ++
				t.Logf("%s is placed on %q, and really on %q", pod.Name, pod.Node, real)
			}
		}
		if differ > 0 {
			t.Errorf("%d of %d pods are placed on another node than by the real scheduler", differ, pods)
		}
	})

	for _, file := range []string{"full.json", "anonymous.json"} {
		t.Run("check of "+file, func(t *testing.T) {
			var check struct {
				Pods, Same int
				Others     map[string][]string
			}
			s.ask(t, &check, "check", "--snapshot", file)
			if check.Pods != pods || check.Same != pods {
				t.Errorf("%d of %d pods get their real node again, want all of %d; others: %v", check.Same, check.Pods, pods, check.Others)
			}
		})
	}
	t.Run("an anonymized snapshot", func(t *testing.T) { s.checkAnonymous(t, placed) })
	t.Run("questions", func(t *testing.T) { s.checkQuestions(t, placed) })
	t.Run("the same bytes again", s.checkRepeatable)
}

// checkAnonymous checks that an anonymized snapshot has no names, and the same room.
func (s *stand) checkAnonymous(t *testing.T, placed map[string]string) {
	text := cluster.Read(t, filepath.Join(s.folder, "anonymous.json"))
	hidden := []string{"orion", "lyra", "nimbus", "cirrus", "vega", "PASSWORD", "andromeda", "pause"}
	for pod, node := range placed {
		hidden = append(hidden, strings.TrimPrefix(pod, "default/"), node)
	}
	for _, word := range hidden {
		if strings.Contains(text, word) {
			t.Errorf("it has %q", word)
		}
	}
	pod := localcluster.NewPod("more", "")
	pod.APIVersion, pod.Kind = "v1", "Pod"
	manifest, err := json.Marshal(pod)
	if err != nil {
		t.Fatal(err)
	}
	cluster.Write(t, filepath.Join(s.folder, "more.json"), string(manifest))
	var counts [2]int
	for i, file := range []string{"full.json", "anonymous.json"} {
		var fits []struct{ Count int }
		s.ask(t, &fits, "fit", "--pod", "more.json", "--snapshot", file)
		counts[i] = fits[0].Count
	}
	if counts[0] != counts[1] || counts[0] == 0 {
		t.Errorf("%d pods fit in addition, and %d with other names; want the same number, not 0", counts[0], counts[1])
	}
}

// checkQuestions checks what questions print about the real cluster.
func (s *stand) checkQuestions(t *testing.T, placed map[string]string) {
	onNode, inZone := 0, 0
	for _, node := range placed {
		var i int
		if _, err := fmt.Sscanf(node, "orion-%d", &i); err != nil {
			t.Fatal(err)
		}
		if i == 4 {
			onNode++
		}
		if i%3 == 1 {
			inZone++
		}
	}
	for question, want := range map[string]string{
		"drain orion-04":      fmt.Sprintf(`The drain of orion-04 can finish: %d pods move, 0 stay\.\n  default/lyra-\S+ → orion-`, onNode),
		"drain --each":        fmt.Sprintf(`(?m)^orion-04: %d pods move$`, onNode),
		"shrink":              `(?m)^[1-9]\d* of 30 nodes can go, in this order:\n  orion-\d\d: \d+ pods move$`,
		"lose --zone zone-b":  fmt.Sprintf(`10 nodes with %d pods are gone\. \d+ pods have another node, \d+ pods wait \(0 did before\), and 0 have no owner`, inZone),
		"fit --pod more.json": `default/more: [1-9]\d* more fit, on \d+ nodes\n  the next one does not: 0/30 nodes are available`,
	} {
		output := string(s.run(t, append([]string{"simulate", "--config", "mine.yaml", "--snapshot", "full.json"}, strings.Fields(question)...)...))
		if !regexp.MustCompile(want).MatchString(output) {
			t.Errorf("%s prints %s\nwant %s", question, output, want)
		}
	}
}

// checkRepeatable checks that two runs write the same, in each format.
func (s *stand) checkRepeatable(t *testing.T) {
	for _, format := range []string{"json", "html"} {
		var reports [2]string
		for i := range reports {
			file := fmt.Sprintf("report-%d.%s", i, format)
			s.run(t, "simulate", "--snapshot", "empty.json", "--trace", "trace.jsonl", "--config", "stock", "--config", "mine.yaml",
				"--seeds", "2", "--output", file)
			reports[i] = cluster.Read(t, filepath.Join(s.folder, file))
		}
		if reports[0] != reports[1] {
			t.Errorf("two reports as %s differ", format)
		}
	}
}

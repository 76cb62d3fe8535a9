// SPDX-License-Identifier: Apache-2.0

package records

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kube-scheduler-fork/build/localcluster"
	"kube-scheduler-fork/test/cluster"
)

// ask sends a request as an administrator, or with a token, and returns the status and the response.
func (s *stand) ask(t *testing.T, method, path string, body io.Reader, token ...string) (int, []byte) {
	t.Helper()
	code, content, err := s.Ask(t.Context(), method, s.scheduler.URL()+path, body, token...)
	if err != nil {
		t.Fatal(err)
	}
	return code, content
}

// whatIf has the fields of a response that the tests need.
type whatIf struct {
	Kind, Result, Summary, Node string
	Nodes, Feasible, Ties       int
	Scores                      []struct{ Node string }
	Preemption                  *struct{ Node, WhyNot string }
	Verdicts                    []struct {
		Node string
		Fits bool
	}
}

// wouldBe returns the dry run of a pod that does not exist.
func (s *stand) wouldBe(t *testing.T, pod *corev1.Pod) whatIf {
	t.Helper()
	pod = pod.DeepCopy()
	pod.APIVersion, pod.Kind = "v1", "Pod"
	manifest, err := json.Marshal(pod)
	if err != nil {
		t.Fatal(err)
	}
	code, content := s.ask(t, http.MethodPost, "/scheduling/what-if?nodes=all", bytes.NewReader(manifest))
	var answer whatIf
	if err := json.Unmarshal(content, &answer); err != nil || code != http.StatusOK {
		t.Fatalf("%d, %v: %s", code, err, content)
	}
	return answer
}

// TestWhatIfIsWhatBecomesOfAPod compares the dry run of pods with their scheduling.
func TestWhatIfIsWhatBecomesOfAPod(t *testing.T) {
	s := newStand(t)
	for i := range 12 {
		pod := localcluster.NewPod(fmt.Sprintf("pod-%02d", i), "")
		pod.Spec.Containers[0].Resources.Requests = corev1.ResourceList{
			corev1.ResourceCPU: *resource.NewMilliQuantity(int64(300+200*(i%5)), resource.DecimalSI),
		}
		answer := s.wouldBe(t, pod)
		if answer.Result != "Fits" || len(answer.Verdicts) != 4 {
			t.Fatalf("%s: %+v", pod.Name, answer)
		}
		best := map[string]bool{}
		for _, scores := range answer.Scores[:answer.Ties] {
			best[scores.Node] = true
		}
		if node := s.AwaitBound(t, s.CreatePod(t, pod)); !best[node] {
			t.Errorf("%s is bound to %s, and was to go to %v: %s", pod.Name, node, best, answer.Summary)
		}
	}
	large := localcluster.NewPod("large", "")
	large.Spec.Containers[0].Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1000")}
	answer := s.wouldBe(t, large)
	want := "None of 4 nodes fits; 4: Insufficient cpu."
	if answer.Result != "Unschedulable" || answer.Summary != want || answer.Preemption == nil {
		t.Errorf("%+v, want %s", answer, want)
	}
	// The dry run leaves no trace.
	if code, content := s.ask(t, http.MethodGet, "/scheduling/pods/default/large", nil); code != http.StatusNotFound {
		t.Errorf("%d: %s", code, content)
	}
	s.CreatePod(t, large)
	s.recorded(t, large, func(got record) error { return cluster.Unless(got.Summary == want, "%s", got.Summary) })
	s.Await(t, "the queue to have the pod", func() error {
		code, content := s.ask(t, http.MethodGet, "/scheduling/queue", nil)
		var queue struct {
			Lengths struct{ Unschedulable, Backoff int }
			Items   []struct {
				Name, Where, Summary string
				WaitsFor             []string
			}
		}
		if err := json.Unmarshal(content, &queue); err != nil || code != http.StatusOK || len(queue.Items) != 1 {
			return fmt.Errorf("%d, %v: %s", code, err, content)
		}
		item := queue.Items[0]
		return cluster.Unless(item.Name == "large" && item.Where == "Unschedulable" && item.Summary == want && len(item.WaitsFor) == 1 &&
			item.WaitsFor[0] == "NodeResourcesFit" && queue.Lengths.Unschedulable == 1, "%s", content)
	})
	code, content := s.ask(t, http.MethodGet, "/scheduling/what-if?pod=default/large", nil)
	if code != http.StatusOK || !strings.Contains(string(content), want) {
		t.Errorf("%d: %s", code, content)
	}
}

// TestWhoMayAsk checks that dry runs have their own permission.
func TestWhoMayAsk(t *testing.T) {
	s := newStand(t)
	s.CreateFrom(t, root+"/manifests/examples/records/read-scheduling-records.yaml")
	reader := cluster.Account{Namespace: metav1.NamespaceDefault, Name: "only-reads"}
	asker := cluster.Account{Namespace: metav1.NamespaceDefault, Name: "asks"}
	s.CreateAccount(t, reader, rbacv1.RoleRef{Kind: "ClusterRole", Name: "read-scheduling-records"})
	s.CreateAccount(t, asker, rbacv1.RoleRef{Kind: "ClusterRole", Name: "ask-scheduling-what-if"})
	s.AwaitAllowed(t, authorizationv1.SubjectAccessReviewSpec{
		User: reader.User(), NonResourceAttributes: &authorizationv1.NonResourceAttributes{Verb: "get", Path: "/scheduling/queue"},
	})
	s.AwaitAllowed(t, authorizationv1.SubjectAccessReviewSpec{
		User: asker.User(), NonResourceAttributes: &authorizationv1.NonResourceAttributes{Verb: "post", Path: "/scheduling/what-if"},
	})
	const manifest = `{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "new"}, "spec": {"containers": [{"name": "c", "image": "i"}]}}`
	for _, tt := range []struct {
		who          cluster.Account
		method, path string
		code         int
	}{
		{reader, http.MethodGet, "/scheduling/queue", http.StatusOK},
		{reader, http.MethodPost, "/scheduling/what-if", http.StatusForbidden},
		{asker, http.MethodPost, "/scheduling/what-if", http.StatusOK},
		{asker, http.MethodGet, "/scheduling/queue", http.StatusForbidden},
	} {
		if code, content := s.ask(t, tt.method, tt.path, strings.NewReader(manifest), s.Token(t, tt.who)); code != tt.code {
			t.Errorf("%s, %s %s: %d, want %d: %s", tt.who.Name, tt.method, tt.path, code, tt.code, content)
		}
	}
}

// TestManyAsk checks that pods are bound during more requests of all kinds than are served.
func TestManyAsk(t *testing.T) {
	s := newStand(t)
	done, codes := make(chan struct{}), sync.Map{}
	var clients sync.WaitGroup
	hostile := "{apiVersion: v1, kind: Pod, metadata: {name: \"<script>\\0\"}, spec: {containers: [" + strings.Repeat("[", 20000) + "]}}"
	for i := range 32 {
		clients.Add(1)
		go func() {
			defer clients.Done()
			for n := i; ; n++ {
				select {
				case <-done:
					return
				default:
				}
				method, path, body := http.MethodGet, "/scheduling/pods", ""
				switch n % 4 {
				case 1:
					path = "/scheduling/queue"
				case 2:
					method, path, body = http.MethodPost, "/scheduling/what-if", hostile
				case 3:
					method, path, body = http.MethodPost, "/scheduling/what-if", strings.Repeat("x", 10<<20)
				}
				code, _ := s.ask(t, method, path, strings.NewReader(body))
				codes.Store(code, true)
			}
		}()
	}
	for i := range 50 {
		s.AwaitBound(t, s.CreatePod(t, localcluster.NewPod(fmt.Sprintf("meanwhile-%02d", i), "")))
	}
	close(done)
	clients.Wait()
	codes.Range(func(code, _ any) bool {
		switch code {
		case http.StatusOK, http.StatusBadRequest, http.StatusRequestEntityTooLarge, http.StatusTooManyRequests:
		default:
			t.Errorf("answered %v", code)
		}
		return true
	})
}

// TestStandby sends requests to the standby, and continues after the leader has died.
func TestStandby(t *testing.T) {
	s := newStand(t)
	file := cluster.WriteConfig(t, "leaderElection: {leaderElect: true, leaseDuration: 3s, renewDeadline: 2s, retryPeriod: 500ms}\n"+
		"profiles: [{schedulerName: two}]\n")
	program := cluster.Program(t, "KUBE_SCHEDULER")
	leader := s.StartScheduler(t, program, file, localcluster.SchedulerOptions{LeaderElection: true, Name: "leader"})
	s.scheduler = leader
	pod := localcluster.NewPod("first", "two")
	s.AwaitBound(t, s.CreatePod(t, pod))
	identity := s.recorded(t, pod, func(got record) error {
		return cluster.Unless(got.Leader && got.LeaderIdentity != "" && got.Result == "Bound", "%+v", got)
	}).LeaderIdentity
	waits := localcluster.NewPod("waits", "two")
	waits.Spec.NodeSelector = map[string]string{"nowhere": "true"}
	s.CreatePod(t, waits)
	s.recorded(t, waits, func(got record) error { return cluster.Unless(got.Result == "Unschedulable", "%s", got.Result) })

	s.scheduler = s.StartScheduler(t, program, file, localcluster.SchedulerOptions{LeaderElection: true, Name: "standby"})
	s.Await(t, "the standby to know who leads", func() error {
		code, content := s.ask(t, http.MethodGet, "/scheduling/pods", nil)
		var list record
		err := json.Unmarshal(content, &list)
		return cluster.Unless(err == nil && code == http.StatusOK && !list.Leader && list.LeaderIdentity == identity, "%d: %s", code, content)
	})
	code, content := s.ask(t, http.MethodGet, "/scheduling/what-if?pod=default/waits", nil)
	var status metav1.Status
	if err := json.Unmarshal(content, &status); err != nil || code != http.StatusServiceUnavailable || status.Reason != "Standby" ||
		status.Details == nil || status.Details.Name != identity {
		t.Errorf("a standby answers with %d: %s", code, content)
	}
	if err := leader.Kill(); err != nil {
		t.Fatal(err)
	}
	// The leader's records are lost. The new leader has its own attempts.
	s.recorded(t, waits, func(got record) error {
		return cluster.Unless(got.Leader && got.Result == "Unschedulable" && got.Attempts[0].Attempt == 1, "%+v", got)
	})
}

// TestReasonsOfOthers covers rejections by an extender, and pods evicted for another.
func TestReasonsOfOthers(t *testing.T) {
	s := newStand(t)
	extender := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		var arguments struct{ NodeNames []string }
		if err := json.NewDecoder(request.Body).Decode(&arguments); err != nil {
			t.Error(err)
		}
		failed := map[string]string{}
		for _, node := range arguments.NodeNames {
			failed[node] = "it is closed today"
		}
		if err := json.NewEncoder(w).Encode(map[string]any{"NodeNames": []string{}, "FailedNodes": failed}); err != nil {
			t.Error(err)
		}
	}))
	t.Cleanup(extender.Close)
	file := filepath.Join(t.TempDir(), "config.yaml")
	cluster.Write(t, file, config+"extenders: [{urlPrefix: \""+strings.Replace(extender.URL, "http://", "http://user:secret@", 1)+
		"\", filterVerb: filter, nodeCacheCapable: true, managedResources: [{name: example.org/extended}]}]\nprofiles: [{schedulerName: extended}]\n")
	plain := s.scheduler
	s.scheduler = s.StartScheduler(t, cluster.Program(t, "KUBE_SCHEDULER"), file, localcluster.SchedulerOptions{Name: "extended"})
	pod := localcluster.NewPod("closed", "extended")
	pod.Spec.Containers[0].Resources.Limits = corev1.ResourceList{"example.org/extended": resource.MustParse("0")}
	s.CreatePod(t, pod)
	const want = "None of 4 nodes fits; 4: it is closed today."
	s.recorded(t, pod, func(got record) error {
		if got.Summary != want || len(got.Attempts[0].Extenders) != 1 {
			return fmt.Errorf("%+v", got)
		}
		call := got.Attempts[0].Extenders[0]
		return cluster.Unless(call.URL == extender.URL && call.Verb == "filter" && call.NodesIn == 4 && call.NodesOut == 0 && call.Seconds > 0, "%+v", call)
	})
	if answer := s.wouldBe(t, pod); answer.Summary != want {
		t.Errorf("it would be: %s", answer.Summary)
	}

	s.scheduler = plain
	s.Create(t, "{apiVersion: scheduling.k8s.io/v1, kind: PriorityClass, metadata: {name: first}, value: 1000}")
	for i := range 4 {
		victim := localcluster.NewPod(fmt.Sprintf("victim-%d", i), "")
		victim.Spec.Containers[0].Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("7")}
		s.AwaitBound(t, s.CreatePod(t, victim))
	}
	first := localcluster.NewPod("evicts", "")
	first.Spec.PriorityClassName = "first"
	first.Spec.Containers[0].Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("5")}
	node := s.AwaitBound(t, s.CreatePod(t, first))
	got := s.recorded(t, first, func(got record) error { return cluster.Unless(got.Result == "Bound", "%s", got.Result) })
	evicts := got.Attempts[len(got.Attempts)-1]
	if p := evicts.Preemption; p == nil || p.Node != node || p.Candidates != 4 || len(p.Victims) != 1 || !strings.HasPrefix(p.Victims[0], "default/victim-") {
		t.Errorf("the attempt that evicts: %+v", evicts.Preemption)
	}
	last := got.Attempts[0]
	if last.WokenBy == "" {
		t.Error("it is not said what has woken the pod")
	}
	var steps []string
	for _, step := range last.Steps {
		if step.Status != "Success" || step.Seconds <= 0 || step.Seconds > time.Minute.Seconds() {
			t.Errorf("%+v", step)
		}
		steps = append(steps, step.ExtensionPoint)
	}
	if got := strings.Join(steps, " "); got != "Reserve Permit PreBind Bind" {
		t.Errorf("the steps are %s", got)
	}

	s.Kubectl(t, t.Context(), "taint", "nodes", "--all", "only=these:NoSchedule")
	pod = localcluster.NewPod("tolerates-nothing", "")
	s.CreatePod(t, pod)
	const tainted = "None of 4 nodes fits; 4: node(s) had taint {only: (not shown)}, that the pod didn't tolerate."
	s.recorded(t, pod, func(got record) error { return cluster.Unless(got.Summary == tainted, "%s", got.Summary) })
}

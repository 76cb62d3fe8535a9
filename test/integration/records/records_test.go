// SPDX-License-Identifier: Apache-2.0

// Package records tests the records of a real scheduler on a local control plane: why pods wait, and why others were
// placed where they are. It needs programs that were built before, so it has its own make target.
package records

import (
	"encoding/json"
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kube-scheduler-fork/build/localcluster"
	"kube-scheduler-fork/test/cluster"
)

const (
	root   = "../../.."
	config = "apiVersion: kubescheduler.config.k8s.io/v1beta3\nkind: KubeSchedulerConfiguration\n" +
		"leaderElection: {leaderElect: false}\npodInitialBackoffSeconds: 1\npodMaxBackoffSeconds: 1\n"
)

var shared cluster.Shared

func TestMain(m *testing.M) { cluster.Main(m, &shared) }

// record has the fields of a pod's record that the test needs.
type record struct {
	Leader         bool
	LeaderIdentity string
	Result         string
	Node           string
	Summary        string
	Attempts       []struct {
		Attempt, Nodes, Evaluated, Feasible, Ties int
		Result, Summary, Node, WokenBy            string
		Steps                                     []struct {
			ExtensionPoint, Status string
			Seconds                float64
		}
		Extenders []struct {
			URL, Verb         string
			Seconds           float64
			NodesIn, NodesOut int
		}
		Preemption *struct {
			Candidates int
			Node       string
			Victims    []string
		}
		Rejections []struct {
			Plugin  string
			Reasons []string
			Nodes   int
		}
		Scores []struct {
			Node    string
			Total   int64
			Plugins []struct {
				Name                              string
				Raw, Normalized, Weight, Weighted int64
			}
		}
	}
}

type stand struct {
	*cluster.Cluster
	scheduler *localcluster.Scheduler
}

// newStand returns a stand with four nodes, and a scheduler with additional lines in its configuration.
func newStand(t *testing.T, more ...string) *stand {
	t.Helper()
	s := &stand{Cluster: shared.Get(t)}
	s.AddNodes(t, 4)
	file := filepath.Join(t.TempDir(), "config.yaml")
	cluster.Write(t, file, config+strings.Join(more, ""))
	s.scheduler = s.StartScheduler(t, cluster.Program(t, "KUBE_SCHEDULER"), file)
	return s
}

// recorded waits until a pod's record is as expected, and returns it.
func (s *stand) recorded(t *testing.T, pod *corev1.Pod, want func(record) error) record {
	t.Helper()
	var got record
	s.Await(t, "the records of "+pod.Name, func() error {
		content, err := s.Get(t.Context(), s.scheduler.URL()+"/scheduling/pods/"+pod.Namespace+"/"+pod.Name)
		if err != nil {
			return err
		}
		got = record{}
		if err := json.Unmarshal(content, &got); err != nil {
			return err
		}
		return want(got)
	})
	return got
}

// TestWhyPodsWait compares the records with the state of the cluster: four nodes with a pod on each.
func TestWhyPodsWait(t *testing.T) {
	s := newStand(t)
	for i := range 4 {
		running := localcluster.NewPod(fmt.Sprintf("running-%d", i), "")
		running.Labels = map[string]string{"app": "running"}
		// One fits on each node.
		running.Spec.Containers[0].Ports = []corev1.ContainerPort{{HostPort: 8080, ContainerPort: 8080}}
		s.AwaitBound(t, s.CreatePod(t, running))
	}
	for _, tt := range []struct {
		name, want string
		change     func(*corev1.PodSpec)
	}{
		{"cpu", "None of 4 nodes fits; 4: Insufficient cpu.", func(spec *corev1.PodSpec) {
			spec.Containers[0].Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1000")}
		}},
		{"anti-affinity", "None of 4 nodes fits; 4: node(s) didn't match pod anti-affinity rules.", func(spec *corev1.PodSpec) {
			spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: terms("running")}}
		}},
		{"volume", `It is rejected before any node is evaluated: persistentvolumeclaim "none" not found.`, func(spec *corev1.PodSpec) {
			spec.Volumes = []corev1.Volume{{Name: "data", VolumeSource: corev1.VolumeSource{
				PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "none"},
			}}}
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			pod := localcluster.NewPod("waits-for-"+tt.name, "")
			tt.change(&pod.Spec)
			s.recorded(t, s.CreatePod(t, pod), func(got record) error {
				if got.Result != "Unschedulable" || got.Summary != tt.want || !got.Leader {
					return fmt.Errorf("%s: %s, want %s", got.Result, got.Summary, tt.want)
				}
				return nil
			})
		})
	}
	t.Run("all are listed, those that wait first", func(t *testing.T) {
		content, err := s.Get(t.Context(), s.scheduler.URL()+"/scheduling/pods")
		if err != nil {
			t.Fatal(err)
		}
		var list struct {
			Kind  string
			Items []struct{ Name, Result string }
		}
		if err := json.Unmarshal(content, &list); err != nil {
			t.Fatal(err)
		}
		bound := 0
		for _, item := range list.Items {
			if item.Result == "Bound" {
				bound++
			} else if bound > 0 {
				t.Errorf("%s, which is %s, comes after a pod that is bound", item.Name, item.Result)
			}
		}
		if list.Kind != "PodList" || bound != 4 || len(list.Items) != 7 {
			t.Errorf("%d of %d pods are bound, want 4 of 7: %s", bound, len(list.Items), content)
		}
	})
}

func terms(app string) []corev1.PodAffinityTerm {
	return []corev1.PodAffinityTerm{{
		TopologyKey: corev1.LabelHostname, LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": app}},
	}}
}

// TestWholeStory follows a pod that fits no node at first, and then one.
func TestWholeStory(t *testing.T) {
	s := newStand(t)
	pod := localcluster.NewPod("late", "")
	pod.Spec.NodeSelector = map[string]string{"room": "yes"}
	s.recorded(t, s.CreatePod(t, pod), func(got record) error {
		if got.Result != "Unschedulable" {
			return fmt.Errorf("it is %s", got.Result)
		}
		return nil
	})
	for _, node := range []string{"node-1", "node-2"} {
		s.Kubectl(t, t.Context(), "label", "node", node, "room=yes")
	}
	node := s.AwaitBound(t, pod)
	got := s.recorded(t, pod, func(got record) error {
		if got.Result != "Bound" {
			return fmt.Errorf("it is %s: %s", got.Result, got.Summary)
		}
		return nil
	})
	if got.Node != node || got.Summary != "It is bound to node "+node+"." || len(got.Attempts) < 2 {
		t.Fatalf("%+v, want at least two attempts, and the node %s", got, node)
	}
	first, last := got.Attempts[len(got.Attempts)-1], got.Attempts[0]
	if first.Attempt != 1 || first.Nodes != 4 || first.Feasible != 0 || len(first.Rejections) != 1 || first.Rejections[0].Plugin != "NodeAffinity" {
		t.Errorf("the first attempt: %+v", first)
	}
	chosen := false
	for _, scores := range last.Scores {
		sum := int64(0)
		for _, plugin := range scores.Plugins {
			sum += plugin.Weighted
		}
		if sum != scores.Total || sum == 0 {
			t.Errorf("the plugins' scores of %s add up to %d: %+v", scores.Node, sum, scores)
		}
		chosen = chosen || scores.Node == node
	}
	// The second label may arrive while the first is handled: then one node fits, and nothing is scored.
	if last.Feasible > 1 && !chosen || last.Feasible == 1 && len(last.Scores) > 0 || last.Feasible+last.Evaluated == 0 {
		t.Errorf("the last attempt: %+v", last)
	}
}

// TestWhoMayRead requests a record with the permissions of manifests/examples.
func TestWhoMayRead(t *testing.T) {
	s := newStand(t)
	pod := localcluster.NewPod("pod", "")
	pod.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "PASSWORD", Value: "secret-1"}}
	pod.Annotations = map[string]string{"password": "secret-2"}
	s.AwaitBound(t, s.CreatePod(t, pod))
	code, content := s.ask(t, http.MethodGet, "/scheduling/pods/default/pod", nil, s.readerToken(t))
	if code != http.StatusOK || strings.Contains(string(content), "secret") {
		t.Errorf("a reader gets %d, want 200, and nothing that is the pod's own: %s", code, content)
	}
}

// TestOnlyHealthzNeedsNoAccount requests everything that the scheduler serves, with its own and with plugins' pages.
func TestOnlyHealthzNeedsNoAccount(t *testing.T) {
	s := newStand(t)
	other := cluster.Account{Namespace: metav1.NamespaceDefault, Name: "without-permissions"}
	s.CreateAccount(t, other)
	if code, content, err := s.Ask(t.Context(), http.MethodGet, s.scheduler.URL()+"/healthz", nil, ""); err != nil || code != http.StatusOK {
		t.Errorf("/healthz: %d (%v), want 200: %s", code, err, content)
	}
	for _, path := range []string{
		"/", "/metrics", "/metrics/resources", "/configz", "/debug/pprof/", "/debug/pprof/heap", "/debug/flags/v", "/node-load",
		"/overcommit", "/scheduling/pods", "/scheduling/queue", "/scheduling/openapi", "/scheduling/what-if?pod=default/pod", "/of-no-handler",
	} {
		for _, token := range []string{"", "invalid", s.Token(t, other)} {
			want := http.StatusForbidden
			if token == "invalid" {
				want = http.StatusUnauthorized
			}
			if code, content, err := s.Ask(t.Context(), http.MethodGet, s.scheduler.URL()+path, nil, token); err != nil || code != want {
				t.Errorf("%s with the token %.8q: %d (%v), want %d: %s", path, token, code, err, want, content)
			}
		}
	}
}

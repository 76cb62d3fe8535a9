// SPDX-License-Identifier: Apache-2.0

package localcluster

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"golang.org/x/text/encoding/unicode"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/kubernetes/fake"
	"sigs.k8s.io/yaml"
)

// configHead is how a scheduler configuration starts.
const configHead = "apiVersion: kubescheduler.config.k8s.io/v1beta3\nkind: KubeSchedulerConfiguration\n"

func TestLocalCopyOfAConfigurationDiffersInTwoFieldsOnly(t *testing.T) {
	const head = configHead
	older := strings.ReplaceAll(head, "v1beta3", "v1beta2")
	const local = "clientConnection: {kubeconfig: /run/kubeconfig}\nleaderElection: {leaderElect: false}\n"
	for name, test := range map[string]struct{ before, after string }{
		"both fields absent": {head, head + local},
		"both fields set": {
			head + "clientConnection: {kubeconfig: /etc/kubernetes/scheduler.conf, qps: 200}\n" +
				"leaderElection: {leaderElect: true, leaseDuration: 15s}\n",
			head + "clientConnection: {kubeconfig: /run/kubeconfig, qps: 200}\n" +
				"leaderElection: {leaderElect: false, leaseDuration: 15s}\n",
		},
		"keys with nothing behind them": {head + "clientConnection:\nleaderElection:\n", head + local},
		"the older version":             {older, older + local},
		"a number that a float64 cannot hold": {
			head + "profiles: [{pluginConfig: [{name: P, args: {bytes: 9007199254740993}}]}]\n",
			head + local + "profiles: [{pluginConfig: [{name: P, args: {bytes: 9007199254740993}}]}]\n",
		},
	} {
		t.Run(name, func(t *testing.T) {
			file := writeFile(t, test.before)
			copied, err := localCopy(t, file, localSettings{kubeconfig: "/run/kubeconfig"})
			if err != nil {
				t.Fatal(err)
			}
			if got, want := canonical(t, copied), canonical(t, test.after); got != want {
				t.Errorf("the copy is\n%s\nand should be\n%s", got, want)
			}
			if readFile(t, file) != test.before {
				t.Error("the original was changed")
			}
		})
	}
}

func TestLocalCopyAsksTheExtenderThatRunsInsteadOfOneOnLoopback(t *testing.T) {
	const extenders = configHead + "extenders:\n" +
		"- {urlPrefix: 'https://127.0.0.1:8888/path', filterVerb: filter, weight: 3, tlsConfig: {caFile: /etc/ca.crt}}\n" +
		"- {urlPrefix: 'http://localhost:9999', bindVerb: bind}\n" +
		"- {urlPrefix: 'https://192.0.2.1:8888', filterVerb: filter}\n"
	const tls = "enableHTTPS: true, tlsConfig: {caFile: ca, certFile: crt, keyFile: key}"
	const local = configHead + "clientConnection: {kubeconfig: k}\nleaderElection: {leaderElect: false}\nextenders:\n" +
		"- {urlPrefix: 'https://127.0.0.1:1/path', filterVerb: filter, weight: 3, " + tls + "}\n"
	const remote = "- {urlPrefix: 'https://192.0.2.1:8888', filterVerb: filter}\n"
	file := writeFile(t, extenders)
	for replaces, test := range map[string]struct {
		addresses []string
		copied    string
	}{
		"": {
			[]string{"https://127.0.0.1:8888/path", "http://localhost:9999"},
			local + "- {urlPrefix: 'https://127.0.0.1:1', bindVerb: bind, " + tls + "}\n" + remote,
		},
		DocumentedExtender: {
			[]string{"https://127.0.0.1:8888/path"}, local + "- {urlPrefix: 'http://localhost:9999', bindVerb: bind}\n" + remote,
		},
	} {
		addresses, err := ReadExtenders(file, replaces)
		if err != nil || !reflect.DeepEqual(addresses, test.addresses) {
			t.Errorf("extenders at %q: %v, %v, want %v", replaces, addresses, err, test.addresses)
		}
		settings := localSettings{
			kubeconfig: "k", replaces: replaces, extender: &Extender{url: "https://127.0.0.1:1", authority: "ca", certificate: "crt", key: "key"},
		}
		if got, err := localCopy(t, file, settings); err != nil || canonical(t, got) != canonical(t, test.copied) {
			t.Errorf("%v; the copy is\n%s\nand should be\n%s", err, got, test.copied)
		}
		if _, err := localCopy(t, writeFile(t, configHead), settings); err == nil || !strings.Contains(err.Error(), "next: ") {
			t.Errorf("of a configuration without an extender: %v, want an error with the next step", err)
		}
	}
}

// localCopy returns the local copy of a configuration.
func localCopy(t *testing.T, file string, settings localSettings) (string, error) {
	t.Helper()
	config, err := readSchedulerConfig(file)
	if err != nil {
		t.Fatal(err)
	}
	copied := filepath.Join(t.TempDir(), "copy.yaml")
	if err := config.writeLocalCopy(copied, settings); err != nil {
		return "", err
	}
	return readFile(t, copied), nil
}

func TestProfilesAreNamedInOrderWithTheSchedulersDefault(t *testing.T) {
	for profiles, want := range map[string][]string{
		"":                              {"default-scheduler"},
		"profiles: []":                  {"default-scheduler"},
		"profiles:":                     {"default-scheduler"},
		"profiles: [{plugins: {}}]":     {"default-scheduler"},
		"profiles: [{schedulerName: }]": {"default-scheduler"},
		"profiles: [{schedulerName: my-scheduler}, {schedulerName: default-scheduler}]": {"my-scheduler", "default-scheduler"},
	} {
		got, err := ReadProfiles(writeFile(t, configHead+profiles))
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%q: got %v, %v, want %v", profiles, got, err, want)
		}
	}
}

func TestConfigurationThatIsNoneIsRefusedWithTheNextStep(t *testing.T) {
	for name, content := range map[string]string{
		"empty":                    "",
		"not YAML":                 "{",
		"another kind":             "apiVersion: v1\nkind: Pod\n",
		"a key twice":              configHead + "profiles: []\nprofiles: []\n",
		"profiles is no list":      configHead + "profiles: many\n",
		"a profile is no map":      configHead + "profiles: [my-scheduler]\n",
		"a name that is no string": configHead + "profiles: [{schedulerName: 7}]\n",
	} {
		if _, err := ReadProfiles(writeFile(t, content)); err == nil || !strings.Contains(err.Error(), "next: ") {
			t.Errorf("%s: got %v, want an error with the next step", name, err)
		}
	}
}

func TestManifestIsReadOrRefusedWithTheNextStep(t *testing.T) {
	const pod = "apiVersion: v1\nkind: Pod\nmetadata: {name: %s}\nspec: {containers: [{name: c, image: i}]%s}\n"
	const node = "apiVersion: v1\nkind: Node\nmetadata: {name: c}\n"
	const custom = "apiVersion: example.com/v1\nkind: Gang\nmetadata: {name: g}\nspec: {members: 3}\n"
	first, second := fmt.Sprintf(pod, "a", ""), fmt.Sprintf(pod, "b", ", schedulerName: s")
	manifest, err := ReadManifest(writeFile(t, "---\n"+first+"---\n# nothing\n---\n"+node+"---\n"+custom+"---\n"+second))
	if err != nil {
		t.Fatal(err)
	}
	pods := manifest.Pods
	if len(pods) != 2 || pods[0].Name != "a" || pods[1].Spec.SchedulerName != "s" || pods[1].Namespace != "default" {
		t.Errorf("got the pods %v", pods)
	}
	windows, err := unicode.UTF16(unicode.LittleEndian, unicode.UseBOM).NewEncoder().String(first + "---\r\n" + second)
	if err != nil {
		t.Fatal(err)
	}
	if saved, err := ReadManifest(writeFile(t, windows)); err != nil || !reflect.DeepEqual(saved.Pods, pods) {
		t.Errorf("got %v, %v from the pods in UTF-16", saved, err)
	}
	if len(manifest.Nodes) != 1 || manifest.Nodes[0].Name != "c" {
		t.Errorf("got the nodes %v", manifest.Nodes)
	}
	if len(manifest.Objects) != 1 || manifest.Objects[0].GetKind() != "Gang" || manifest.Objects[0].GetName() != "g" {
		t.Errorf("got the custom objects %v", manifest.Objects)
	}
	for name, content := range map[string]string{
		"empty":           "",
		"no pod":          node + "---\n" + custom,
		"another kind":    "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: d}\n",
		"unknown kind":    "apiVersion: v2\nkind: Pod\n",
		"not YAML":        "{",
		"bound by itself": fmt.Sprintf(pod, "a", ", nodeName: node-1"),
		"mistyped field":  fmt.Sprintf(pod, "a", ", schedularName: s"),
		"a field twice":   fmt.Sprintf(pod, "a", ", schedulerName: s, schedulerName: t"),
	} {
		if _, err := ReadManifest(writeFile(t, content)); err == nil || !strings.Contains(err.Error(), "next: ") {
			t.Errorf("%s: got %v, want an error with the next step", name, err)
		}
	}
	_, err = ReadManifest(writeFile(t, fmt.Sprintf(pod, "a", ", schedularName: s")))
	if err == nil || !strings.Contains(err.Error(), "schedularName") {
		t.Errorf("a mistyped field: %v does not name it", err)
	}
}

func TestPlacementIsRightOnlyWithAnEventOfTheProfileThatThePodAsksFor(t *testing.T) {
	bound := Placement{Name: "p", Asked: "my-scheduler", Served: true, Node: "node-1", Profile: "my-scheduler"}
	if err := bound.Err(); err != nil {
		t.Error(err)
	}
	for name, change := range map[string]func(*Placement){
		"by another profile": func(p *Placement) { p.Profile = "default-scheduler" },
		"without an event":   func(p *Placement) { p.Profile = "" },
		"not bound":          func(p *Placement) { p.Node, p.Profile, p.Message = "", "", "0/1 nodes are available" },
		"nothing said":       func(p *Placement) { p.Node, p.Profile = "", "" },
		"not served":         func(p *Placement) { p.Node, p.Profile, p.Served = "", "", false },
		"not created":        func(p *Placement) { *p = NotCreated(NewPod("p", "s")) },
	} {
		placement := bound
		change(&placement)
		if err := placement.Err(); err == nil || !strings.Contains(err.Error(), "next: ") {
			t.Errorf("%s: got %v, want an error with the next step", name, err)
		}
	}
}

func TestPodIsSettledWhenBoundWithItsEventOrUnschedulable(t *testing.T) {
	pod := func(node, reason string) *corev1.Pod {
		pod := NewPod("p", "my-scheduler")
		pod.Spec.NodeName = node
		if reason != "" {
			pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: reason}}
		}
		return pod
	}
	// The nomination may end before the next attempt, which finds the room.
	room := newObserver()
	makesRoom := pod("", corev1.PodReasonUnschedulable)
	makesRoom.Status.NominatedNodeName = "node-1"
	room.pod(makesRoom)
	room.pod(pod("", corev1.PodReasonUnschedulable))
	for name, test := range map[string]struct {
		seen            observation
		served, settled bool
	}{
		"not seen":                        {observation{}, true, false},
		"fresh":                           {observation{pod: pod("", "")}, true, false},
		"bound, event not there yet":      {observation{pod: pod("node-1", "")}, true, false},
		"bound, with its event":           {observation{pod: pod("node-1", ""), profile: "my-scheduler"}, true, true},
		"unschedulable":                   {observation{pod: pod("", corev1.PodReasonUnschedulable)}, true, true},
		"room is made for it":             {room.of(makesRoom.UID), true, false},
		"an error that is tried again":    {observation{pod: pod("", "SchedulerError")}, true, false},
		"no profile for it":               {observation{pod: pod("", "")}, false, true},
		"no profile for it, bound anyhow": {observation{pod: pod("node-1", "")}, false, false},
	} {
		if got := test.seen.settled(test.served); got != test.settled {
			t.Errorf("%s: settled is %v, want %v", name, got, test.settled)
		}
	}
}

func TestDeadlineEndsTheWaitForPodsWhoseAttemptsFail(t *testing.T) {
	serves := []*Scheduler{{name: "kube-scheduler", profiles: []string{"s"}}}
	plane := newTestPlane(t)
	plane.schedulers = serves
	failing := NewPod("failing", "s")
	failing.UID = "failing"
	failing.Status.Conditions = []corev1.PodCondition{{
		Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: "SchedulerError", Message: "connection refused",
	}}
	// It takes some time until the pod is seen; and the client forgets a pod that is created before it watches.
	var ctx context.Context
	for deadline := time.Second; ; deadline *= 2 {
		plane.client = fake.NewSimpleClientset()
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(t.Context(), deadline)
		defer cancel()
		placements, err := plane.Place(ctx, failing)
		if err == nil && ctx.Err() != nil && len(placements) == 1 && placements[0].Message == "connection refused" {
			break
		}
		if deadline > time.Minute {
			t.Fatalf("got %+v, %v, want a placement with the message, at the deadline", placements, err)
		}
	}
	_, err := plane.Place(ctx, NewPod("late", "s"))
	if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "next: ") {
		t.Errorf("after the deadline: got %v, want an error that says so, and what is next", err)
	}
}

// A pod without a node is waited for while an eviction for another pod may make room for it.
func TestWaitEndsWhenNothingChangesForPodsWithoutANode(t *testing.T) {
	o, profiles := newObserver(), sets.NewString("s")
	pod := NewPod("late", "s")
	pod.UID = "late"
	seen := pod.DeepCopy()
	seen.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable}}
	o.pod(seen)
	if settled, bound := o.settled([]*corev1.Pod{pod}, profiles); !settled || bound {
		t.Errorf("an unschedulable pod: settled %v, bound %v", settled, bound)
	}
	if err := o.await(t.Context(), []*corev1.Pod{pod}, profiles); err != nil {
		t.Error(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	o.pod(seen)
	if err := o.await(ctx, []*corev1.Pod{pod, NewPod("unseen", "s")}, profiles); !errors.Is(err, context.Canceled) {
		t.Errorf("after a cancel: %v", err)
	}
}

func newTestPlane(t *testing.T) *ControlPlane {
	t.Helper()
	c, err := newControlPlane(Options{Parent: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Stop(); err != nil {
			t.Error(err)
		}
	})
	return c
}

func writeFile(t *testing.T, content string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "file.yaml")
	if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// canonical returns YAML as JSON with sorted keys.
func canonical(t *testing.T, content string) string {
	t.Helper()
	json, err := yaml.YAMLToJSON([]byte(content))
	if err != nil {
		t.Fatal(err)
	}
	return string(json)
}

func readFile(t *testing.T, file string) string {
	t.Helper()
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

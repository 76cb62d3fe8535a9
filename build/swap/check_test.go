// SPDX-License-Identifier: Apache-2.0

package swap

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"

	"kube-scheduler-fork/build/schedulerpod"
	"kube-scheduler-fork/build/swap/host"
	"kube-scheduler-fork/build/swap/manifest"
	"kube-scheduler-fork/build/swap/record"
	"kube-scheduler-fork/build/swap/swaptest"
)

func TestAnArchiveThatWouldReplaceAnotherImageIsFound(t *testing.T) {
	const ours, other = "registry.k8s.io/kube-scheduler:v1.23.17-fork", "sha256:2"
	for name, c := range map[string]struct {
		loaded   string
		running  string
		severity Severity
		what     string
	}{
		"nothing of these names":             {},
		"a scheduler of the same name":       {loaded: ours, severity: Warning, what: "another image with the name " + ours},
		"the running scheduler":              {loaded: ours, running: ours, severity: Problem, what: "the running scheduler is another image"},
		"what is no scheduler":               {loaded: "registry.k8s.io/pause:3.6", severity: Problem, what: "which is not a scheduler's"},
		"what runs, under its second name":   {loaded: "localhost:5000/kube-scheduler:2", running: "localhost:5000/kube-scheduler:2", severity: Problem, what: "is another image"},
		"no scheduler in a registry's port":  {loaded: "scheduler:5000/etcd:1", severity: Problem, what: "which is not a scheduler's"},
		"a second name without a tag, of us": {loaded: "example.com/my-scheduler", severity: Warning, what: "another image with the name"},
	} {
		t.Run(name, func(t *testing.T) {
			fakes := &swaptest.FakeRuntime{Images: map[string]string{c.loaded: other}}
			tool := toolFor(t, swaptest.Stock)
			tool.node.Runtime = &host.Runtime{Containers: fakes, Images: fakes}
			p := &plan{pod: &manifest.Pod{Image: c.running}, imageID: "sha256:1", archive: &record.Archive{Path: "a.tar", Names: []string{ours}}}
			if c.loaded != ours && c.loaded != "" {
				p.archive.Names = append(p.archive.Names, c.loaded)
			}
			var found Findings
			if err := tool.checkNames(t.Context(), &found, p); err != nil {
				t.Fatal(err)
			}
			if c.severity == "" && len(found) == 0 {
				return
			}
			if len(found) != 1 || found[0].Severity != c.severity || !strings.Contains(found[0].What, c.what) {
				t.Errorf("found %+v, want a %s with %q", found, c.severity, c.what)
			}
		})
	}
}

func TestASchedulerThatIsNotElectedIsFound(t *testing.T) {
	for name, c := range map[string]struct {
		now, then string
		want      []string
	}{
		"both are elected":     {now: "true", then: "true"},
		"the running one":      {now: "false", then: "true", want: []string{"warning: the scheduler of this node runs without leader election"}},
		"both are not":         {now: "false", then: "false", want: []string{"warning: the scheduler of this node", "warning: the new scheduler would run without leader election, too"}},
		"the new one is not":   {now: "true", then: "false", want: []string{"problem: the new scheduler would not share the lease"}},
		"nothing is installed": {now: "false", want: []string{"warning: the scheduler of this node runs without leader election"}},
	} {
		t.Run(name, func(t *testing.T) {
			tool := toolFor(t, swaptest.Stock)
			var p *plan
			if c.then != "" {
				p = &plan{afterPod: swaptest.PodWith(t, "--leader-elect="+c.then), accepted: &schedulerpod.Config{}}
			}
			var found Findings
			tool.checkElection(&found, swaptest.PodWith(t, "--leader-elect="+c.now), p, 1)
			if len(found) != len(c.want) {
				t.Fatalf("found %+v, want %q", found, c.want)
			}
			for i, want := range c.want {
				if got := string(found[i].Severity) + ": " + found[i].What; !strings.HasPrefix(got, want) {
					t.Errorf("found %q, want %q", got, want)
				}
			}
		})
	}
}

func TestTheDefaultLimitOfRequestsInALargeClusterIsFound(t *testing.T) {
	for _, c := range []struct {
		qps   float64
		nodes int
		want  bool
	}{{0, 254, false}, {0, 255, true}, {0, 1000, true}, {50, 1000, true}, {51, 1000, false}} {
		var found Findings
		checkRequests(&found, c.qps, c.nodes)
		if len(found) > 0 != c.want {
			t.Errorf("%d nodes, qps %v: found %+v", c.nodes, c.qps, found)
		} else if c.want && !strings.HasPrefix(found[0].Next, fmt.Sprintf("set clientConnection: {qps: %d,", c.nodes/5)) {
			t.Errorf("next is %q", found[0].Next)
		}
	}
}

func TestAnUnsignedArchiveIsRefused(t *testing.T) {
	key := swaptest.Put(t, filepath.Join(t.TempDir(), "release.pub"), "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJKzJ3Yk1fWmM0VJ1bn5HcWk0l9k2yhmnHLdlbsL1rkQ\n")
	archive := swaptest.Put(t, filepath.Join(t.TempDir(), "image.tar"), "x")
	swaptest.Put(t, filepath.Join(filepath.Dir(archive), "SHA256SUMS"), "")
	for want, request := range map[string]Request{
		archive + " is not signed":            {Archive: archive, VerifyKey: key},
		"--verify-key is given without":       {VerifyKey: key},
		"--verify-key is given without --arc": {VerifyKey: key, Image: "ours:1"},
	} {
		tool := toolFor(t, swaptest.Stock)
		tool.node.Runtime, tool.node.Cluster = &host.Runtime{Images: &swaptest.FakeRuntime{Broken: true}}, &host.Cluster{Client: fake.NewSimpleClientset()}
		findings, err := tool.Check(t.Context(), request)
		var found strings.Builder
		findings.Write(&found)
		if err != nil || !strings.Contains(found.String(), want) {
			t.Errorf("check: %v, want %q in:\n%s", err, want, found.String())
		}
		if err := tool.Install(t.Context(), request); err == nil || !strings.Contains(err.Error(), want) || swaptest.Get(t, tool.manifest) != swaptest.Stock {
			t.Errorf("install: %v, want %q, and the manifest as before", err, want)
		}
	}
}

// schedulerPod returns the pod of a scheduler in the cluster, with its configuration in a ConfigMap.
func schedulerPod(name string, annotations map[string]string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "second", Name: name, Annotations: annotations},
		Spec: corev1.PodSpec{
			Containers: []corev1.Container{{
				Command:      []string{"/usr/local/bin/kube-scheduler", "--config=/etc/second/config.yaml"},
				VolumeMounts: []corev1.VolumeMount{{Name: "config", MountPath: "/etc/second"}},
			}},
			Volumes: []corev1.Volume{{Name: "config", VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{
				LocalObjectReference: corev1.LocalObjectReference{Name: "config-123"},
			}}}},
		},
	}
}

func TestAnotherSchedulerOfTheSameNameIsFound(t *testing.T) {
	const config = "leaderElection: {resourceNamespace: second, resourceName: second}\nprofiles: [{schedulerName: theirs}, {schedulerName: both}]\n"
	find := func(t *testing.T, served string, accepted []string, annotations map[string]string) Findings {
		t.Helper()
		client := fake.NewSimpleClientset(schedulerPod("a", annotations), schedulerPod("b", annotations), &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Namespace: "second", Name: "config-123"}, Data: map[string]string{"config.yaml": config},
		})
		tool := toolFor(t, swaptest.Stock)
		tool.node.Cluster = &host.Cluster{Client: client}
		ours, err := schedulerpod.ReadConfig([]byte(served))
		if err != nil {
			t.Fatal(err)
		}
		var findings Findings
		tool.checkSharedProfiles(t.Context(), &findings, &plan{afterPod: swaptest.PodWith(t, "--config=/c"), accepted: ours}, accepted)
		return findings
	}
	found := find(t, "profiles: [{}, {schedulerName: both}]", nil, nil)
	if len(found) != 1 || found.Problems() != 1 || !strings.Contains(found[0].What, "pod second/a serves both, too") ||
		!strings.HasSuffix(found[0].Next, "--accept shared-profiles") {
		t.Errorf("found %+v", found)
	}
	if found := find(t, "profiles: [{}, {schedulerName: both}]", []string{SharedProfiles}, nil); len(found) != 1 || found.Problems() != 0 {
		t.Errorf("though it is accepted: %+v", found)
	}
	if found := find(t, "profiles: [{}]", nil, nil); len(found) != 0 {
		t.Errorf("without a name in common: %+v", found)
	}
	if found := find(t, "leaderElection: {resourceNamespace: second, resourceName: second}\nprofiles: [{schedulerName: both}]", nil, nil); len(found) != 0 {
		t.Errorf("with the same lease: %+v", found)
	}
	static := map[string]string{corev1.MirrorPodAnnotationKey: "x"}
	if found := find(t, "profiles: [{schedulerName: both}]", nil, static); len(found) != 0 {
		t.Errorf("another control-plane node's: %+v", found)
	}
}

// SPDX-License-Identifier: Apache-2.0

// Package configurations runs every configuration of manifests/config with the
// `make run` commands in its comment, and checks the effect in the printed tables.
package configurations

import (
	"fmt"
	"maps"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"kube-scheduler-fork/test/cluster"
)

// checks verify the effect of each configuration.
var checks = map[string]func(*testing.T, *outcome){
	"my-scheduler.yaml": func(t *testing.T, o *outcome) {
		o.expectDiskType(t, "my-scheduler", "ssd")
		o.expect(t, "pod-01", "default-scheduler", "node-1", "node-2", "node-3", "node-4", "node-5")
	},
	"one-score-plugin.yaml": func(t *testing.T, o *outcome) {
		o.expectDiskType(t, "default-scheduler", "ssd")
		o.expect(t, "prefers-hdd", "default-scheduler", "node-1", "node-3", "node-5")
	},
	"weights.yaml": func(t *testing.T, o *outcome) {
		o.expect(t, "tolerates-nothing", "default-scheduler", "tainted")
	},
	"every-extension-point.yaml": func(t *testing.T, o *outcome) {
		o.expectPending(t, "fits-nowhere", "Insufficient cpu")
		// QueueSort is called only while two pods wait, and Unreserve only when a binding fails.
		for _, point := range []string{
			"PreFilter", "Filter", "PostFilter", "PreScore", "Score", "NormalizeScore", "Reserve", "Permit", "PreBind", "Bind", "PostBind",
		} {
			if !strings.Contains(o.text, `extensionPoint="`+point+`"`) {
				t.Errorf("no line of the log is about %s", point)
			}
		}
	},
	"many-profiles.yaml": func(t *testing.T, o *outcome) {
		o.expectDiskType(t, "ssd-first", "ssd")
		o.expectDiskType(t, "no-hdd", "ssd")
		o.expectBound(t, map[string]int{"default-scheduler": 10, "packing": 10, "ssd-first": 10, "random": 10, "no-hdd": 10})
	},
	"v1beta2.yaml": func(t *testing.T, o *outcome) { o.expectDiskType(t, "default-scheduler", "ssd") },
	"v1beta3.yaml": func(t *testing.T, o *outcome) { o.expectDiskType(t, "default-scheduler", "ssd") },
	"bin-packing.yaml": func(t *testing.T, o *outcome) {
		if o.used != "1 of 5" {
			t.Errorf("nodes with pods: %s, want 1 of 5", o.used)
		}
	},
	"no-default-scheduler.yaml": func(t *testing.T, o *outcome) {
		o.expectPending(t, "names-no-scheduler", "no profile is named default-scheduler")
		for _, plain := range []string{
			"note: pods that name no scheduler will stay Pending, because the configuration has no profile default-scheduler",
			"to fix this, add to the profiles in ", "    - schedulerName: default-scheduler\n",
		} {
			if !strings.Contains(o.text, plain) {
				t.Errorf("it does not say %q", plain)
			}
		}
	},
	"extender.yaml":         func(t *testing.T, o *outcome) { o.expectDiskType(t, "default-scheduler", "ssd") },
	"extender-plugins.yaml": func(t *testing.T, o *outcome) { o.expectDiskType(t, "default-scheduler", "ssd") },
	"extender-coin-dice.yaml": func(t *testing.T, o *outcome) {
		o.expectBound(t, map[string]int{"default-scheduler": 40})
		o.expectUneven(t, "default-scheduler", 20)
	},
	"rand-score.yaml": func(t *testing.T, o *outcome) { o.expectUneven(t, "default-scheduler", 10) },
	"node-load.yaml": func(t *testing.T, o *outcome) {
		o.expectBound(t, map[string]int{"default-scheduler": 10})
		o.expectCool(t, "default-scheduler")
	},
	"node-load-shadow.yaml": func(t *testing.T, o *outcome) {
		o.expectBound(t, map[string]int{"default-scheduler": 10, "node-load-shadow": 10})
		o.expectCool(t, "node-load-shadow")
		if o.onNode["node-1"]["default-scheduler"] == 0 {
			t.Error("no pod of default-scheduler is on the hot node: NodeLoad is no shadow there")
		}
	},
	// No server answers NodeLoad here. No pod may wait for it; otherwise the run itself fails.
	"node-load-kube-prometheus.yaml": func(t *testing.T, o *outcome) { o.expectBound(t, map[string]int{"default-scheduler": 10}) },
	"node-load-metrics-server.yaml":  func(t *testing.T, o *outcome) { o.expectBound(t, map[string]int{"default-scheduler": 10}) },
	"node-load-streaming.yaml": func(t *testing.T, o *outcome) {
		o.expectBound(t, map[string]int{"default-scheduler": 10, "streaming": 10})
		o.expectCool(t, "streaming")
		if o.onNode["node-1"]["default-scheduler"] == 0 {
			t.Error("no pod of default-scheduler is on the hot node: its load keeps pods of a profile without NodeLoad off")
		}
	},
	"pod-filter.yaml": func(t *testing.T, o *outcome) {
		anywhere := []string{"node-1", "node-2", "node-3", "node-4", "node-5"}
		o.expectPending(t, "debug-1", `denied by rule "no-debugging" of PodFilter`)
		o.expectPending(t, "team-a/web", `denied by rule "teams-name-an-owner" of PodFilter`)
		o.expect(t, "debug-2", "default-scheduler", anywhere...)
		o.expect(t, "team-a/api", "default-scheduler", anywhere...)
	},
	"node-cost.yaml": func(t *testing.T, o *outcome) {
		o.expectBound(t, map[string]int{"default-scheduler": 12})
		for name := range o.pods {
			want := "cheap"
			if strings.HasPrefix(name, "batch-") {
				want = "spot"
			}
			o.expect(t, name, "default-scheduler", want)
		}
	},
	"gpu.yaml": func(t *testing.T, o *outcome) {
		packed, free := "gpu-1", "gpu-2"
		if o.pods["single-1"].node == free {
			packed, free = free, packed
		}
		o.expect(t, "training", "default-scheduler", free)
		for name := range o.pods {
			if strings.HasPrefix(name, "single-") {
				o.expect(t, name, "default-scheduler", packed)
			}
			if strings.HasPrefix(name, "pod-") {
				o.expect(t, name, "default-scheduler", "node-1", "node-2", "node-3", "node-4", "node-5")
			}
		}
		o.expectBound(t, map[string]int{"default-scheduler": 19})
	},
	"node-filter.yaml": func(t *testing.T, o *outcome) {
		for _, name := range []string{"database-1", "database-2", "database-3"} {
			o.expect(t, name, "default-scheduler", "node-1", "node-3", "node-5")
		}
		for name := range o.pods {
			if strings.HasPrefix(name, "pod-") {
				o.expect(t, name, "default-scheduler", "node-2", "node-4", "node-6")
			}
		}
		o.expectPending(t, "no-database", `denied by rule "ssd-for-databases-only" of NodeFilter`)
	},
	"placement-policy.yaml": func(t *testing.T, o *outcome) {
		onSpot := 0
		for i := 1; i <= 10; i++ {
			name := fmt.Sprintf("web-%d", i)
			o.expect(t, name, "default-scheduler", "spot-1", "spot-2", "certified-1", "node-1", "node-2", "node-3")
			if strings.HasPrefix(o.pods[name].node, "spot-") {
				onSpot++
			}
		}
		if onSpot != 8 {
			t.Errorf("%d of ten web pods are on spot nodes, want the most that may be: 8", onSpot)
		}
		o.expect(t, "personal-data/analysis", "default-scheduler", "certified-1")
		o.expectPending(t, "personal-data/on-spot", `denied by rule "certified-only" of NodeFilter`)
	},
	"running-image-locality.yaml": func(t *testing.T, o *outcome) {
		o.expect(t, "wants-golang", "default-scheduler", "node-2", "node-3")
		o.expect(t, "wants-rust", "default-scheduler", "node-5")
		o.expect(t, "wants-both", "default-scheduler", "node-3")
	},
	"data-locality.yaml": func(t *testing.T, o *outcome) {
		for name, node := range map[string]string{
			"reads-sales": "holds-sales", "reads-logs": "holds-logs", "reads-images": "serves-images", "reads-sales-and-logs": "holds-logs",
			"reads-sales-beside": "beside-sales",
		} {
			o.expect(t, name, "default-scheduler", node)
		}
		o.expect(t, "reads-logs-in-zone", "data-in-zone", "holds-logs", "serves-images")
		if pod := o.pods["reads-what-is-nowhere"]; pod.scheduler != "data-in-zone" || pod.node == "" {
			t.Errorf("a pod whose data no node holds: %+v, want it bound", pod)
		}
		o.expectPending(t, "reads-two-zones", `had not all data that the pod reads within their "topology.kubernetes.io/zone"`)
	},
	"known-as.yaml": func(t *testing.T, o *outcome) {
		o.expectPending(t, "labelled", `denied by rule "labelled-pods" of PodFilter`)
		o.expectPending(t, "wants-the-labelled-node", `denied by rule "labelled-nodes" of NodeFilter`)
		o.expectBound(t, map[string]int{
			"default-scheduler": 10, "filtering": 10, "chaos-scheduler": 10, "custom-scheduler": 10, "target-load-packing": 10,
			"load-variation-risk-balancing": 10, "load-aware": 10,
		})
		disturbed := map[string]bool{}
		for _, event := range o.events {
			if event.reason == "Chaos" {
				disturbed[event.pod] = true
			}
		}
		for name := range disturbed {
			if scheduler := o.pods[name].scheduler; scheduler != "chaos-scheduler" {
				t.Errorf("pod %s of %s has an event of Chaos", name, scheduler)
			}
		}
		// Events are written after the binding, so the last of them can be missing.
		if len(disturbed) < 5 {
			t.Errorf("events of Chaos are about %d pods, want most of the 10 of chaos-scheduler", len(disturbed))
		}
	},
	"workload-topology.yaml": func(t *testing.T, o *outcome) {
		o.expectBound(t, map[string]int{"default-scheduler": 0, "streaming": 6})
		zones := map[int]bool{}
		for name, pod := range o.pods {
			var number int
			if _, err := fmt.Sscanf(pod.node, "node-%d", &number); err != nil {
				t.Errorf("pod %s: %+v", name, pod)
				continue
			}
			// `make run` assigns the zones to nodes in turn.
			zones[number%3] = true
			if n := o.onNode[pod.node]["streaming"]; n > 2 {
				t.Errorf("%s has %d pods of the job, want 2 at most", pod.node, n)
			}
		}
		if len(zones) != 1 {
			t.Errorf("the job is in %d zones, want one", len(zones))
		}
	},
	"gang.yaml": func(t *testing.T, o *outcome) {
		o.expectBound(t, map[string]int{"default-scheduler": 4})
		for _, name := range []string{"second-1", "second-2", "second-3"} {
			o.expectPending(t, name, "")
		}
	},
	"overcommit.yaml": func(t *testing.T, o *outcome) {
		o.expectBound(t, map[string]int{"default-scheduler": 10})
		o.expectPending(t, "batch", "5 node(s) had no recent measurement of CPU use")
	},
	"overcommit-requests.yaml": func(t *testing.T, o *outcome) {
		o.expectBound(t, map[string]int{"default-scheduler": 15})
		for node, pods := range o.onNode {
			if pods["default-scheduler"] != 3 {
				t.Errorf("%s has %v pods, want one of web and two of batch", node, pods)
			}
		}
		o.expectPending(t, "too-large", "5 node(s) had too little unused CPU")
		o.expectPending(t, "requests-cpu", "and requests CPU")
	},
	"quota.yaml": func(t *testing.T, o *outcome) {
		o.expectPending(t, "team-a/job-7", "")
		preempted := map[string]bool{}
		for _, event := range o.events {
			if event.reason == "Preempted" {
				preempted[event.pod] = true
				if !strings.HasPrefix(event.pod, "team-a/") {
					t.Errorf("%s is preempted, want only pods of the team that borrows", event.pod)
				}
			}
		}
		// Events are written after the pods are gone, so the last of them can be missing. On a busy machine a pod that is
		// retried while its victims are still terminating preempts again.
		if len(preempted) < 1 || len(preempted) > 4 {
			t.Errorf("%d pods of team-a are preempted, want 2, and at most 4", len(preempted))
		}
	},
	"numa.yaml": func(t *testing.T, o *outcome) {
		o.expect(t, "wants-3-cpus", "default-scheduler", "two-zones")
		o.expectPending(t, "wants-5-cpus", "cannot align pod")
	},
	"chaos.yaml": func(t *testing.T, o *outcome) {
		disturbed := 0
		for _, event := range o.events {
			if event.reason != "Chaos" {
				continue
			}
			disturbed++
			if !strings.HasPrefix(event.pod, "chaos/") {
				t.Errorf("event %+v, want only pods of the namespace chaos to have such", event)
			}
		}
		if disturbed == 0 {
			t.Error("no pod has an event of Chaos")
		}
	},
}

func TestEachConfigurationShowsItsEffectInTheTablesOfARun(t *testing.T) {
	files, err := filepath.Glob("manifests/config/*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	unused := maps.Clone(checks)
	for _, file := range files {
		name := filepath.Base(file)
		delete(unused, name)
		t.Run(strings.TrimSuffix(name, ".yaml"), func(t *testing.T) {
			check := checks[name]
			if check == nil {
				t.Fatalf("no check looks for the effect of %s; next: add it to checks", name)
			}
			commands, err := commandsIn(file, cluster.Read(t, file))
			if err != nil {
				t.Fatal(err)
			}
			for i, command := range commands {
				if command["CONFIG"] != file && command["EXTENDER"] != file {
					t.Fatalf("the command in its comment runs %s, with the extender's %s", command["CONFIG"], command["EXTENDER"])
				}
				t.Run(fmt.Sprintf("command %d", i+1), func(t *testing.T) { check(t, runWith(t, command)) })
			}
		})
	}
	for name := range unused {
		t.Errorf("%s is looked for, and not there", name)
	}
}

// The plugins, their weights and arguments are the same: as written by the
// scheduler itself, with the defaults of the two versions, which differ.
func TestBothVersionsOfAConfigurationEnableTheSamePlugins(t *testing.T) {
	older, newer := effective(t, "v1beta2.yaml"), effective(t, "v1beta3.yaml")
	if older.version == newer.version {
		t.Fatalf("both are %s", older.version)
	}
	if len(newer.plugins) < 20 || newer.weights["MyScorePlugin"] != 25 {
		t.Errorf("v1beta3: plugins %v, weights %v; want the default plugins and MyScorePlugin", newer.plugins, newer.weights)
	}
	if !reflect.DeepEqual(older.plugins, newer.plugins) {
		t.Errorf("v1beta2 enables %v\nv1beta3 enables %v", older.plugins, newer.plugins)
	}
	if !reflect.DeepEqual(older.weights, newer.weights) {
		t.Errorf("weights in v1beta2 are %v\nweights in v1beta3 are %v", older.weights, newer.weights)
	}
	if !reflect.DeepEqual(older.args, newer.args) {
		t.Errorf("arguments in v1beta2 are %v\narguments in v1beta3 are %v", older.args, newer.args)
	}
}

// A run cannot show a weight: an uneven distribution of pods can have
// many causes. So the weights are read from the scheduler's own output.
func TestWeightsAreThoseThatTheConfigurationGives(t *testing.T) {
	weights := effective(t, "weights.yaml")
	if weights.plugins["TaintToleration"] {
		t.Error("weights.yaml: TaintToleration is enabled somewhere, want it off everywhere")
	}
	for _, test := range []struct {
		file, plugin string
		want         int
	}{
		{"weights.yaml", "ImageLocality", 10},
		{"weights.yaml", "RandScore", 100},
		{"every-extension-point.yaml", "RandScore", 300},
	} {
		if got := effective(t, test.file).weights[test.plugin]; got != test.want {
			t.Errorf("%s: %s has weight %d, want %d", test.file, test.plugin, got, test.want)
		}
	}
	profiles := effectiveProfiles(t, "node-load-streaming.yaml")
	if streaming := profiles["streaming"].weights["NodeLoad"]; streaming != 50 || profiles["default-scheduler"].plugins["NodeLoad"] {
		t.Errorf("node-load-streaming.yaml: NodeLoad has weight %d in streaming, want 50; and it is in default-scheduler: %v, want not",
			streaming, profiles["default-scheduler"].plugins["NodeLoad"])
	}
}

// effect is the effective configuration of a profile.
type effect struct {
	version string
	plugins map[string]bool
	// weights are those of the plugins that score.
	weights map[string]int
	// args have no version.
	args map[string]map[string]any
}

type pluginSet struct {
	Enabled []struct {
		Name   string
		Weight int
	}
	Disabled []struct{ Name string }
}

// effective returns the effective configuration that the scheduler writes, for a configuration with one profile.
func effective(t *testing.T, name string) effect {
	t.Helper()
	profiles := effectiveProfiles(t, name)
	if len(profiles) != 1 {
		t.Fatalf("%s has %d profiles, want one", name, len(profiles))
	}
	var only effect
	for _, only = range profiles {
	}
	return only
}

// effectiveProfiles returns the effective configurations of all profiles, by name.
func effectiveProfiles(t *testing.T, name string) map[string]effect {
	t.Helper()
	folder := t.TempDir()
	kubeconfig, config, written := folder+"/kubeconfig", folder+"/config.yaml", folder+"/written.yaml"
	cluster.Write(t, kubeconfig, "apiVersion: v1\nkind: Config\ncurrent-context: none\n"+
		"clusters: [{name: none, cluster: {server: 'https://127.0.0.1:1'}}]\ncontexts: [{name: none, context: {cluster: none}}]\n")
	// The scheduler needs a cluster's address, but does not connect to it.
	cluster.Write(t, config, strings.ReplaceAll(
		cluster.Read(t, "manifests/config/"+name), "/etc/kubernetes/scheduler.conf", kubeconfig))
	// Without the last flag it would listen before it writes, on a port that may be in use.
	output, err := exec.CommandContext(t.Context(), cluster.Program(t, "KUBE_SCHEDULER"),
		"--config="+config, "--write-config-to="+written, "--secure-port=0").CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, output)
	}
	var read struct {
		APIVersion string
		Profiles   []struct {
			SchedulerName string
			Plugins       map[string]pluginSet
			PluginConfig  []struct {
				Name string
				Args map[string]any
			}
		}
	}
	if err := yaml.Unmarshal([]byte(cluster.Read(t, written)), &read); err != nil {
		t.Fatal(err)
	}
	profiles := map[string]effect{}
	for _, profile := range read.Profiles {
		e := effect{version: read.APIVersion, plugins: map[string]bool{}, weights: map[string]int{}, args: map[string]map[string]any{}}
		for _, set := range profile.Plugins {
			for _, plugin := range set.Enabled {
				e.plugins[plugin.Name] = true
				if plugin.Weight > 0 {
					e.weights[plugin.Name] = plugin.Weight
				}
			}
		}
		// A plugin that multiPoint enables may be disabled at score.
		for _, plugin := range profile.Plugins["score"].Disabled {
			delete(e.weights, plugin.Name)
		}
		for _, config := range profile.PluginConfig {
			delete(config.Args, "apiVersion")
			e.args[config.Name] = config.Args
		}
		profiles[profile.SchedulerName] = e
	}
	return profiles
}

// SPDX-License-Identifier: Apache-2.0

package loadtrace

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/nodeload"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/workloadtopology"
	frameworkruntime "k8s.io/kubernetes/pkg/scheduler/framework/runtime"
)

// way is a way of scheduling.
type way struct {
	name string
	// measures reports whether it queries Prometheus.
	measures bool
	// refreshes reports whether it queries periodically instead of for each pod.
	refreshes bool
	config    func(url string) string
	// plugins are plugins that are not compiled into the scheduler.
	plugins func(*testing.T, *prometheus) frameworkruntime.Registry
	// change is the change that authors of pods make for it.
	change func(*corev1.Pod)
}

// The compared ways. Those with measurements have the default plugins in addition, and the same weight.
var (
	byDefault = way{name: "default"}
	byNaive   = way{
		name: "naive", measures: true,
		config: func(string) string { return profile(naiveName, "") },
		plugins: func(_ *testing.T, p *prometheus) frameworkruntime.Registry {
			return frameworkruntime.Registry{naiveName: newNaive(p.api)}
		},
	}
	byNodeLoad = way{
		name: "NodeLoad", measures: true, refreshes: true,
		config: func(url string) string {
			return profile(nodeload.Name, fmt.Sprintf(`
  pluginConfig:
  - name: NodeLoad
    args:
      prometheus: {endpoints: ["%s"]}
      refreshInterval: 1s
      maxSampleAge: 15s
      resources: [{name: cpu, window: %s, threshold: 80}]
`, url, window))
		},
		plugins: func(*testing.T, *prometheus) frameworkruntime.Registry {
			return frameworkruntime.Registry{nodeload.Name: nodeload.Factory()}
		},
	}
)

// byAffinity makes each pod prefer the zone of its job, and with less weight its node.
var byAffinity = way{
	name:   "preferred pod affinity",
	config: func(string) string { return profile("InterPodAffinity", "") },
	change: func(pod *corev1.Pod) {
		term := func(weight int32, key string) corev1.WeightedPodAffinityTerm {
			return corev1.WeightedPodAffinityTerm{Weight: weight, PodAffinityTerm: corev1.PodAffinityTerm{
				LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": pod.Labels["app"]}}, TopologyKey: key,
			}}
		}
		pod.Spec.Affinity = &corev1.Affinity{PodAffinity: &corev1.PodAffinity{
			PreferredDuringSchedulingIgnoredDuringExecution: []corev1.WeightedPodAffinityTerm{
				term(100, corev1.LabelTopologyZone), term(20, corev1.LabelHostname),
			},
		}}
	},
}

// byTopology is WorkloadTopology with NodeLoad, with the arguments and weights of
// manifests/config/workload-topology.yaml, for all pods; NodeLoad's times are those of the trace.
var byTopology = way{
	name: "WorkloadTopology and NodeLoad", measures: true, refreshes: true,
	config: func(url string) string {
		return fmt.Sprintf(`apiVersion: kubescheduler.config.k8s.io/v1beta3
kind: KubeSchedulerConfiguration
profiles:
- plugins: {multiPoint: {enabled: [{name: NodeLoad, weight: 10}, {name: WorkloadTopology, weight: 50}]}}
  pluginConfig:
  - name: WorkloadTopology
    args:
      podSelector: {}
      groupBy: [app]
      edges:
      - {from: {matchLabels: {component: taskmanager}}, to: {matchLabels: {component: taskmanager}}, weight: 10}
      - {from: {matchLabels: {component: jobmanager}}, to: {matchLabels: {component: taskmanager}}, weight: 1}
      maxPerNode: 2
      spreadWeight: 30
      avoidAbove: 75
  - name: NodeLoad
    args:
      prometheus: {endpoints: ["%s"]}
      refreshInterval: 1s
      maxSampleAge: 15s
      resources: [{name: cpu, window: %s, threshold: 85}]
`, url, window)
	},
	plugins: func(*testing.T, *prometheus) frameworkruntime.Registry {
		return frameworkruntime.Registry{nodeload.Name: nodeload.Factory(), workloadtopology.Name: workloadtopology.New}
	},
}

// others are ways of other projects, which are compared if they are compiled in. Their figures are not checked.
var others []way

// profile returns a scheduler's configuration with the default plugins and one more.
func profile(plugin, pluginConfig string) string {
	return fmt.Sprintf(`apiVersion: kubescheduler.config.k8s.io/v1beta3
kind: KubeSchedulerConfiguration
profiles:
- plugins: {multiPoint: {enabled: [{name: %s, weight: 10}]}}%s
`, plugin, pluginConfig)
}

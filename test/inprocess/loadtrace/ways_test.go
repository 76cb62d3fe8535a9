// SPDX-License-Identifier: Apache-2.0

package loadtrace

import (
	"fmt"
	"testing"

	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/nodeload"
	frameworkruntime "k8s.io/kubernetes/pkg/scheduler/framework/runtime"
)

// way is a way of scheduling.
type way struct {
	name string
	// measures says that it asks Prometheus.
	measures bool
	// refreshes says that it asks by itself, again and again, and not when a pod comes.
	refreshes bool
	config    func(url string) string
	// plugins are those that the scheduler is not compiled with.
	plugins func(*testing.T, *prometheus) frameworkruntime.Registry
}

// The ways that are compared. Those that look at measurements have the default plugins beside them, and the same
// weight.
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

// others are ways of other projects, which are compared where they are compiled in. Nothing is expected of them.
var others []way

// profile is a scheduler's configuration of the default plugins and one more.
func profile(plugin, pluginConfig string) string {
	return fmt.Sprintf(`apiVersion: kubescheduler.config.k8s.io/v1beta3
kind: KubeSchedulerConfiguration
profiles:
- plugins: {multiPoint: {enabled: [{name: %s, weight: 10}]}}%s
`, plugin, pluginConfig)
}

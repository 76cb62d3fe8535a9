// SPDX-License-Identifier: Apache-2.0

package v1beta3_test

import (
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	schedulerconfig "k8s.io/kubernetes/pkg/scheduler/apis/config"
	schedulerv1beta2 "k8s.io/kubernetes/pkg/scheduler/apis/config/v1beta2"
	schedulerv1beta3 "k8s.io/kubernetes/pkg/scheduler/apis/config/v1beta3"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/apis/config/validation"
	"k8s.io/utils/pointer"
)

// defaults are the args of each kind when no field is given.
var defaults = map[string]runtime.Object{
	"ChaosArgs": &config.ChaosArgs{MaxConsecutiveRejections: 3},
	"CoschedulingArgs": &config.CoschedulingArgs{
		PermitWaitingTimeSeconds: 60, AttemptTimeout: metav1.Duration{Duration: time.Second},
	},
	"DataLocalityArgs": &config.DataLocalityArgs{
		DatasetsAnnotation: "data-locality.scheduler/datasets", NodeAnnotation: "data-locality.scheduler/datasets",
		Levels: []config.DataLocalityLevel{{TopologyKey: v1.LabelHostname, Percent: 100}, {TopologyKey: v1.LabelTopologyZone, Percent: 50}},
	},
	"ExtensionPointLoggerArgs": &config.ExtensionPointLoggerArgs{SampleRate: 1},
	"MyScorePluginArgs":        &config.MyScorePluginArgs{NodeLabel: "disktype", PreferredValues: []string{"ssd"}},
	"NodeCostArgs": &config.NodeCostArgs{
		PriceAnnotation: "node-cost.scheduler/price-per-hour", InstanceTypeLabel: "node.kubernetes.io/instance-type",
		ZoneLabel: "topology.kubernetes.io/zone", Strategy: config.NodeCostCheapestShare,
	},
	"NodeFilterArgs": &config.NodeFilterArgs{DefaultAction: config.FilterAllow},
	"NodeLoadArgs": &config.NodeLoadArgs{
		Source:          config.NodeLoadSourcePrometheus,
		Prometheus:      config.NodeLoadPrometheus{Timeout: metav1.Duration{Duration: 10 * time.Second}},
		RefreshInterval: metav1.Duration{Duration: 30 * time.Second},
		MaxSampleAge:    metav1.Duration{Duration: 3 * time.Minute},
		NodeMatch:       config.NodeLoadNodeMatch{Label: "instance", By: config.NodeLoadMatchAuto},
		Resources: []config.NodeLoadResource{
			defaultResource("cpu", config.NodeLoadEstimator{Resource: v1.ResourceCPU, Factor: 85, Default: resource.MustParse("250m")}),
			defaultResource("memory", config.NodeLoadEstimator{Resource: v1.ResourceMemory, Factor: 70, Default: resource.MustParse("200M")}),
		},
		Fallback: config.NodeLoadFallbackRequests, FilterOnStale: config.NodeLoadFilterOpen, MinFreshNodesPercent: 50, ExemptDaemonSets: true,
		ExemptPriorityAbove: pointer.Int32(1999999999), LowerPriorityLoad: config.NodeLoadLowerPriorityCounts,
	},
	"OvercommitArgs": &config.OvercommitArgs{
		Prometheus:      config.NodeLoadPrometheus{Timeout: metav1.Duration{Duration: 10 * time.Second}},
		RefreshInterval: metav1.Duration{Duration: time.Minute},
		MaxSampleAge:    metav1.Duration{Duration: 3 * time.Minute},
		NodeMatch:       config.NodeLoadNodeMatch{Label: "instance", By: config.NodeLoadMatchAuto},
		Horizon:         metav1.Duration{Duration: time.Hour}, Predictor: config.OvercommitMaximum, Sigmas: 3, Percentile: 95, HeadroomPercent: 10,
	},
	"PodFilterArgs":            &config.PodFilterArgs{DefaultAction: config.FilterAllow},
	"RandScoreArgs":            &config.RandScoreArgs{},
	"RunningImageLocalityArgs": &config.RunningImageLocalityArgs{Count: config.CountImages, SpreadWeight: 100},
	"WorkloadTopologyArgs": &config.WorkloadTopologyArgs{
		Levels: []config.WorkloadTopologyLevel{
			{TopologyKey: v1.LabelHostname, Cost: 0}, {TopologyKey: v1.LabelTopologyZone, Cost: 10}, {TopologyKey: v1.LabelTopologyRegion, Cost: 50},
		},
		Edges: []config.WorkloadTopologyEdge{{Weight: 1}},
	},
}

// defaultResource returns a resource of NodeLoad of which only the name is given.
func defaultResource(name string, estimator config.NodeLoadEstimator) config.NodeLoadResource {
	estimator.By = config.NodeLoadEstimateRequests
	return config.NodeLoadResource{
		Name: name, Unit: config.NodeLoadRatio, Window: metav1.Duration{Duration: 5 * time.Minute}, Weight: 1, Strategy: config.NodeLoadLeastUsed,
		Target: 40, Margin: 1, Sensitivity: 1, Estimator: estimator,
	}
}

// TestDefaults converts in the schemes that the scheduler itself uses for plugin args, one for each version.
func TestDefaults(t *testing.T) {
	for version, scheme := range map[schema.GroupVersion]*runtime.Scheme{
		schedulerv1beta2.SchemeGroupVersion: schedulerv1beta2.GetPluginArgConversionScheme(),
		schedulerv1beta3.SchemeGroupVersion: schedulerv1beta3.GetPluginArgConversionScheme(),
	} {
		for kind, want := range defaults {
			t.Run(version.Version+" "+kind, func(t *testing.T) {
				given, err := scheme.New(version.WithKind(kind))
				if err != nil {
					t.Fatal(err)
				}
				scheme.Default(given)
				internal, err := scheme.ConvertToVersion(given, schedulerconfig.SchemeGroupVersion)
				if err != nil {
					t.Fatal(err)
				}
				internal.GetObjectKind().SetGroupVersionKind(schema.GroupVersionKind{})
				if !equality.Semantic.DeepEqual(internal, want) {
					t.Errorf("got %+v, want %+v", internal, want)
				}
				back, err := scheme.ConvertToVersion(internal, version)
				if err != nil {
					t.Fatal(err)
				}
				back.GetObjectKind().SetGroupVersionKind(schema.GroupVersionKind{})
				if !equality.Semantic.DeepEqual(back, given) {
					t.Errorf("converted there and back: got %+v, want %+v", back, given)
				}
			})
		}
	}
}

// TestDefaultsOfEveryPlugin fails when a plugin's args are not in the table of this package.
func TestDefaultsOfEveryPlugin(t *testing.T) {
	plugins := validation.Functions()
	if len(plugins) != len(defaults) {
		t.Errorf("%d plugins have validators, and %d kinds of args are tested here", len(plugins), len(defaults))
	}
	for plugin := range plugins {
		if defaults[plugin+"Args"] == nil {
			t.Errorf("the args of %s are not tested here", plugin)
		}
	}
}

// decodeNodeLoad returns the args of NodeLoad that are written in YAML.
func decodeNodeLoad(t *testing.T, args string) *config.NodeLoadArgs {
	t.Helper()
	return decode(t, schedulerv1beta3.SchemeGroupVersion, "NodeLoad", args).(*config.NodeLoadArgs)
}

func TestDefaultsOfNodeLoadNodeMatch(t *testing.T) {
	for given, want := range map[string]config.NodeLoadNodeMatch{
		"{}":                          {Label: "node", By: config.NodeLoadMatchHostname},
		"{label: Hostname}":           {Label: "Hostname", By: config.NodeLoadMatchHostname},
		"{by: Name}":                  {Label: "node", By: config.NodeLoadMatchName},
		"{label: Hostname, by: Auto}": {Label: "Hostname", By: config.NodeLoadMatchAuto},
	} {
		args := decodeNodeLoad(t, "{nodeMatch: {label: node, by: Hostname}, resources: [{name: gpu, nodeMatch: "+given+"}, {name: cpu}]}")
		if got := args.Resources[0].NodeMatch; got == nil || *got != want {
			t.Errorf("%s: nodeMatch is %v, want %v", given, got, want)
		}
		if got := args.Resources[1].NodeMatch; got != nil {
			t.Errorf("nodeMatch of a resource without one is %v", got)
		}
	}
}

// TestDefaultsOfNodeLoadMetricsServer is about a source that reports cores and bytes, as means over seconds.
func TestDefaultsOfNodeLoadMetricsServer(t *testing.T) {
	args := decodeNodeLoad(t, "{source: MetricsServer, resources: [{name: cpu}, {name: memory, unit: Ratio, window: 2m}]}")
	for i, want := range []struct {
		unit   config.NodeLoadUnit
		window time.Duration
	}{{config.NodeLoadAbsolute, time.Minute}, {config.NodeLoadRatio, 2 * time.Minute}} {
		if got := args.Resources[i]; got.Unit != want.unit || got.Window.Duration != want.window {
			t.Errorf("%s is measured in %s over %v, want %v", got.Name, got.Unit, got.Window.Duration, want)
		}
	}
}

// TestDefaultsOfNodeLoadResources is about defaults that depend on a resource's name or on its other fields.
func TestDefaultsOfNodeLoadResources(t *testing.T) {
	one := resource.MustParse("1")
	diskIO := defaultResource("diskIO", config.NodeLoadEstimator{Factor: 100})
	diskIO.Capacity = &one
	bytes := defaultResource("diskIO", config.NodeLoadEstimator{Factor: 100})
	bytes.Unit = config.NodeLoadAbsolute
	for given, want := range map[string]config.NodeLoadResource{
		"{name: cpu}":                             defaultResource("cpu", config.NodeLoadEstimator{Resource: v1.ResourceCPU, Factor: 85, Default: resource.MustParse("250m")}),
		"{name: memory}":                          defaultResource("memory", config.NodeLoadEstimator{Resource: v1.ResourceMemory, Factor: 70, Default: resource.MustParse("200M")}),
		"{name: network}":                         defaultResource("network", config.NodeLoadEstimator{Factor: 100}),
		"{name: diskIO}":                          diskIO,
		"{name: diskIO, unit: Absolute}":          bytes,
		"{name: gpu}":                             defaultResource("gpu", config.NodeLoadEstimator{Resource: "nvidia.com/gpu", Factor: 100}),
		"{name: power}":                           defaultResource("power", config.NodeLoadEstimator{Factor: 100}),
		"{name: gpu, estimator: {resource: cpu}}": defaultResource("gpu", config.NodeLoadEstimator{Resource: v1.ResourceCPU, Factor: 85, Default: resource.MustParse("250m")}),
		"{name: cpu, estimator: {resource: a/b}}": defaultResource("cpu", config.NodeLoadEstimator{Resource: "a/b", Factor: 100}),
	} {
		t.Run(given, func(t *testing.T) {
			args := decodeNodeLoad(t, "{resources: ["+given+"]}")
			if !equality.Semantic.DeepEqual(args.Resources, []config.NodeLoadResource{want}) {
				t.Errorf("got %+v, want %+v", args.Resources, want)
			}
		})
	}
	// Validation refuses an empty list.
	if args := decodeNodeLoad(t, "{resources: []}"); len(args.Resources) != 0 {
		t.Errorf("an empty list became %+v", args.Resources)
	}
}

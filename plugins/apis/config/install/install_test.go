// SPDX-License-Identifier: Apache-2.0

package install_test

import (
	"encoding/json"
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
	_ "k8s.io/kubernetes/pkg/scheduler/framework/plugins/apis/config/install"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/apis/config/validation"
	"k8s.io/utils/pointer"
	"sigs.k8s.io/yaml"
)

// defaults are the args of each kind when nothing is given.
var defaults = map[string]runtime.Object{
	"ChaosArgs": &config.ChaosArgs{MaxConsecutiveRejections: 3},
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
		ExemptPriorityAbove: pointer.Int32(1999999999),
	},
	"PodFilterArgs":            &config.PodFilterArgs{DefaultAction: config.FilterAllow},
	"RandScoreArgs":            &config.RandScoreArgs{},
	"RunningImageLocalityArgs": &config.RunningImageLocalityArgs{Count: config.CountImages, SpreadWeight: 100},
	"WorkloadTopologyArgs": &config.WorkloadTopologyArgs{
		GroupBy: []string{"app"},
		Levels: []config.WorkloadTopologyLevel{
			{TopologyKey: v1.LabelHostname, Cost: 0}, {TopologyKey: v1.LabelTopologyZone, Cost: 10}, {TopologyKey: v1.LabelTopologyRegion, Cost: 50},
		},
		Edges:           []config.WorkloadTopologyEdge{{Weight: 1, Scope: config.WorkloadTopologyGroup}},
		PeersAnnotation: "workload-topology.scheduler/peers", RoleLabel: "component",
	},
}

// defaultResource is what a resource of NodeLoad is when nothing but its name is given.
func defaultResource(name string, estimator config.NodeLoadEstimator) config.NodeLoadResource {
	estimator.By = config.NodeLoadEstimateRequests
	return config.NodeLoadResource{
		Name: name, Unit: config.NodeLoadRatio, Window: metav1.Duration{Duration: 5 * time.Minute}, Weight: 1, Strategy: config.NodeLoadLeastUsed,
		Target: 40, Margin: 1, Sensitivity: 1, Estimator: estimator,
	}
}

// schemes are the very ones in which the scheduler converts plugin args.
func schemes() map[schema.GroupVersion]*runtime.Scheme {
	return map[schema.GroupVersion]*runtime.Scheme{
		schedulerv1beta2.SchemeGroupVersion: schedulerv1beta2.GetPluginArgConversionScheme(),
		schedulerv1beta3.SchemeGroupVersion: schedulerv1beta3.GetPluginArgConversionScheme(),
	}
}

// read decodes args of a version and fills in their defaults.
func read(t *testing.T, scheme *runtime.Scheme, version schema.GroupVersion, kind string, text []byte) runtime.Object {
	t.Helper()
	given, err := scheme.New(version.WithKind(kind))
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, given); err != nil {
		t.Fatal(err)
	}
	scheme.Default(given)
	internal, err := scheme.ConvertToVersion(given, schedulerconfig.SchemeGroupVersion)
	if err != nil {
		t.Fatal(err)
	}
	internal.GetObjectKind().SetGroupVersionKind(schema.GroupVersionKind{})
	return internal
}

// TestArgsAreKnownDefaultedAndConverted is about args of which nothing is given.
func TestArgsAreKnownDefaultedAndConverted(t *testing.T) {
	for version, scheme := range schemes() {
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
					t.Errorf("the defaults of %s are %+v, want %+v", kind, internal, want)
				}
				back, err := scheme.ConvertToVersion(internal, version)
				if err != nil {
					t.Fatal(err)
				}
				back.GetObjectKind().SetGroupVersionKind(schema.GroupVersionKind{})
				if !equality.Semantic.DeepEqual(back, given) {
					t.Errorf("converted there and back: %+v, want %+v", back, given)
				}
			})
		}
	}
}

// TestEveryKindIsInTheTable keeps a kind from being registered and left out of the tests of this package.
func TestEveryKindIsInTheTable(t *testing.T) {
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

// TestGivenArgsAreKept writes every field of every kind with a value that is not its default, and reads it back.
func TestGivenArgsAreKept(t *testing.T) {
	selector := &metav1.LabelSelector{MatchLabels: map[string]string{"team": "a"}}
	capacity := resource.MustParse("1500m")
	given := map[string]runtime.Object{
		"ChaosArgs": &config.ChaosArgs{
			Namespaces: []string{"test"}, Seed: -1, DryRun: true, RejectPercent: 1, MaxConsecutiveRejections: 2, RandomScore: true,
			MaxPermitDelay: metav1.Duration{Duration: time.Second}, RandomBindPercent: 3,
		},
		"DataLocalityArgs": &config.DataLocalityArgs{
			DatasetsAnnotation: "a", NodeAnnotation: "b", NodeLabelPrefix: "c-",
			Servers:       []config.DataLocalityServer{{Namespaces: []string{"d"}, Selector: selector, DatasetLabel: "e"}},
			Levels:        []config.DataLocalityLevel{{TopologyKey: "f", Percent: 3}, {TopologyKey: "g"}},
			RequireWithin: "g",
		},
		"ExtensionPointLoggerArgs": &config.ExtensionPointLoggerArgs{SampleRate: 0.5, Namespaces: []string{"test"}, Redact: true, QueueSort: true},
		"MyScorePluginArgs":        &config.MyScorePluginArgs{NodeLabel: "zone", PreferredValues: []string{"a", "b"}},
		// An annotation that is given as none is not the default.
		"NodeCostArgs": &config.NodeCostArgs{
			PriceLabel: "price", InstanceTypeLabel: "type", ZoneLabel: "zone", CapacityTypeLabel: "capacity", Strategy: config.NodeCostCheapestNode,
			Prices: []config.NodeCostPrice{{InstanceType: "large", Zone: "a", CapacityType: "spot", PricePerHour: &capacity}},
			Spot:   &config.NodeCostSpot{CapacityTypes: []string{"spot"}, TolerationKey: "example.com/spot"},
		},
		"NodeFilterArgs": &config.NodeFilterArgs{
			DefaultAction: config.FilterDeny,
			Rules: []config.NodeFilterRule{
				{
					Name: "rule", Action: config.FilterAllow, NodeNames: []string{"n*"}, NodeSelector: selector, Namespaces: []string{"t?"}, PodSelector: selector,
				},
				{Name: "prefer", Action: config.FilterPrefer, NodeSelector: selector, Weight: 7},
				// A zero that is given is a bound.
				{Name: "share", Action: config.FilterShare, NodeSelector: selector, MinPercent: pointer.Int32(0), MaxPercent: pointer.Int32(30), RestrictedLabels: true},
			},
		},
		"NodeLoadArgs": &config.NodeLoadArgs{
			Source: config.NodeLoadSourceMetricsServer,
			Prometheus: config.NodeLoadPrometheus{
				Endpoints: []string{"https://a.example.com", "https://b.example.com/prefix"}, Timeout: metav1.Duration{Duration: time.Second},
				TLS:             config.NodeLoadTLS{CAFile: "/ca", CertFile: "/cert", KeyFile: "/key", ServerName: "name", InsecureSkipVerify: true},
				BearerTokenFile: "/token",
				Headers:         []config.NodeLoadHeader{{Name: "X-Tenant", Value: "team"}, {Name: "X-Key", ValueFile: "/value"}},
			},
			RefreshInterval: metav1.Duration{Duration: 5 * time.Second}, MaxSampleAge: metav1.Duration{Duration: time.Minute},
			NodeMatch: config.NodeLoadNodeMatch{Label: "node", By: config.NodeLoadMatchProviderID},
			Resources: []config.NodeLoadResource{
				{
					Name: "cpu", Query: "a", TimestampQuery: "b", DeviationQuery: "c", Unit: config.NodeLoadAbsolute, Capacity: &capacity,
					NodeMatch: &config.NodeLoadNodeMatch{Label: "Hostname", By: config.NodeLoadMatchName},
					Window:    metav1.Duration{Duration: time.Minute}, Threshold: pointer.Int32(80), Weight: 3, Strategy: config.NodeLoadRisk, Target: 50,
					Margin: 0.5, Sensitivity: 2,
					Estimator: config.NodeLoadEstimator{Resource: "example.com/cpu", By: config.NodeLoadEstimateLimits, Factor: 90, Default: resource.MustParse("1"), Annotation: "example.com/use"},
				},
				// A zero that is given is not the default.
				{
					Name: "memory", Unit: config.NodeLoadRatio, Window: metav1.Duration{Duration: time.Minute}, Strategy: config.NodeLoadLeastUsed, Target: 50,
					Sensitivity: 2, Estimator: config.NodeLoadEstimator{Resource: v1.ResourceMemory, By: config.NodeLoadEstimateRequests, Factor: 1},
				},
			},
			Fallback: config.NodeLoadFallbackNeutral, FilterOnStale: config.NodeLoadFilterClosed, ExemptPriorityAbove: pointer.Int32(-1),
		},
		"PodFilterArgs": &config.PodFilterArgs{
			DefaultAction: config.FilterDeny,
			Rules: []config.PodFilterRule{{
				Name: "rule", Action: config.FilterAllow, PodNames: []string{"p*"}, Namespaces: []string{"t?"}, PodSelector: selector,
			}},
		},
		"RandScoreArgs":            &config.RandScoreArgs{Seed: 1 << 62},
		"RunningImageLocalityArgs": &config.RunningImageLocalityArgs{Count: config.CountContainers, SizeWeight: 1, SpreadWeight: 2},
		"WorkloadTopologyArgs": &config.WorkloadTopologyArgs{
			GroupBy: []string{"team", "job"},
			Levels:  []config.WorkloadTopologyLevel{{TopologyKey: "rack", Cost: 3}},
			Edges: []config.WorkloadTopologyEdge{
				{From: selector, To: selector, Weight: 0, Scope: config.WorkloadTopologyCluster, Within: "rack"},
			},
			RoleLabel: "role", MaxPerNode: pointer.Int32(2), SpreadWeight: 30, AvoidAbove: pointer.Int32(80),
		},
	}
	for version, scheme := range schemes() {
		for kind := range defaults {
			t.Run(version.Version+" "+kind, func(t *testing.T) {
				want := given[kind]
				if want == nil {
					t.Fatal("no example")
				}
				versioned, err := scheme.ConvertToVersion(want, version)
				if err != nil {
					t.Fatal(err)
				}
				text, err := json.Marshal(versioned)
				if err != nil {
					t.Fatal(err)
				}
				got := read(t, scheme, version, kind, text)
				if !equality.Semantic.DeepEqual(got, want) {
					t.Errorf("%s came back as %+v, want %+v", text, got, want)
				}
			})
		}
	}
}

// TestDefaultsOfANodeMatchOfAResource are those of the args.
func TestDefaultsOfANodeMatchOfAResource(t *testing.T) {
	for version, scheme := range schemes() {
		for given, want := range map[string]config.NodeLoadNodeMatch{
			"{}":                          {Label: "node", By: config.NodeLoadMatchHostname},
			"{label: Hostname}":           {Label: "Hostname", By: config.NodeLoadMatchHostname},
			"{by: Name}":                  {Label: "node", By: config.NodeLoadMatchName},
			"{label: Hostname, by: Auto}": {Label: "Hostname", By: config.NodeLoadMatchAuto},
		} {
			text, err := yaml.YAMLToJSON([]byte("{nodeMatch: {label: node, by: Hostname}, resources: [{name: gpu, nodeMatch: " + given + "}, {name: cpu}]}"))
			if err != nil {
				t.Fatal(err)
			}
			args := read(t, scheme, version, "NodeLoadArgs", text).(*config.NodeLoadArgs)
			if got := args.Resources[0].NodeMatch; got == nil || *got != want {
				t.Errorf("%s %s: nodeMatch is %v, want %v", version.Version, given, got, want)
			}
			if got := args.Resources[1].NodeMatch; got != nil {
				t.Errorf("%s: a resource without a nodeMatch has got %v", version.Version, got)
			}
		}
	}
}

// TestDefaultsOfMetricsServer: it reports cores and bytes, as means over seconds.
func TestDefaultsOfMetricsServer(t *testing.T) {
	for version, scheme := range schemes() {
		text, err := yaml.YAMLToJSON([]byte("{source: MetricsServer, resources: [{name: cpu}, {name: memory, unit: Ratio, window: 2m}]}"))
		if err != nil {
			t.Fatal(err)
		}
		args := read(t, scheme, version, "NodeLoadArgs", text).(*config.NodeLoadArgs)
		for i, want := range []struct {
			unit   config.NodeLoadUnit
			window time.Duration
		}{{config.NodeLoadAbsolute, time.Minute}, {config.NodeLoadRatio, 2 * time.Minute}} {
			if got := args.Resources[i]; got.Unit != want.unit || got.Window.Duration != want.window {
				t.Errorf("%s: %s is measured in %s over %v, want %v", version.Version, got.Name, got.Unit, got.Window.Duration, want)
			}
		}
	}
}

// TestDefaultsOfResourcesThatAreMeasured is about what depends on a resource's name, or on what else is given of it.
func TestDefaultsOfResourcesThatAreMeasured(t *testing.T) {
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
		for version, scheme := range schemes() {
			t.Run(version.Version+" "+given, func(t *testing.T) {
				text, err := yaml.YAMLToJSON([]byte("{resources: [" + given + "]}"))
				if err != nil {
					t.Fatal(err)
				}
				args := read(t, scheme, version, "NodeLoadArgs", text).(*config.NodeLoadArgs)
				if !equality.Semantic.DeepEqual(args.Resources, []config.NodeLoadResource{want}) {
					t.Errorf("got %+v, want %+v", args.Resources, want)
				}
			})
		}
	}
}

// TestNoResourcesAreNotTheDefault leaves it to validation to say that there must be some.
func TestNoResourcesAreNotTheDefault(t *testing.T) {
	for version, scheme := range schemes() {
		args := read(t, scheme, version, "NodeLoadArgs", []byte(`{"resources": []}`)).(*config.NodeLoadArgs)
		if len(args.Resources) != 0 {
			t.Errorf("%s: an empty list became %+v", version.Version, args.Resources)
		}
	}
}

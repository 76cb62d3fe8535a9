// SPDX-License-Identifier: Apache-2.0

package v1beta3_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	schedulerconfig "k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/apis/config/scheme"
	schedulerv1beta2 "k8s.io/kubernetes/pkg/scheduler/apis/config/v1beta2"
	schedulerv1beta3 "k8s.io/kubernetes/pkg/scheduler/apis/config/v1beta3"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/apis/config"
	"k8s.io/utils/pointer"
)

var versions = []schema.GroupVersion{schedulerv1beta2.SchemeGroupVersion, schedulerv1beta3.SchemeGroupVersion}

// codecs returns the scheduler's own codecs. Pristine upstream's were made before the plugins' args joined its scheme.
func codecs() serializer.CodecFactory {
	known := runtime.NewScheme()
	scheme.AddToScheme(known)
	return serializer.NewCodecFactory(known, serializer.EnableStrict)
}

// decodeFile decodes a configuration with the args of one plugin, given in YAML, as the scheduler does.
func decodeFile(version schema.GroupVersion, plugin, args string) (*schedulerconfig.KubeSchedulerConfiguration, error) {
	file := fmt.Sprintf("apiVersion: %s\nkind: KubeSchedulerConfiguration\nprofiles: [{pluginConfig: [{name: %s, args: %s}]}]\n",
		version, plugin, args)
	object, _, err := codecs().UniversalDecoder().Decode([]byte(file), nil, nil)
	if err != nil {
		return nil, err
	}
	return object.(*schedulerconfig.KubeSchedulerConfiguration), nil
}

// decode returns the args of a plugin that are given in YAML.
func decode(t *testing.T, version schema.GroupVersion, plugin, args string) runtime.Object {
	t.Helper()
	file, err := decodeFile(version, plugin, args)
	if err != nil {
		t.Fatal(err)
	}
	return file.Profiles[0].PluginConfig[0].Args
}

// TestDecodingIsStrict is about a field that the args do not have.
func TestDecodingIsStrict(t *testing.T) {
	for _, version := range versions {
		for kind := range defaults {
			_, err := decodeFile(version, strings.TrimSuffix(kind, "Args"), "{fieldOfNoPlugin: 1}")
			if err == nil || !strings.Contains(err.Error(), "fieldOfNoPlugin") {
				t.Errorf("%s %s: got %v, want an error about the unknown field", version, kind, err)
			}
		}
	}
}

// TestEncodingKeepsArgs writes a configuration in which every field of every kind has a value that is not its default,
// as --write-config-to does, and reads it back.
func TestEncodingKeepsArgs(t *testing.T) {
	selector := &metav1.LabelSelector{MatchLabels: map[string]string{"team": "a"}}
	capacity := resource.MustParse("1500m")
	given := map[string]runtime.Object{
		"ChaosArgs": &config.ChaosArgs{
			Namespaces: []string{"test"}, Seed: -1, RejectPercent: 1, MaxConsecutiveRejections: 2, RandomScore: true,
			RandomBindPercent: 3,
		},
		"CoschedulingArgs": &config.CoschedulingArgs{
			PermitWaitingTimeSeconds: 1, DeniedPGExpirationTimeSeconds: pointer.Int64(2), RequiredTopologyKey: "zone", PreferredTopologyKey: "rack",
			AttemptTimeout: metav1.Duration{Duration: 3 * time.Second}, Reservation: metav1.Duration{Duration: 4 * time.Second},
			GiveUpHalfGangsAfter: metav1.Duration{Duration: 5 * time.Second},
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
				{
					Name: "share", Action: config.FilterShare, NodeSelector: selector, MinPercent: pointer.Int32(0), MaxPercent: pointer.Int32(30),
					WhenUnsatisfiable: v1.DoNotSchedule, RestrictedLabels: true,
				},
			},
		},
		"NodeLoadArgs": &config.NodeLoadArgs{
			Source: config.NodeLoadSourceMetricsServer,
			Prometheus: config.NodeLoadPrometheus{
				Endpoints: []string{"https://a.example.com", "https://b.example.com/prefix"}, Timeout: metav1.Duration{Duration: time.Second},
				TLS:             config.NodeLoadTLS{CAFile: "/ca", CertFile: "/cert", KeyFile: "/key", ServerName: "name", InsecureSkipVerify: true},
				BearerTokenFile: "/token",
				Headers:         []config.NodeLoadHeader{{Name: "X-Tenant", Value: "team"}, {Name: "X-Key", ValueFile: "/value"}},
				Matchers:        []config.NodeLoadMatcher{{Label: "cluster", Operator: config.NodeLoadMatches, Value: "a|b"}},
			},
			RefreshInterval: metav1.Duration{Duration: 5 * time.Second}, MaxSampleAge: metav1.Duration{Duration: time.Minute},
			NodeMatch: config.NodeLoadNodeMatch{Label: "node", By: config.NodeLoadMatchProviderID},
			Resources: []config.NodeLoadResource{
				{
					Name: "cpu", Query: "a", TimestampQuery: "b", DeviationQuery: "c", Unit: config.NodeLoadAbsolute, Capacity: &capacity,
					NodeMatch: &config.NodeLoadNodeMatch{Label: "Hostname", By: config.NodeLoadMatchName},
					PodQuery:  "d", PodTimestampQuery: "e",
					Window: metav1.Duration{Duration: time.Minute}, Threshold: pointer.Int32(80), Weight: 3, Strategy: config.NodeLoadRisk, Target: 50,
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
			LowerPriorityLoad: config.NodeLoadLowerPriorityIgnored,
		},
		// A zero that is given is not the default.
		"OvercommitArgs": &config.OvercommitArgs{
			Prometheus:      config.NodeLoadPrometheus{Endpoints: []string{"https://a.example.com"}, Timeout: metav1.Duration{Duration: time.Second}},
			RefreshInterval: metav1.Duration{Duration: 5 * time.Second}, MaxSampleAge: metav1.Duration{Duration: time.Minute},
			NodeMatch: config.NodeLoadNodeMatch{Label: "node", By: config.NodeLoadMatchName}, Horizon: metav1.Duration{Duration: 2 * time.Hour},
			Predictor: config.OvercommitNSigma, Percentile: 99,
			Queries: config.OvercommitQueries{
				NodeMean: "a", NodeDeviation: "b", NodeNow: "c", NodeTimestamp: "d", PodPercentile: "e", PodTimestamp: "f",
			},
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
			Namespaces: []string{"n*"}, PodSelector: selector, GroupBy: []string{"team", "job"},
			Levels: []config.WorkloadTopologyLevel{{TopologyKey: "rack", Cost: 3}},
			Edges: []config.WorkloadTopologyEdge{
				{From: selector, To: selector, Weight: 7, Scope: "Namespace", Within: "rack"},
			},
			PeersAnnotation: "peers", RoleLabel: "role", MaxPerNode: pointer.Int32(2), SpreadWeight: 30, AvoidAbove: pointer.Int32(80),
		},
	}
	yaml, _ := runtime.SerializerInfoForMediaType(codecs().SupportedMediaTypes(), runtime.ContentTypeYAML)
	for _, version := range versions {
		for kind := range defaults {
			t.Run(version.Version+" "+kind, func(t *testing.T) {
				want := given[kind]
				if want == nil {
					t.Fatal("no example")
				}
				file, err := decodeFile(version, strings.TrimSuffix(kind, "Args"), "{}")
				if err != nil {
					t.Fatal(err)
				}
				file.Profiles[0].PluginConfig[0].Args = want
				text, err := runtime.Encode(codecs().EncoderForVersion(yaml.Serializer, version), file)
				if err != nil {
					t.Fatal(err)
				}
				object, _, err := codecs().UniversalDecoder().Decode(text, nil, nil)
				if err != nil {
					t.Fatal(err)
				}
				got := object.(*schedulerconfig.KubeSchedulerConfiguration).Profiles[0].PluginConfig[0].Args
				if !equality.Semantic.DeepEqual(got, want) {
					t.Errorf("%s came back as %+v, want %+v", text, got, want)
				}
				head := "- args:\n      apiVersion: " + version.String() + "\n"
				if !strings.Contains(string(text), head) || !strings.Contains(string(text), "\n      kind: "+kind+"\n") {
					t.Errorf("%s does not name version and kind of the args", text)
				}
			})
		}
	}
}

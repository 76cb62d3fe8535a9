// SPDX-License-Identifier: Apache-2.0

package config_test

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime"
	schedulerconfig "k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/apis/config/scheme"
	"k8s.io/kubernetes/pkg/scheduler/apis/config/v1beta2"
	"k8s.io/kubernetes/pkg/scheduler/apis/config/v1beta3"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/apis/config/validation"
	"sigs.k8s.io/yaml"
)

// kinds are the args of each plugin in YAML: as they are written when no field is given, and with another value in every
// field. Zeros that are given are not defaults, if the default is another value.
var kinds = map[string]struct{ defaults, given string }{
	"Chaos": {
		"{seed: 0, rejectPercent: 0, maxConsecutiveRejections: 3, randomScore: false, randomBindPercent: 0}",
		"{namespaces: [test], seed: -1, rejectPercent: 1, maxConsecutiveRejections: 0, randomScore: true, randomBindPercent: 3}",
	},
	"Coscheduling": {
		"{permitWaitingTimeSeconds: 60, attemptTimeout: 1s, reservation: 0s, giveUpHalfGangsAfter: 0s}",
		`{permitWaitingTimeSeconds: 0, deniedPGExpirationTimeSeconds: 0, requiredTopologyKey: zone, preferredTopologyKey: rack,
		attemptTimeout: 0s, reservation: 4s, giveUpHalfGangsAfter: 5s}`,
	},
	"DataLocality": {
		`{datasetsAnnotation: data-locality.scheduler/datasets, nodeAnnotation: data-locality.scheduler/datasets, nodeLabelPrefix: "", requireWithin: "",
		levels: [{topologyKey: kubernetes.io/hostname, percent: 100}, {topologyKey: topology.kubernetes.io/zone, percent: 50}]}`,
		`{datasetsAnnotation: a, nodeAnnotation: "", nodeLabelPrefix: c-, requireWithin: g,
		servers: [{namespaces: [d], selector: {matchLabels: {team: a}}, datasetLabel: e}], levels: [{topologyKey: f, percent: 3}, {topologyKey: g, percent: 0}]}`,
	},
	"ExtensionPointLogger": {
		"{sampleRate: 1, redact: false, queueSort: false}",
		"{sampleRate: 0, namespaces: [test], redact: true, queueSort: true}",
	},
	"MyScorePlugin": {"{nodeLabel: disktype, preferredValues: [ssd]}", `{nodeLabel: "", preferredValues: [a, b]}`},
	"NodeCost": {
		`{priceAnnotation: node-cost.scheduler/price-per-hour, priceLabel: "", instanceTypeLabel: node.kubernetes.io/instance-type,
		zoneLabel: topology.kubernetes.io/zone, capacityTypeLabel: "", strategy: CheapestShare}`,
		`{priceAnnotation: "", priceLabel: price, instanceTypeLabel: type, zoneLabel: "", capacityTypeLabel: capacity, strategy: CheapestNode,
		prices: [{instanceType: large, zone: a, capacityType: spot, pricePerHour: 1500m}], spot: {capacityTypes: [spot], tolerationKey: example.com/spot}}`,
	},
	"NodeFilter": {
		"{defaultAction: Allow}",
		`{defaultAction: Deny, rules: [
		{name: rule, action: Allow, nodeNames: ["n*"], nodeSelector: {matchLabels: {team: a}}, namespaces: ["t?"], podSelector: {matchLabels: {team: b}}},
		{name: prefer, action: Prefer, nodeSelector: {matchLabels: {team: a}}, weight: 7},
		{name: share, action: Share, minPercent: 0, maxPercent: 30, whenUnsatisfiable: DoNotSchedule, restrictedLabels: true}]}`,
	},
	"NodeLoad": {
		`{source: Prometheus, prometheus: {timeout: 10s, tls: {insecureSkipVerify: false}}, refreshInterval: 30s, maxSampleAge: 3m0s,
		nodeMatch: {label: instance, by: Auto}, fallback: Requests, filterOnStale: Open, minFreshNodesPercent: 50, exemptDaemonSets: true,
		exemptPriorityAbove: 1999999999, lowerPriorityLoad: Counts, resources: [` + defaultResource("cpu", "cpu", "") + "," + defaultResource("memory", "memory", "") + "]}",
		`{source: MetricsServer, prometheus: {endpoints: ["https://a.example.com", "https://b.example.com/prefix"], timeout: 0s, bearerTokenFile: /token,
		tls: {caFile: /ca, certFile: /cert, keyFile: /key, serverName: name, insecureSkipVerify: true},
		headers: [{name: X-Tenant, value: team}, {name: X-Key, valueFile: /value}], matchers: [{label: cluster, operator: "=~", value: a|b}]},
		refreshInterval: 0s, maxSampleAge: 1m0s, nodeMatch: {label: node, by: ProviderID}, fallback: Neutral, filterOnStale: Closed,
		minFreshNodesPercent: 0, exemptDaemonSets: false, exemptPriorityAbove: 0, lowerPriorityLoad: Ignored, resources: [
		{name: cpu, query: a, timestampQuery: b, deviationQuery: c, podQuery: d, podTimestampQuery: e, nodeMatch: {label: Hostname, by: Name},
		unit: Absolute, capacity: 1500m, window: 1m0s, threshold: 80, weight: 3, strategy: Risk, target: 50, margin: 0.5, sensitivity: 2,
		estimator: {resource: example.com/cpu, by: Limits, factor: 90, default: "1", annotation: example.com/use}},
		{name: memory, unit: Ratio, window: 0s, weight: 0, strategy: LeastUsed, target: 0, margin: 0, sensitivity: 0,
		estimator: {resource: memory, by: Requests, factor: 0, default: "0"}}]}`,
	},
	"Overcommit": {
		`{prometheus: {timeout: 10s, tls: {insecureSkipVerify: false}}, refreshInterval: 1m0s, maxSampleAge: 3m0s, nodeMatch: {label: instance, by: Auto},
		horizon: 1h0m0s, predictor: Maximum, sigmas: 3, percentile: 95, headroomPercent: 10, queries: {}}`,
		`{prometheus: {endpoints: ["https://a.example.com"], timeout: 1s, tls: {insecureSkipVerify: true}}, refreshInterval: 5s, maxSampleAge: 0s,
		nodeMatch: {label: node, by: Name}, horizon: 0s, predictor: NSigma, sigmas: 0, percentile: 0, headroomPercent: 0,
		queries: {nodeMean: a, nodeDeviation: b, nodeNow: c, nodeTimestamp: d, podPercentile: e, podTimestamp: f}}`,
	},
	"PodFilter": {
		"{defaultAction: Allow}",
		`{defaultAction: Deny, rules: [{name: rule, action: Allow, podNames: ["p*"], namespaces: ["t?"], podSelector: {matchLabels: {team: a}}}]}`,
	},
	"RandScore":            {"{seed: 0}", "{seed: 4611686018427387904}"},
	"RunningImageLocality": {"{count: Images, sizeWeight: 0, spreadWeight: 100}", "{count: Containers, sizeWeight: 1, spreadWeight: 0}"},
	"WorkloadTopology": {
		`{levels: [{topologyKey: kubernetes.io/hostname, cost: 0}, {topologyKey: topology.kubernetes.io/zone, cost: 10},
		{topologyKey: topology.kubernetes.io/region, cost: 50}], edges: [{weight: 1}], spreadWeight: 0}`,
		`{namespaces: ["n*"], podSelector: {matchLabels: {team: a}}, groupBy: [team, job], levels: [{topologyKey: rack, cost: 3}],
		edges: [{from: {matchLabels: {team: a}}, to: {matchLabels: {team: b}}, weight: 7, scope: Namespace, within: rack}, {weight: 0}],
		peersAnnotation: peers, roleLabel: role, maxPerNode: 2, spreadWeight: 30, avoidAbove: 80}`,
	},
}

// defaultResource returns a resource of NodeLoad as it is written if only its name and more is given.
func defaultResource(name, estimated, more string) string {
	estimator := map[string]string{
		"": `factor: 100, default: "0"`, "cpu": "resource: cpu, factor: 85, default: 250m", "memory": "resource: memory, factor: 70, default: 200M",
	}[estimated]
	if estimator == "" {
		estimator = "resource: " + estimated + `, factor: 100, default: "0"`
	}
	return fmt.Sprintf("{name: %s, unit: Ratio, window: 5m0s, weight: 1, strategy: LeastUsed, target: 40, margin: 1, sensitivity: 1, "+
		"estimator: {by: Requests, %s}%s}", name, estimator, more)
}

// parse returns the content of a YAML document.
func parse(t *testing.T, document string) map[string]interface{} {
	t.Helper()
	var parsed map[string]interface{}
	if err := yaml.Unmarshal([]byte(strings.ReplaceAll(document, "\t", " ")), &parsed); err != nil {
		t.Fatalf("%s: %v", document, err)
	}
	return parsed
}

// decode decodes a configuration with the args of one plugin, given in YAML, as the scheduler does.
func decode(version, plugin, args string) (*schedulerconfig.KubeSchedulerConfiguration, error) {
	file := fmt.Sprintf("apiVersion: %s\nkind: KubeSchedulerConfiguration\nprofiles: [{pluginConfig: [{name: %s, args: %s}]}]\n",
		version, plugin, strings.ReplaceAll(args, "\t", " "))
	object, _, err := scheme.Codecs.UniversalDecoder().Decode([]byte(file), nil, nil)
	if err != nil {
		return nil, err
	}
	return object.(*schedulerconfig.KubeSchedulerConfiguration), nil
}

// written returns the args that --write-config-to writes for args given in YAML. They must name their version and kind.
func written(t *testing.T, version runtime.GroupVersioner, plugin, args string) map[string]interface{} {
	t.Helper()
	file, err := decode(fmt.Sprint(version), plugin, args)
	if err != nil {
		t.Fatal(err)
	}
	serializer, _ := runtime.SerializerInfoForMediaType(scheme.Codecs.SupportedMediaTypes(), runtime.ContentTypeYAML)
	text, err := runtime.Encode(scheme.Codecs.EncoderForVersion(serializer.Serializer, version), file)
	if err != nil {
		t.Fatal(err)
	}
	profile := parse(t, string(text))["profiles"].([]interface{})[0].(map[string]interface{})
	got := profile["pluginConfig"].([]interface{})[0].(map[string]interface{})["args"].(map[string]interface{})
	if got["apiVersion"] != fmt.Sprint(version) || got["kind"] != plugin+"Args" {
		t.Errorf("%s does not name version and kind of the args", text)
	}
	delete(got, "apiVersion")
	delete(got, "kind")
	return got
}

func TestArgsAreWrittenAsGiven(t *testing.T) {
	for plugin := range validation.Functions() {
		for _, version := range []runtime.GroupVersioner{v1beta2.SchemeGroupVersion, v1beta3.SchemeGroupVersion} {
			t.Run(fmt.Sprint(version, " ", plugin), func(t *testing.T) {
				defaults, given := parse(t, kinds[plugin].defaults), parse(t, kinds[plugin].given)
				if diff := cmp.Diff(defaults, written(t, version, plugin, "{}")); diff != "" {
					t.Errorf("defaults (-want +got):\n%s", diff)
				}
				if diff := cmp.Diff(given, written(t, version, plugin, kinds[plugin].given)); diff != "" {
					t.Errorf("given values (-want +got):\n%s", diff)
				}
				for field, value := range defaults {
					if reflect.DeepEqual(given[field], value) {
						t.Errorf("the given %s is the default", field)
					}
				}
				// Null is as if the field was not given.
				for field := range given {
					if diff := cmp.Diff(defaults, written(t, version, plugin, "{"+field+": null}")); diff != "" {
						t.Errorf("defaults with %s: null (-want +got):\n%s", field, diff)
					}
				}
				if _, err := decode(fmt.Sprint(version), plugin, "{fieldOfNoPlugin: 1}"); err == nil || !strings.Contains(err.Error(), `unknown field "fieldOfNoPlugin"`) {
					t.Errorf("got %v, want an error about the unknown field", err)
				}
			})
		}
	}
}

func TestDefaultsOfNodeLoadNodeMatch(t *testing.T) {
	for given, want := range map[string]config.NodeLoadNodeMatch{
		"{}":                          {Label: "node", By: config.NodeLoadMatchHostname},
		"{label: Hostname}":           {Label: "Hostname", By: config.NodeLoadMatchHostname},
		"{by: Name}":                  {Label: "node", By: config.NodeLoadMatchName},
		"{label: Hostname, by: Auto}": {Label: "Hostname", By: config.NodeLoadMatchAuto},
	} {
		file, err := decode(v1beta3.SchemeGroupVersion.String(), "NodeLoad",
			"{nodeMatch: {label: node, by: Hostname}, resources: [{name: gpu, nodeMatch: "+given+"}, {name: cpu}]}")
		if err != nil {
			t.Fatal(err)
		}
		args := file.Profiles[0].PluginConfig[0].Args.(*config.NodeLoadArgs)
		if got := args.Resources[0].NodeMatch; got == nil || *got != want {
			t.Errorf("%s: nodeMatch is %v, want %v", given, got, want)
		}
		if got := args.Resources[1].NodeMatch; got != nil {
			t.Errorf("nodeMatch of a resource without one is %v", got)
		}
	}
}

// TestDefaultsOfNodeLoadResources is about defaults that depend on a resource's name, on its other fields, or on the
// source: a metrics-server reports cores and bytes, as means over seconds.
func TestDefaultsOfNodeLoadResources(t *testing.T) {
	for given, want := range map[string]string{
		"resources: [{name: cpu}]":                                                   defaultResource("cpu", "cpu", ""),
		"resources: [{name: memory}]":                                                defaultResource("memory", "memory", ""),
		"resources: [{name: network}]":                                               defaultResource("network", "", ""),
		"resources: [{name: diskIO}]":                                                defaultResource("diskIO", "", `, capacity: "1"`),
		"resources: [{name: diskIO, unit: Absolute}]":                                strings.Replace(defaultResource("diskIO", "", ""), "Ratio", "Absolute", 1),
		"resources: [{name: gpu}]":                                                   defaultResource("gpu", "nvidia.com/gpu", ""),
		"resources: [{name: power}]":                                                 defaultResource("power", "", ""),
		"resources: [{name: gpu, estimator: {resource: cpu}}]":                       defaultResource("gpu", "cpu", ""),
		"resources: [{name: cpu, estimator: {resource: a/b}}]":                       defaultResource("cpu", "a/b", ""),
		"source: MetricsServer, resources: [{name: cpu, unit: Ratio, window: 5m0s}]": defaultResource("cpu", "cpu", ""),
		"source: MetricsServer, resources: [{name: cpu}]":                            strings.NewReplacer("Ratio", "Absolute", "5m0s", "1m0s").Replace(defaultResource("cpu", "cpu", "")),
		// Validation refuses an empty list.
		"resources: []": "",
	} {
		t.Run(given, func(t *testing.T) {
			got := written(t, v1beta3.SchemeGroupVersion, "NodeLoad", "{"+given+"}")["resources"]
			if diff := cmp.Diff(parse(t, "{resources: ["+want+"]}")["resources"], got); diff != "" && (want != "" || got != nil) {
				t.Errorf("resources (-want +got):\n%s", diff)
			}
		})
	}
}

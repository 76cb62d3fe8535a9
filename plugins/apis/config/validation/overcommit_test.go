// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"math"
	"testing"
	"time"

	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	"k8s.io/apimachinery/pkg/util/validation/field"
	schedulerconfig "k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/names"
	"k8s.io/utils/pointer"
)

func TestValidateOvercommitArgs(t *testing.T) {
	valid := func() *config.OvercommitArgs {
		return &config.OvercommitArgs{
			Prometheus:      config.NodeLoadPrometheus{Endpoints: []string{"http://prometheus:9090"}, Timeout: lasting(time.Second)},
			RefreshInterval: lasting(30 * time.Second), MaxSampleAge: lasting(time.Minute), NodeMatch: config.NodeLoadNodeMatch{Label: "node", By: config.NodeLoadMatchName},
			Horizon: lasting(30 * time.Minute), Predictor: config.OvercommitMaximum, Percentile: pointer.Int32(50),
		}
	}
	for name, test := range map[string]struct {
		change func(*config.OvercommitArgs)
		want   []string
	}{
		"the smallest values": {func(*config.OvercommitArgs) {}, nil},
		"the largest values": {func(args *config.OvercommitArgs) {
			args.Horizon, args.Sigmas, args.Percentile, args.HeadroomPercent = lasting(2*time.Hour), pointer.Float64(10), pointer.Int32(100), pointer.Int32(90)
		}, nil},
		"a longer horizon": {func(args *config.OvercommitArgs) { args.Horizon = lasting(3 * time.Hour) }, []string{"args.horizon: Invalid value"}},
		"a longer horizon with queries": {func(args *config.OvercommitArgs) {
			args.Horizon = lasting(24 * time.Hour)
			args.Queries = config.OvercommitQueries{NodeMean: "a", NodeDeviation: "b", NodeNow: "c", NodeTimestamp: "d", PodPercentile: "e", PodTimestamp: "f"}
		}, nil},
		"everything wrong": {func(args *config.OvercommitArgs) {
			*args = config.OvercommitArgs{
				Prometheus: config.NodeLoadPrometheus{Timeout: lasting(0)}, RefreshInterval: lasting(0), NodeMatch: config.NodeLoadNodeMatch{Label: " ", By: "IP"},
				Predictor: "Best", Horizon: lasting(time.Minute), Sigmas: pointer.Float64(math.NaN()), Percentile: pointer.Int32(49), HeadroomPercent: pointer.Int32(91), MaxSampleAge: lasting(2 * time.Hour),
			}
		}, []string{
			`args.predictor: Unsupported value: "Best"`, "args.prometheus.endpoints: Required value", "args.prometheus.timeout: Invalid value",
			"args.refreshInterval: Invalid value", "args.maxSampleAge: Invalid value", "args.nodeMatch.label: Invalid value", "args.nodeMatch.by: Unsupported value",
			"args.horizon: Invalid value", "args.sigmas: Invalid value", "args.percentile: Invalid value", "args.headroomPercent: Invalid value",
		}},
		"some of the queries": {func(args *config.OvercommitArgs) {
			args.Queries = config.OvercommitQueries{NodeMean: "a", NodeDeviation: "b", NodeNow: " ", NodeTimestamp: "d", PodPercentile: "e"}
		}, []string{"args.queries.nodeNow: Required value", "args.queries.podTimestamp: Required value"}},
		"queries that are not used": {func(args *config.OvercommitArgs) {
			args.Predictor = config.OvercommitNSigma
			args.Queries = config.OvercommitQueries{NodeMean: "a", NodeDeviation: "b", NodeNow: "c", NodeTimestamp: "d", PodPercentile: "e"}
		}, []string{"args.queries.nodeNow: Forbidden", "args.queries.podPercentile: Forbidden"}},
		"no server is asked": {func(args *config.OvercommitArgs) {
			args.Predictor, args.Prometheus = config.OvercommitRequests, config.NodeLoadPrometheus{}
		}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			args := valid()
			test.change(args)
			expectErrors(t, validate(t, overcommit, args), test.want)
		})
	}
}

func TestValidateProfile(t *testing.T) {
	enabled := func(names ...string) schedulerconfig.PluginSet {
		set := schedulerconfig.PluginSet{}
		for _, name := range names {
			set.Enabled = append(set.Enabled, schedulerconfig.Plugin{Name: name})
		}
		return set
	}
	disabled := func(name string) schedulerconfig.PluginSet {
		return schedulerconfig.PluginSet{Disabled: []schedulerconfig.Plugin{{Name: name}}}
	}
	fit := func(groups ...string) []schedulerconfig.PluginConfig {
		return []schedulerconfig.PluginConfig{{Name: "x"}, {Name: names.NodeResourcesFit, Args: &schedulerconfig.NodeResourcesFitArgs{IgnoredResourceGroups: groups}}}
	}
	both := enabled(names.NodeResourcesFit, overcommit)
	const unlimited, rejected = "profile.plugins: Required value: Overcommit at preFilter and filter",
		"profile.pluginConfig: Required value: with Overcommit, {name: NodeResourcesFit, args: {ignoredResourceGroups: [overcommit.scheduler]}}"
	for name, test := range map[string]struct {
		plugins *schedulerconfig.Plugins
		configs []schedulerconfig.PluginConfig
		want    []string
	}{
		"not enabled": {&schedulerconfig.Plugins{MultiPoint: enabled(names.NodeResourcesFit)}, fit(), nil},
		"ignored":     {&schedulerconfig.Plugins{MultiPoint: both}, fit("example.com", "overcommit.scheduler"), nil},
		"alone":       {&schedulerconfig.Plugins{MultiPoint: enabled(overcommit)}, fit(), nil},
		"at each point": {
			&schedulerconfig.Plugins{PreFilter: enabled(overcommit), Filter: both}, fit("overcommit.scheduler"), nil,
		},
		"not ignored":            {&schedulerconfig.Plugins{MultiPoint: both}, fit("example.com"), []string{rejected}},
		"no arguments":           {&schedulerconfig.Plugins{MultiPoint: both}, nil, []string{rejected}},
		"ignored, not enabled":   {&schedulerconfig.Plugins{MultiPoint: enabled(names.NodeResourcesFit)}, fit("overcommit.scheduler"), []string{unlimited}},
		"not at preFilter":       {&schedulerconfig.Plugins{Filter: both}, fit("overcommit.scheduler"), []string{unlimited}},
		"only at score":          {&schedulerconfig.Plugins{Filter: enabled(names.NodeResourcesFit), Score: enabled(overcommit)}, fit(), []string{unlimited}},
		"disabled at filter":     {&schedulerconfig.Plugins{MultiPoint: both, Filter: disabled(overcommit)}, fit("overcommit.scheduler"), []string{unlimited}},
		"all disabled at filter": {&schedulerconfig.Plugins{MultiPoint: both, Filter: disabled("*")}, fit(), []string{unlimited}},
	} {
		t.Run(name, func(t *testing.T) {
			errs := ValidateProfile(field.NewPath("profile"), &schedulerconfig.KubeSchedulerProfile{Plugins: test.plugins, PluginConfig: test.configs})
			expectErrors(t, utilerrors.NewAggregate(errs), test.want)
		})
	}
}

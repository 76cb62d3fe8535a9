// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"testing"

	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	"k8s.io/apimachinery/pkg/util/validation/field"
	schedulerconfig "k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/names"
)

var overcommitTests = []argsTest{
	{"everything wrong",
		`predictor: Best, prometheus: {endpoints: null, timeout: 0s}, refreshInterval: 0s, maxSampleAge: 2h, horizon: 1m,
			nodeMatch: {label: " ", by: IP}, sigmas: 11, percentile: 49, headroomPercent: 91`, []string{
			`args.predictor: Unsupported value: "Best"`, "args.prometheus.endpoints: Required value",
			"args.prometheus.timeout: Invalid value", "args.refreshInterval: Invalid value",
			"args.maxSampleAge: Invalid value", "args.nodeMatch.label: Invalid value",
			"args.nodeMatch.by: Unsupported value", "args.horizon: Invalid value", "args.sigmas: Invalid value",
			"args.percentile: Invalid value", "args.headroomPercent: Invalid value",
		}},
	{"queries that are not used",
		`predictor: NSigma, queries: {nodeDeviation: b, nodeMean: a, nodeNow: c, nodeTimestamp: d, podPercentile: e}`,
		[]string{"args.queries.nodeNow: Forbidden", "args.queries.podPercentile: Forbidden"}},
	{"no server is asked", `predictor: Requests, prometheus: null`, nil},
	{"the smallest values", `horizon: 30m, percentile: 50`, nil},
	{"the largest values", `headroomPercent: 90, horizon: 2h, percentile: 100, sigmas: 10`, nil},
	{"a longer horizon", `horizon: 3h`, []string{"args.horizon: Invalid value"}},
	{"a longer horizon with queries",
		`horizon: 24h, queries: {nodeDeviation: b, nodeMean: a, nodeNow: c, nodeTimestamp: d, podPercentile: e,
			podTimestamp: f}`, nil},
	{"some of the queries", `queries: {nodeDeviation: b, nodeMean: a, nodeNow: " ", nodeTimestamp: d, podPercentile: e}`,
		[]string{"args.queries.nodeNow: Required value", "args.queries.podTimestamp: Required value"}},
	{"without measurements", `predictor: Requests, prometheus: null`, nil},
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
		"not ignored":          {&schedulerconfig.Plugins{MultiPoint: both}, fit("example.com"), []string{rejected}},
		"no arguments":         {&schedulerconfig.Plugins{MultiPoint: both}, nil, []string{rejected}},
		"ignored, not enabled": {&schedulerconfig.Plugins{MultiPoint: enabled(names.NodeResourcesFit)}, fit("overcommit.scheduler"), []string{unlimited}},
		"not at preFilter":     {&schedulerconfig.Plugins{Filter: both}, fit("overcommit.scheduler"), []string{unlimited}},
		"only at score":        {&schedulerconfig.Plugins{Filter: enabled(names.NodeResourcesFit), Score: enabled(overcommit)}, fit(), []string{unlimited}},
		"disabled at filter":   {&schedulerconfig.Plugins{MultiPoint: both, Filter: disabled(overcommit)}, fit("overcommit.scheduler"), []string{unlimited}},
		"another plugin's points": {&schedulerconfig.Plugins{PreFilter: enabled("Coscheduling"), Reserve: enabled("Coscheduling")}, nil,
			[]string{"profile.plugins.filter.enabled: Required value: {name: Coscheduling}"}},
		"all disabled at filter": {&schedulerconfig.Plugins{MultiPoint: both, Filter: disabled("*")}, fit(), []string{unlimited}},
	} {
		t.Run(name, func(t *testing.T) {
			errs := ValidateProfile(field.NewPath("profile"), &schedulerconfig.KubeSchedulerProfile{Plugins: test.plugins, PluginConfig: test.configs})
			expectErrors(t, utilerrors.NewAggregate(errs), test.want)
		})
	}
}

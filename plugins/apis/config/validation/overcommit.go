// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	schedulerconfig "k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/names"
)

const overcommit = "Overcommit"

// ValidateOvercommitArgs checks that there is a server to query, and all queries that the predictor needs or none, and
// the ranges. No error contains a secret.
func ValidateOvercommitArgs(path *field.Path, args *config.OvercommitArgs) error {
	errs := validateOneOf(path.Child("predictor"), string(args.Predictor), string(config.OvercommitMaximum), string(config.OvercommitNSigma),
		string(config.OvercommitPercentile), string(config.OvercommitRequests))
	if args.Predictor != config.OvercommitRequests {
		errs = append(errs, validatePrometheus(path.Child("prometheus"), &args.Prometheus)...)
		errs = append(errs, validateAges(path, args.RefreshInterval, args.MaxSampleAge)...)
		errs = append(errs, validateNodeMatch(path.Child("nodeMatch"), args.NodeMatch)...)
		errs = append(errs, validateOvercommitQueries(path.Child("queries"), args)...)
	}
	// The steps of a longer horizon would average bursts out.
	longest := 2 * time.Hour
	if args.Queries != (config.OvercommitQueries{}) {
		longest = 24 * time.Hour
	}
	errs = append(errs, validateDuration(path.Child("horizon"), args.Horizon, 30*time.Minute, longest)...)
	// Written so that NaN fails.
	if sigmas := *args.Sigmas; !(sigmas >= 0 && sigmas <= 10) {
		errs = append(errs, field.Invalid(path.Child("sigmas"), sigmas, validation.InclusiveRangeError(0, 10)))
	}
	errs = append(errs, validateRange(path.Child("percentile"), *args.Percentile, 50, 100)...)
	return append(errs, validateRange(path.Child("headroomPercent"), *args.HeadroomPercent, 0, 90)...).ToAggregate()
}

func validateOvercommitQueries(path *field.Path, args *config.OvercommitArgs) field.ErrorList {
	queries, pods, now := args.Queries, args.Predictor != config.OvercommitNSigma, args.Predictor == config.OvercommitMaximum
	if queries == (config.OvercommitQueries{}) {
		return nil
	}
	var errs field.ErrorList
	for _, query := range []struct {
		name, text string
		needed     bool
	}{
		{"nodeMean", queries.NodeMean, true}, {"nodeDeviation", queries.NodeDeviation, true}, {"nodeNow", queries.NodeNow, now},
		{"nodeTimestamp", queries.NodeTimestamp, true},
		{"podPercentile", queries.PodPercentile, pods}, {"podTimestamp", queries.PodTimestamp, pods},
	} {
		switch blank := strings.TrimSpace(query.text) == ""; {
		case query.needed && blank:
			errs = append(errs, field.Required(path.Child(query.name), "all queries that the predictor "+string(args.Predictor)+" needs, or none"))
		case !query.needed && query.text != "":
			errs = append(errs, field.Forbidden(path.Child(query.name), "the predictor "+string(args.Predictor)+" does not use it"))
		}
	}
	return errs
}

// ValidateProfile checks what a plugin's arguments alone do not show: the extension points that they need (Points). No
// node publishes the resource of overcommitting pods, so NodeResourcesFit must ignore it where Overcommit is enabled; and
// where it does, only Overcommit limits such pods.
func ValidateProfile(path *field.Path, profile *schedulerconfig.KubeSchedulerProfile) []error {
	if profile.Plugins == nil {
		return nil
	}
	group := strings.SplitN(string(config.OvercommitResource), "/", 2)[0]
	plugins, ignores := profile.Plugins, false
	runs := func(name string, at schedulerconfig.PluginSet) bool { return runs(plugins, name, at) }
	for i := range profile.PluginConfig {
		if args, is := profile.PluginConfig[i].Args.(*schedulerconfig.NodeResourcesFitArgs); is && runs(names.NodeResourcesFit, plugins.Filter) {
			ignores = sets.NewString(args.IgnoredResourceGroups...).Has(group) || sets.NewString(args.IgnoredResources...).Has(string(config.OvercommitResource))
		}
	}
	preFilter, filter := runs(overcommit, plugins.PreFilter), runs(overcommit, plugins.Filter)
	errs, _ := Points(path, profile)
	if (ignores || preFilter || filter || runs(overcommit, plugins.Score)) && !(preFilter && filter) {
		errs = append(errs, field.Required(path.Child("plugins"),
			overcommit+" at preFilter and filter: nothing else limits pods that ask for "+string(config.OvercommitResource)))
	}
	if filter && !ignores && runs(names.NodeResourcesFit, plugins.Filter) {
		errs = append(errs, field.Required(path.Child("pluginConfig"), "with "+overcommit+", {name: "+names.NodeResourcesFit+
			", args: {ignoredResourceGroups: ["+group+"]}}: no node publishes the resource, so "+names.NodeResourcesFit+" rejects pods that ask for it"))
	}
	return errs
}

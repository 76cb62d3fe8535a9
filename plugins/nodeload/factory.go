// SPDX-License-Identifier: Apache-2.0

package nodeload

import (
	"context"
	"fmt"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/discovery"
	coreinformers "k8s.io/client-go/informers/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/events"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/nodeload/collector"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/nodeload/measured"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/nodeload/source"
	frameworkruntime "k8s.io/kubernetes/pkg/scheduler/framework/runtime"
	"k8s.io/utils/clock"
)

// Factory returns what makes the plugins of a scheduler, one for each profile. They share what they fetch from the same
// source, and one status page.
func Factory() frameworkruntime.PluginFactory {
	// The framework never tells a plugin that it is not needed any more: in a scheduler this asks until the process ends.
	pool, group := collector.NewPool(context.Background()), &group{}
	return func(args runtime.Object, handle framework.Handle) (framework.Plugin, error) {
		return newPlugin(args, handle, clock.RealClock{}, group, func(pl *NodeLoad, swapped func(*measured.Snapshot)) (measurements, error) {
			return subscribeTo(pool, pl, handle.SharedInformerFactory().Core().V1().Nodes(), handle.EventRecorder(), swapped)
		})
	}
}

// subscribeTo begins to collect for a profile. The recorder may be nil.
func subscribeTo(pool *collector.Pool, pl *NodeLoad, nodes coreinformers.NodeInformer, recorder events.EventRecorder,
	swapped func(*measured.Snapshot)) (*collector.Subscription, error) {
	queries, err := queriesOf(&pl.args)
	if err != nil {
		return nil, err
	}
	spec := collector.Spec{
		Prometheus:      pl.args.Prometheus,
		RefreshInterval: pl.args.RefreshInterval.Duration,
		MaxSampleAge:    pl.args.MaxSampleAge.Duration,
	}
	if pl.args.Source == config.NodeLoadSourceMetricsServer {
		if spec.MetricsServer, err = metricsServerOf(pl); err != nil {
			return nil, err
		}
	}
	for i := range queries {
		asked := collector.Resource{Query: queries[i], Match: matchOf(&pl.args, &pl.args.Resources[i])}
		if resource := &pl.resources[i]; resource.unit == config.NodeLoadAbsolute {
			// What capacityOf goes by, so that equal resources of several profiles are one.
			asked.Capacity = fmt.Sprint(resource.capacityAnnotation, " ", resource.capacity, " ", resource.estimator.resource)
			asked.HasCapacity = func(node *v1.Node) bool {
				_, known := resource.capacityOf(node)
				return known
			}
		}
		spec.Resources = append(spec.Resources, asked)
	}
	subscription, err := pool.Subscribe(spec, nodes, recorder, pl.profile, swapped)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", Name, err)
	}
	return subscription, nil
}

// metricsServerOf returns the metrics API of the API server that the scheduler itself is connected with. Its one request
// per refresh does not wait for those of the scheduler, nor they for it: it is outside of clientConnection.qps.
func metricsServerOf(pl *NodeLoad) (*source.MetricsServer, error) {
	kubeConfig := pl.handle.KubeConfig()
	if kubeConfig == nil {
		return nil, fmt.Errorf("%s: there is no API server to ask for metrics; "+
			"next: give clientConnection.kubeconfig", Name)
	}
	unlimited := rest.CopyConfig(kubeConfig)
	unlimited.QPS, unlimited.RateLimiter = -1, nil
	client, err := discovery.NewDiscoveryClientForConfig(unlimited)
	if err != nil {
		return nil, fmt.Errorf("%s: the API server cannot be asked for metrics: %w; "+
			"next: check clientConnection", Name, err)
	}
	window := pl.args.Resources[0].Window.Duration
	for i := range pl.args.Resources {
		if other := pl.args.Resources[i].Window.Duration; other < window {
			window = other
		}
	}
	return source.NewMetricsServer(client.RESTClient(), window), nil
}

// queriesOf returns what is asked about each resource. A deviation is asked for only where it is needed: it costs more
// than everything else.
func queriesOf(args *config.NodeLoadArgs) ([]source.Query, error) {
	var queries []source.Query
	for i := range args.Resources {
		resource := &args.Resources[i]
		if args.Source == config.NodeLoadSourceMetricsServer {
			queries = append(queries, source.MetricsQuery(resource.Name))
			continue
		}
		query := source.Query{Name: resource.Name, Value: resource.Query, Timestamp: resource.TimestampQuery, Deviation: resource.DeviationQuery}
		if resource.Query == "" {
			known := false
			if query, known = source.BuiltIn(resource.Name, matchOf(args, resource).Label, resource.Window.Duration); !known {
				return nil, fmt.Errorf("%s: no query is known for the resource %q; next: give query and timestampQuery", Name, resource.Name)
			}
		}
		if resource.Strategy != config.NodeLoadRisk {
			query.Deviation = ""
		}
		queries = append(queries, query)
	}
	return queries, nil
}

// matchOf returns which node a series of a resource is about.
func matchOf(args *config.NodeLoadArgs, resource *config.NodeLoadResource) config.NodeLoadNodeMatch {
	if args.Source == config.NodeLoadSourceMetricsServer {
		return config.NodeLoadNodeMatch{Label: "name", By: config.NodeLoadMatchName}
	}
	if resource.NodeMatch != nil {
		return *resource.NodeMatch
	}
	return args.NodeMatch
}

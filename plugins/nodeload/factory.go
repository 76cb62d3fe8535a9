// SPDX-License-Identifier: Apache-2.0

package nodeload

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/nodeload/collector"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/nodeload/source"
	frameworkruntime "k8s.io/kubernetes/pkg/scheduler/framework/runtime"
	"k8s.io/utils/clock"
)

// Factory returns the factory of a scheduler's plugins, one per profile. They share the collector of a source, and one
// status. Another plugin with the same source also shares the collector if its factory gets the same Collectors. The
// framework does not tell plugins when they are no longer needed, so the collectors run as long as the process.
func Factory(collectors *collector.Collectors) frameworkruntime.PluginFactory {
	group := &group{}
	return func(args runtime.Object, handle framework.Handle) (framework.Plugin, error) {
		pl, err := newPlugin(args, handle, clock.RealClock{}, group)
		if err != nil {
			return nil, err
		}
		if err := pl.join(collectors); err != nil {
			return nil, fmt.Errorf("%s: %w", Name, err)
		}
		return pl, nil
	}
}

// join joins the profile's collector.
func (pl *NodeLoad) join(collectors *collector.Collectors) error {
	spec, err := pl.spec()
	if err != nil {
		return err
	}
	nodes := pl.handle.SharedInformerFactory().Core().V1().Nodes()
	spec.Nodes, spec.Synced = nodes.Lister(), nodes.Informer().HasSynced
	spec.Recorder, spec.Swapped = pl.handle.EventRecorder(), pl.swapped
	if pl.source, err = collectors.Join(spec); err != nil {
		return err
	}
	pl.group.add(pl)
	return nil
}

// spec returns the profile's collector spec without the nodes.
func (pl *NodeLoad) spec() (collector.Spec, error) {
	queries, err := queriesOf(&pl.args)
	if err != nil {
		return collector.Spec{}, err
	}
	spec := collector.Spec{
		Source: collector.PrometheusKey(&pl.args.Prometheus),
		Connect: func() (source.Source, error) {
			return source.New(pl.args.Prometheus)
		},
		RefreshInterval: pl.args.RefreshInterval.Duration,
		MaxSampleAge:    pl.args.MaxSampleAge.Duration,
		Profile:         pl.profile,
	}
	if pl.args.Source == config.NodeLoadSourceMetricsServer {
		spec.Source, spec.Connect = "metrics.k8s.io", pl.metricsServer
	}
	simulated := collector.Simulated(pl.handle)
	if simulated != nil {
		spec.Connect = func() (source.Source, error) { return simulated, nil }
	}
	for i := range queries {
		resource := &pl.resources[i]
		resource.asked = collector.Resource{Query: queries[i], By: matchOf(&pl.args, &pl.args.Resources[i]).By}
		if simulated != nil {
			resource.asked.By = config.NodeLoadMatchName
		}
		resource.asked.Percent = resource.unit == config.NodeLoadPercent
		if resource.unit == config.NodeLoadAbsolute {
			resource.asked.Capacity = resource.capacity
		}
		spec.Resources = append(spec.Resources, resource.asked)
		if resource.askedOfPods.Pods {
			spec.Resources = append(spec.Resources, resource.askedOfPods)
		}
	}
	return spec, nil
}

// metricsServer returns the metrics API of the scheduler's API server. Its one request per refresh bypasses
// clientConnection.qps.
func (pl *NodeLoad) metricsServer() (source.Source, error) {
	kubeConfig := pl.handle.KubeConfig()
	if kubeConfig == nil {
		return nil, fmt.Errorf("no API server to ask for metrics; next: set clientConnection.kubeconfig")
	}
	unlimited := rest.CopyConfig(kubeConfig)
	unlimited.QPS, unlimited.RateLimiter = -1, nil
	client, err := discovery.NewDiscoveryClientForConfig(unlimited)
	if err != nil {
		return nil, fmt.Errorf("cannot query the API server for metrics: %w; next: check clientConnection", err)
	}
	return source.NewMetricsServer(client.RESTClient(), time.Duration(pl.current().window)), nil
}

// queriesOf returns the queries of the resources. Deviations are queried only where they are needed, because they cost
// more than everything else.
func queriesOf(args *config.NodeLoadArgs) ([]source.Query, error) {
	var queries []source.Query
	for i := range args.Resources {
		resource := &args.Resources[i]
		if args.Source == config.NodeLoadSourceMetricsServer {
			queries = append(queries, source.MetricsQuery(resource.Name))
			continue
		}
		query := source.Query{Name: resource.Name, Value: resource.Query, Timestamp: resource.TimestampQuery, Deviation: resource.DeviationQuery}
		label := matchOf(args, resource).Label
		if resource.Query == "" {
			known := false
			if query, known = source.BuiltIn(resource.Name, label, resource.Window.Duration, args.Prometheus.Matchers); !known {
				return nil, fmt.Errorf("no built-in query for the resource %q; next: set query and timestampQuery", resource.Name)
			}
		}
		if query.Label = label; resource.Strategy != config.NodeLoadRisk {
			query.Deviation = ""
		}
		queries = append(queries, query)
	}
	return queries, nil
}

// matchOf returns how the series of a resource are matched to nodes.
func matchOf(args *config.NodeLoadArgs, resource *config.NodeLoadResource) config.NodeLoadNodeMatch {
	if args.Source == config.NodeLoadSourceMetricsServer {
		return config.NodeLoadNodeMatch{Label: "name", By: config.NodeLoadMatchName}
	}
	if resource.NodeMatch != nil {
		return *resource.NodeMatch
	}
	return args.NodeMatch
}

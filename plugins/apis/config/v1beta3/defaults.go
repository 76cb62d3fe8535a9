// SPDX-License-Identifier: Apache-2.0

package v1beta3

import (
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/apis/config"
	"k8s.io/utils/pointer"
)

// SetDefaults_MyScorePluginArgs sets the defaults: nodes with fast disks, by the label in Kubernetes' own
// documentation.
func SetDefaults_MyScorePluginArgs(obj *MyScorePluginArgs) {
	if obj.NodeLabel == nil {
		obj.NodeLabel = pointer.String("disktype")
	}
	if obj.PreferredValues == nil {
		obj.PreferredValues = []string{"ssd"}
	}
}

// SetDefaults_ExtensionPointLoggerArgs sets the defaults: every pod is logged, with its name.
func SetDefaults_ExtensionPointLoggerArgs(obj *ExtensionPointLoggerArgs) {
	if obj.SampleRate == nil {
		obj.SampleRate = pointer.Float64(1)
	}
	if obj.Redact == nil {
		obj.Redact = pointer.Bool(false)
	}
	if obj.QueueSort == nil {
		obj.QueueSort = pointer.Bool(false)
	}
}

// SetDefaults_RandScoreArgs sets the defaults.
func SetDefaults_RandScoreArgs(obj *RandScoreArgs) {
	if obj.Seed == nil {
		obj.Seed = pointer.Int64(0)
	}
}

// SetDefaults_PodFilterArgs sets the defaults: pods without a matching rule are allowed.
func SetDefaults_PodFilterArgs(obj *PodFilterArgs) {
	if obj.DefaultAction == "" {
		obj.DefaultAction = config.FilterAllow
	}
}

// SetDefaults_NodeFilterArgs sets the defaults: nodes without a matching rule are allowed.
func SetDefaults_NodeFilterArgs(obj *NodeFilterArgs) {
	if obj.DefaultAction == "" {
		obj.DefaultAction = config.FilterAllow
	}
}

// SetDefaults_RunningImageLocalityArgs sets the defaults: each image counts once, independent of its size, and less if
// few nodes run it, as in ImageLocality.
func SetDefaults_RunningImageLocalityArgs(obj *RunningImageLocalityArgs) {
	if obj.Count == "" {
		obj.Count = config.CountImages
	}
	if obj.SizeWeight == nil {
		obj.SizeWeight = pointer.Int32(0)
	}
	if obj.SpreadWeight == nil {
		obj.SpreadWeight = pointer.Int32(100)
	}
}

// SetDefaults_ChaosArgs sets the defaults: nothing is disturbed. The namespaces have no default.
func SetDefaults_ChaosArgs(obj *ChaosArgs) {
	if obj.Seed == nil {
		obj.Seed = pointer.Int64(0)
	}
	if obj.RejectPercent == nil {
		obj.RejectPercent = pointer.Int32(0)
	}
	if obj.MaxConsecutiveRejections == nil {
		obj.MaxConsecutiveRejections = pointer.Int32(3)
	}
	if obj.RandomScore == nil {
		obj.RandomScore = pointer.Bool(false)
	}
	if obj.RandomBindPercent == nil {
		obj.RandomBindPercent = pointer.Int32(0)
	}
}

// SetDefaults_CoschedulingArgs sets the defaults: an attempt blocks other pods for at most a second.
func SetDefaults_CoschedulingArgs(obj *CoschedulingArgs) {
	if obj.PermitWaitingTimeSeconds == nil {
		obj.PermitWaitingTimeSeconds = pointer.Int64(60)
	}
	if obj.AttemptTimeout == nil {
		obj.AttemptTimeout = &metav1.Duration{Duration: time.Second}
	}
	if obj.Reservation == nil {
		obj.Reservation = &metav1.Duration{}
	}
	if obj.GiveUpHalfGangsAfter == nil {
		obj.GiveUpHalfGangsAfter = &metav1.Duration{}
	}
}

// SetDefaults_NodeCostArgs sets the defaults: the labels that Kubernetes itself documents. It has none for the capacity
// type.
func SetDefaults_NodeCostArgs(obj *NodeCostArgs) {
	if obj.PriceAnnotation == nil {
		obj.PriceAnnotation = pointer.String("node-cost.scheduler/price-per-hour")
	}
	if obj.PriceLabel == nil {
		obj.PriceLabel = pointer.String("")
	}
	if obj.InstanceTypeLabel == nil {
		obj.InstanceTypeLabel = pointer.String(v1.LabelInstanceTypeStable)
	}
	if obj.ZoneLabel == nil {
		obj.ZoneLabel = pointer.String(v1.LabelTopologyZone)
	}
	if obj.CapacityTypeLabel == nil {
		obj.CapacityTypeLabel = pointer.String("")
	}
	if obj.Strategy == "" {
		obj.Strategy = config.NodeCostCheapestShare
	}
}

// SetDefaults_DataLocalityArgs sets the defaults: pods and nodes have the same annotation, and data in the zone of a
// node are worth half of those on the node.
func SetDefaults_DataLocalityArgs(obj *DataLocalityArgs) {
	if obj.DatasetsAnnotation == nil {
		obj.DatasetsAnnotation = pointer.String("data-locality.scheduler/datasets")
	}
	if obj.NodeAnnotation == nil {
		obj.NodeAnnotation = pointer.String("data-locality.scheduler/datasets")
	}
	if obj.NodeLabelPrefix == nil {
		obj.NodeLabelPrefix = pointer.String("")
	}
	if obj.Levels == nil {
		obj.Levels = []DataLocalityLevel{
			{TopologyKey: v1.LabelHostname, Percent: 100},
			{TopologyKey: v1.LabelTopologyZone, Percent: 50},
		}
	}
	if obj.RequireWithin == nil {
		obj.RequireWithin = pointer.String("")
	}
}

// SetDefaults_NodeLoadArgs sets the defaults, without those of each resource: cpu and memory are measured, and a node
// without measurements passes and is scored by requests. The endpoints have no default.
func SetDefaults_NodeLoadArgs(obj *NodeLoadArgs) {
	if obj.Source == "" {
		obj.Source = config.NodeLoadSourcePrometheus
	}
	setDefaultsOfMeasurements(&obj.Prometheus, &obj.RefreshInterval, &obj.MaxSampleAge, &obj.NodeMatch)
	for i := range obj.Resources {
		if match := obj.Resources[i].NodeMatch; match != nil {
			if match.Label == "" {
				match.Label = obj.NodeMatch.Label
			}
			if match.By == "" {
				match.By = obj.NodeMatch.By
			}
		}
	}
	if obj.Resources == nil {
		obj.Resources = []NodeLoadResource{{Name: "cpu"}, {Name: "memory"}}
	}
	if obj.Source == config.NodeLoadSourceMetricsServer {
		setDefaultsOfMetricsServer(obj.Resources)
	}
	if obj.Fallback == "" {
		obj.Fallback = config.NodeLoadFallbackRequests
	}
	if obj.FilterOnStale == "" {
		obj.FilterOnStale = config.NodeLoadFilterOpen
	}
	if obj.MinFreshNodesPercent == nil {
		obj.MinFreshNodesPercent = pointer.Int32(50)
	}
	if obj.ExemptDaemonSets == nil {
		obj.ExemptDaemonSets = pointer.Bool(true)
	}
	// The priority of system-critical pods is at least 2,000,000,000: SystemCriticalPriority in pkg/apis/scheduling.
	// They must not wait when all nodes are hot.
	if obj.ExemptPriorityAbove == nil {
		obj.ExemptPriorityAbove = pointer.Int32(1999999999)
	}
	if obj.LowerPriorityLoad == "" {
		obj.LowerPriorityLoad = config.NodeLoadLowerPriorityCounts
	}
}

// setDefaultsOfMeasurements sets the defaults of what NodeLoad and Overcommit have in common.
func setDefaultsOfMeasurements(prometheus *NodeLoadPrometheus, interval, age **metav1.Duration, match *NodeLoadNodeMatch) {
	if prometheus.Timeout == nil {
		prometheus.Timeout = &metav1.Duration{Duration: 10 * time.Second}
	}
	if prometheus.TLS.InsecureSkipVerify == nil {
		prometheus.TLS.InsecureSkipVerify = pointer.Bool(false)
	}
	if *interval == nil {
		*interval = &metav1.Duration{Duration: 30 * time.Second}
	}
	if *age == nil {
		*age = &metav1.Duration{Duration: 3 * time.Minute}
	}
	if match.Label == "" {
		match.Label = "instance"
	}
	if match.By == "" {
		match.By = config.NodeLoadMatchAuto
	}
}

// SetDefaults_OvercommitArgs sets the defaults. The endpoints and queries have none: the plugin builds its queries from
// the horizon, the percentile and the label of the nodes. What they return changes slowly, and costs more than what
// NodeLoad asks for.
func SetDefaults_OvercommitArgs(obj *OvercommitArgs) {
	if obj.RefreshInterval == nil {
		obj.RefreshInterval = &metav1.Duration{Duration: time.Minute}
	}
	setDefaultsOfMeasurements(&obj.Prometheus, &obj.RefreshInterval, &obj.MaxSampleAge, &obj.NodeMatch)
	if obj.Horizon == nil {
		obj.Horizon = &metav1.Duration{Duration: time.Hour}
	}
	if obj.Predictor == "" {
		obj.Predictor = config.OvercommitMaximum
	}
	if obj.Sigmas == nil {
		obj.Sigmas = pointer.Float64(3)
	}
	if obj.Percentile == nil {
		obj.Percentile = pointer.Int32(95)
	}
	if obj.HeadroomPercent == nil {
		obj.HeadroomPercent = pointer.Int32(10)
	}
}

// setDefaultsOfMetricsServer sets the defaults for a metrics-server, which reports cores and bytes as means over
// seconds.
func setDefaultsOfMetricsServer(resources []NodeLoadResource) {
	for i := range resources {
		if resources[i].Unit == "" {
			resources[i].Unit = config.NodeLoadAbsolute
		}
		if resources[i].Window == nil {
			resources[i].Window = &metav1.Duration{Duration: time.Minute}
		}
	}
}

// SetDefaults_NodeLoadResource sets the defaults of a resource, except its queries: the plugin builds the queries of
// built-in resources from the window and the label of the nodes.
func SetDefaults_NodeLoadResource(obj *NodeLoadResource) {
	if obj.Unit == "" {
		obj.Unit = config.NodeLoadRatio
	}
	// A disk can be busy for one second a second. A resource in bytes or operations has its own capacity.
	if obj.Capacity == nil && obj.Name == "diskIO" && obj.Unit != config.NodeLoadAbsolute {
		obj.Capacity = resource.NewQuantity(1, resource.DecimalSI)
	}
	if obj.Window == nil {
		obj.Window = &metav1.Duration{Duration: 5 * time.Minute}
	}
	if obj.Weight == nil {
		obj.Weight = pointer.Int32(1)
	}
	if obj.Strategy == "" {
		obj.Strategy = config.NodeLoadLeastUsed
	}
	if obj.Target == nil {
		obj.Target = pointer.Int32(40)
	}
	if obj.Margin == nil {
		obj.Margin = pointer.Float64(1)
	}
	if obj.Sensitivity == nil {
		obj.Sensitivity = pointer.Float64(1)
	}
	if obj.Estimator.Resource == "" {
		switch obj.Name {
		case "cpu":
			obj.Estimator.Resource = v1.ResourceCPU
		case "memory":
			obj.Estimator.Resource = v1.ResourceMemory
		case "gpu":
			obj.Estimator.Resource = "nvidia.com/gpu"
		}
	}
	setDefaultEstimate(&obj.Estimator)
}

// setDefaultEstimate sets the defaults of an estimator by its resource, not by the name of the measured resource: pods
// rarely use all of the CPU and memory that they request, and pods without requests use some. Requests count instead of
// limits, which are often a multiple of the use.
func setDefaultEstimate(obj *NodeLoadEstimator) {
	factor, usedByDefault := int32(100), resource.NewQuantity(0, resource.DecimalSI)
	switch obj.Resource {
	case v1.ResourceCPU:
		factor, usedByDefault = 85, resource.NewMilliQuantity(250, resource.DecimalSI)
	case v1.ResourceMemory:
		factor, usedByDefault = 70, resource.NewScaledQuantity(200, resource.Mega)
	}
	if obj.By == "" {
		obj.By = config.NodeLoadEstimateRequests
	}
	if obj.Factor == nil {
		obj.Factor = pointer.Int32(factor)
	}
	if obj.Default == nil {
		obj.Default = usedByDefault
	}
}

// SetDefaults_WorkloadTopologyArgs sets the defaults: pods of a job that all communicate with each other, over hosts,
// zones and regions. There is no default for which pods are a job.
func SetDefaults_WorkloadTopologyArgs(obj *WorkloadTopologyArgs) {
	if obj.Levels == nil {
		obj.Levels = []WorkloadTopologyLevel{
			{TopologyKey: v1.LabelHostname, Cost: 0},
			{TopologyKey: v1.LabelTopologyZone, Cost: 10},
			{TopologyKey: v1.LabelTopologyRegion, Cost: 50},
		}
	}
	if obj.Edges == nil {
		obj.Edges = []WorkloadTopologyEdge{{}}
	}
	for i := range obj.Edges {
		if obj.Edges[i].Weight == nil {
			obj.Edges[i].Weight = pointer.Int32(1)
		}
	}
	if obj.SpreadWeight == nil {
		obj.SpreadWeight = pointer.Int32(0)
	}
}

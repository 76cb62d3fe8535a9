// SPDX-License-Identifier: Apache-2.0

package config

import (
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// OvercommitResource is the extended resource that overcommitting pods ask for, in thousandths of a core. No node
// publishes it.
const OvercommitResource v1.ResourceName = "overcommit.scheduler/millicpu"

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// OvercommitArgs are the arguments of the plugin Overcommit: a node takes pods that ask for
// overcommit.scheduler/millicpu up to its allocatable CPU less the headroom and the predicted peak of the other pods,
// which are the ordinary ones.
type OvercommitArgs struct {
	metav1.TypeMeta `json:",inline"`

	// Prometheus configures the connection. With the same value as in NodeLoad's arguments, both share the connection
	// and its requests.
	Prometheus NodeLoadPrometheus `json:"prometheus,omitempty"`
	// RefreshInterval is the time between two requests for measurements, 1s to 10m. Default: 1m.
	RefreshInterval *metav1.Duration `json:"refreshInterval,omitempty"`
	// MaxSampleAge is the maximum age of measurements that are used, more than RefreshInterval and at most 1h. A node
	// without such a measurement takes no more overcommitting pods. Default: 3m.
	MaxSampleAge *metav1.Duration `json:"maxSampleAge,omitempty"`
	// NodeMatch maps series to nodes.
	NodeMatch NodeLoadNodeMatch `json:"nodeMatch,omitempty"`
	// Horizon is the time, 30m to 2h, or to 24h with queries, for which the peak is predicted, from the use in the same time
	// before. Default: 1h.
	Horizon *metav1.Duration `json:"horizon,omitempty"`
	// Predictor selects how the peak of the ordinary pods is predicted. Maximum and Percentile need measurements of
	// containers; with NSigma, everything that a node uses counts as the use of ordinary pods. Default: Maximum.
	Predictor OvercommitPredictor `json:"predictor,omitempty"`
	// Sigmas multiplies the standard deviation in NSigma and Maximum, 0 to 10. Default: 3.
	Sigmas *float64 `json:"sigmas,omitempty"`
	// Percentile is the percentile of each pod's use in Percentile and Maximum, 50 to 100. Default: 95.
	Percentile *int32 `json:"percentile,omitempty"`
	// HeadroomPercent is the share of a node's allocatable CPU that is never overcommitted, 0 to 90. Default: 10.
	HeadroomPercent *int32 `json:"headroomPercent,omitempty"`
	// Queries replaces the built-in queries.
	Queries OvercommitQueries `json:"queries,omitempty"`
}

// OvercommitPredictor selects how the peak of a node's ordinary pods is predicted.
type OvercommitPredictor string

const (
	// OvercommitMaximum is the largest of NSigma, Percentile and the use now.
	OvercommitMaximum OvercommitPredictor = "Maximum"
	// OvercommitNSigma is the mean of the node's use plus a multiple of its standard deviation.
	OvercommitNSigma OvercommitPredictor = "NSigma"
	// OvercommitPercentile is the sum over the pods of a percentile of their use.
	OvercommitPercentile OvercommitPredictor = "Percentile"
	// OvercommitRequests is the sum of the pods' requests, and needs no measurements.
	OvercommitRequests OvercommitPredictor = "Requests"
)

// OvercommitQueries has PromQL expressions, for example of recorded series. Values are in cores. The series of nodes
// have the label of NodeMatch, those of pods the labels namespace and pod. All that the predictor needs must be given,
// or none.
type OvercommitQueries struct {
	// NodeMean is the mean over the horizon of what ordinary pods use on a node, NodeDeviation its standard deviation,
	// and NodeNow what they use now.
	NodeMean      string `json:"nodeMean,omitempty"`
	NodeDeviation string `json:"nodeDeviation,omitempty"`
	NodeNow       string `json:"nodeNow,omitempty"`
	// NodeTimestamp is the time of the newest raw samples behind them.
	NodeTimestamp string `json:"nodeTimestamp,omitempty"`
	// PodPercentile is the percentile over the horizon of what a pod uses. Series of overcommitting pods do not matter.
	PodPercentile string `json:"podPercentile,omitempty"`
	// PodTimestamp is the time of the newest raw samples behind it.
	PodTimestamp string `json:"podTimestamp,omitempty"`
}

// setDefaults sets the defaults. The endpoints and queries have none: the plugin builds its queries from
// the horizon, the percentile and the label of the nodes. What they return changes slowly, and costs more than what
// NodeLoad asks for.
func (args *OvercommitArgs) setDefaults() {
	defaultDuration(&args.RefreshInterval, time.Minute)
	setDefaultsOfMeasurements(&args.Prometheus, &args.RefreshInterval, &args.MaxSampleAge, &args.NodeMatch)
	defaultDuration(&args.Horizon, time.Hour)
	if args.Predictor == "" {
		args.Predictor = OvercommitMaximum
	}
	defaultFloat64(&args.Sigmas, 3)
	defaultInt32(&args.Percentile, 95)
	defaultInt32(&args.HeadroomPercent, 10)
}

// SPDX-License-Identifier: Apache-2.0

package config

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// NodeLoadPrometheus configures the connection to a server with Prometheus' HTTP API.
type NodeLoadPrometheus struct {
	// Endpoints are 1 to 8 URLs of servers with the same data, http or https, tried in order. They contain no user,
	// password, query or fragment; a path is a prefix of the API's paths.
	// +listType=set
	Endpoints []string `json:"endpoints,omitempty"`
	// Timeout limits each request, 100ms to 1m. Default: 10s.
	Timeout *metav1.Duration `json:"timeout,omitempty"`
	// TLS configures the certificates of the server and of the client. Only for https.
	TLS NodeLoadTLS `json:"tls,omitempty"`
	// BearerTokenFile is the absolute path of a file with the bearer token to send. It is reloaded when it changes.
	BearerTokenFile string `json:"bearerTokenFile,omitempty"`
	// Headers are at most 16 headers that are sent with every request, for example the tenant's name.
	// +listType=map
	// +listMapKey=name
	Headers []NodeLoadHeader `json:"headers,omitempty"`
	// Matchers are at most 16 matchers that select the series of this cluster, in every selector of NodeLoad's own
	// queries. They do not change the queries of Resources.
	// +listType=atomic
	Matchers []NodeLoadMatcher `json:"matchers,omitempty"`
}

// NodeLoadMatchOperator is an operator of PromQL that compares a label with a value.
type NodeLoadMatchOperator string

const (
	// NodeLoadEqual selects series whose label has the value; an empty value, those without the label.
	NodeLoadEqual NodeLoadMatchOperator = "="
	// NodeLoadNotEqual selects all other series.
	NodeLoadNotEqual NodeLoadMatchOperator = "!="
	// NodeLoadMatches selects series whose whole label matches the regular expression.
	NodeLoadMatches NodeLoadMatchOperator = "=~"
	// NodeLoadNotMatches selects all other series.
	NodeLoadNotMatches NodeLoadMatchOperator = "!~"
)

// NodeLoadMatcher is a label matcher of PromQL.
type NodeLoadMatcher struct {
	// Label is the name of a label.
	Label string `json:"label"`
	// Operator compares the label with Value: =, !=, =~ or !~.
	Operator NodeLoadMatchOperator `json:"operator"`
	// Value is the text or the regular expression, in RE2's syntax and without quotes.
	Value string `json:"value"`
}

// NodeLoadTLS has the absolute paths of PEM files, which are reloaded when they change.
type NodeLoadTLS struct {
	// CAFile contains the CA certificates to trust instead of the system's.
	CAFile string `json:"caFile,omitempty"`
	// CertFile and KeyFile are the client's certificate and its key: both or neither.
	CertFile string `json:"certFile,omitempty"`
	KeyFile  string `json:"keyFile,omitempty"`
	// ServerName is the name in the server's certificate, if it differs from the host of the endpoint.
	ServerName string `json:"serverName,omitempty"`
	// InsecureSkipVerify disables the verification of the server's certificate. Not allowed together with CAFile.
	// Default: false.
	InsecureSkipVerify bool `json:"insecureSkipVerify"`
}

// NodeLoadHeader is a header of a request. It has either a value or a file with one.
type NodeLoadHeader struct {
	// Name is the header's name. Headers that the client sets itself are not allowed.
	Name string `json:"name"`
	// Value is the header's value. Everyone who can read the configuration can read it, and the scheduler logs the
	// configuration at -v=2. Use ValueFile for secrets; Authorization, Cookie and Proxy-Authorization do not allow
	// Value.
	Value string `json:"value,omitempty"`
	// ValueFile is the absolute path of a file with the value. It is reloaded when it changes.
	ValueFile string `json:"valueFile,omitempty"`
}

// NodeLoadMatchBy is the property of a node that identifies it in Prometheus.
type NodeLoadMatchBy string

const (
	// NodeLoadMatchAuto is any of the following. A series that identifies one node by one property and another node by
	// another is used for neither.
	NodeLoadMatchAuto NodeLoadMatchBy = "Auto"
	// NodeLoadMatchName is the node's name.
	NodeLoadMatchName NodeLoadMatchBy = "Name"
	// NodeLoadMatchInternalIP is any address of type InternalIP.
	NodeLoadMatchInternalIP NodeLoadMatchBy = "InternalIP"
	// NodeLoadMatchHostname is any address of type Hostname, or the label kubernetes.io/hostname.
	NodeLoadMatchHostname NodeLoadMatchBy = "Hostname"
	// NodeLoadMatchProviderID is spec.providerID, or the part after its last slash.
	NodeLoadMatchProviderID NodeLoadMatchBy = "ProviderID"
)

// NodeLoadNodeMatch maps a series to a node.
type NodeLoadNodeMatch struct {
	// Label is the label of the series that identifies the node. A port at the end of its value is ignored. Default:
	// instance.
	Label string `json:"label,omitempty"`
	// By is the property of the node that equals the label's value. Default: Auto.
	By NodeLoadMatchBy `json:"by,omitempty"`
}

// setDefaultsOfMeasurements sets the defaults of what NodeLoad and Overcommit have in common.
func setDefaultsOfMeasurements(prometheus *NodeLoadPrometheus, interval, age **metav1.Duration, match *NodeLoadNodeMatch) {
	defaultDuration(&prometheus.Timeout, 10*time.Second)
	defaultDuration(interval, 30*time.Second)
	defaultDuration(age, 3*time.Minute)
	if match.Label == "" {
		match.Label = "instance"
	}
	if match.By == "" {
		match.By = NodeLoadMatchAuto
	}
}

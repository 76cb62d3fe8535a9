// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"fmt"
	"net"
	"net/http"
	"net/url"
	"path"
	"regexp"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	corevalidation "k8s.io/kubernetes/pkg/apis/core/validation"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/apis/config"
)

const (
	maxEndpoints = 8
	maxHeaders   = 16
	maxMatchers  = 16
	// maxResources bounds the request for measurements, and the values of the metrics' label "resource".
	maxResources = 16
	// maxResourceName leaves room for "capacity-" before the name in an annotation's key.
	maxResourceName = validation.LabelValueMaxLength - len("capacity-")
	// termLabel is the label that NodeLoad puts on series, to tell those of different queries apart.
	termLabel = "nodeload_term"
)

var (
	resourceName = regexp.MustCompile(`^[a-zA-Z]([-a-zA-Z0-9]*[a-zA-Z0-9])?$`)
	// labelName is a label's name in Prometheus.
	labelName = regexp.MustCompile(`^[a-zA-Z_][a-zA-Z0-9_]*$`)
	// builtIn are the resources for which NodeLoad has queries.
	builtIn = sets.NewString("cpu", "diskIO", "gpu", "memory", "network")
	// ownHeaders are the headers that the client itself sets.
	ownHeaders = sets.NewString("Accept", "Accept-Encoding", "Connection", "Content-Encoding", "Content-Length", "Content-Type", "Expect", "Host",
		"Keep-Alive", "Proxy-Connection", "Te", "Trailer", "Transfer-Encoding", "Upgrade")
	// secretHeaders contain only credentials.
	secretHeaders = sets.NewString("Authorization", "Cookie", "Proxy-Authorization")
)

// notShown replaces a value in an error that may be a secret, or may contain one by mistake.
type notShown struct{}

func (notShown) String() string { return "(not shown)" }

// ValidateNodeLoadArgs checks that there are servers and resources to query, each with what its unit and strategy need,
// and the ranges. No error contains the value of a header, a user, a password, or the path of a file.
func ValidateNodeLoadArgs(path *field.Path, args *config.NodeLoadArgs) error {
	errs := validateSource(path, args)
	errs = append(errs, validateAges(path, args.RefreshInterval, args.MaxSampleAge)...)
	errs = append(errs, validateNodeMatch(path.Child("nodeMatch"), args.NodeMatch)...)
	errs = append(errs, validateResources(path.Child("resources"), args.Resources, args.Source)...)
	errs = append(errs, validateOneOf(path.Child("fallback"), string(args.Fallback),
		string(config.NodeLoadFallbackRequests), string(config.NodeLoadFallbackNeutral))...)
	errs = append(errs, validateOneOf(path.Child("filterOnStale"), string(args.FilterOnStale),
		string(config.NodeLoadFilterOpen), string(config.NodeLoadFilterClosed))...)
	errs = append(errs, validateRange(path.Child("minFreshNodesPercent"), *args.MinFreshNodesPercent, 0, 100)...)
	return append(errs, validateLowerPriorityLoad(path, args)...).ToAggregate()
}

// validateAges checks the interval of requests and the maximum age of measurements.
func validateAges(path *field.Path, interval, age *metav1.Duration) field.ErrorList {
	errs := validateDuration(path.Child("refreshInterval"), interval, time.Second, 10*time.Minute)
	if age.Duration <= interval.Duration || age.Duration > time.Hour {
		errs = append(errs, field.Invalid(path.Child("maxSampleAge"), age.Duration.String(),
			fmt.Sprintf("must be more than refreshInterval, which is %s, and at most %s", interval.Duration, time.Hour)))
	}
	return errs
}

// validateLowerPriorityLoad checks that there is a resource whose load is split by pods if it must be.
func validateLowerPriorityLoad(path *field.Path, args *config.NodeLoadArgs) field.ErrorList {
	switch args.LowerPriorityLoad {
	case "", config.NodeLoadLowerPriorityCounts:
		return nil
	case config.NodeLoadLowerPriorityPreemptible, config.NodeLoadLowerPriorityIgnored:
	default:
		return validateOneOf(path.Child("lowerPriorityLoad"), string(args.LowerPriorityLoad), string(config.NodeLoadLowerPriorityCounts),
			string(config.NodeLoadLowerPriorityPreemptible), string(config.NodeLoadLowerPriorityIgnored))
	}
	for i := range args.Resources {
		if args.Resources[i].Threshold != nil && args.Resources[i].PodQuery != "" {
			return nil
		}
	}
	return field.ErrorList{field.Required(path.Child("resources"), "with lowerPriorityLoad "+string(args.LowerPriorityLoad)+
		", at least one with a threshold and podQuery: the load of pods must be measured")}
}

// validateSource checks what depends on the source: the metrics API takes no queries, and has no deviations.
func validateSource(path *field.Path, args *config.NodeLoadArgs) field.ErrorList {
	if args.Source != config.NodeLoadSourceMetricsServer {
		errs := validateOneOf(path.Child("source"), string(args.Source), string(config.NodeLoadSourcePrometheus),
			string(config.NodeLoadSourceMetricsServer))
		return append(errs, validatePrometheus(path.Child("prometheus"), &args.Prometheus)...)
	}
	var errs field.ErrorList
	if given := args.Prometheus; len(given.Endpoints) > 0 || len(given.Headers) > 0 || len(given.Matchers) > 0 ||
		given.BearerTokenFile != "" || given.TLS != (config.NodeLoadTLS{}) {
		errs = append(errs, field.Forbidden(path.Child("prometheus"),
			"the source MetricsServer queries the scheduler's own API server"))
	}
	for i := range args.Resources {
		resource, resourcePath := &args.Resources[i], path.Child("resources").Index(i)
		errs = append(errs, validateOneOf(resourcePath.Child("name"), resource.Name, string(v1.ResourceCPU),
			string(v1.ResourceMemory))...)
		for _, query := range queriesOf(resource) {
			if query.text != "" {
				errs = append(errs, field.Forbidden(resourcePath.Child(query.name), "the source MetricsServer takes no queries"))
			}
		}
		if resource.Strategy == config.NodeLoadRisk {
			errs = append(errs, field.Invalid(resourcePath.Child("strategy"), string(resource.Strategy),
				"must be LeastUsed or TargetUtilization: the source MetricsServer has no deviations"))
		}
	}
	return errs
}

func validatePrometheus(path *field.Path, prometheus *config.NodeLoadPrometheus) field.ErrorList {
	errs, mayUseTLS := validateEndpoints(path.Child("endpoints"), prometheus.Endpoints)
	errs = append(errs, validateDuration(path.Child("timeout"), prometheus.Timeout, 100*time.Millisecond, time.Minute)...)
	errs = append(errs, validateTLS(path.Child("tls"), prometheus.TLS)...)
	if !mayUseTLS && prometheus.TLS != (config.NodeLoadTLS{}) {
		errs = append(errs, field.Forbidden(path.Child("tls"), "none of the endpoints begins with https://"))
	}
	errs = append(errs, validateFile(path.Child("bearerTokenFile"), prometheus.BearerTokenFile)...)
	errs = append(errs, validateHeaders(path.Child("headers"), prometheus.Headers, prometheus.BearerTokenFile != "")...)
	return append(errs, validateMatchers(path.Child("matchers"), prometheus.Matchers)...)
}

// validateEndpoints also reports whether a connection may use TLS: not if all endpoints are valid, and none is https.
func validateEndpoints(path *field.Path, endpoints []string) (errs field.ErrorList, mayUseTLS bool) {
	errs = validateLength(path, len(endpoints), maxEndpoints, "URLs of servers that answer Prometheus' HTTP API, such as http://prometheus.monitoring:9090")
	seen := sets.NewString()
	for i, endpoint := range endpoints {
		endpointErrs := validateEndpoint(path.Index(i), endpoint)
		if len(endpointErrs) == 0 {
			endpointErrs = validateUnique(path.Index(i), strings.TrimSuffix(endpoint, "/"), seen)
		}
		errs = append(errs, endpointErrs...)
	}
	mayUseTLS = len(errs) > 0
	for _, endpoint := range endpoints {
		mayUseTLS = mayUseTLS || strings.HasPrefix(strings.ToLower(endpoint), "https:")
	}
	return errs, mayUseTLS
}

// validateEndpoint does not show an endpoint, which may contain a password; the parser's error would.
func validateEndpoint(path *field.Path, endpoint string) field.ErrorList {
	parsed, err := url.Parse(endpoint)
	if err != nil || parsed.Scheme != "http" && parsed.Scheme != "https" || parsed.Hostname() == "" || !validPort(parsed.Port()) {
		return field.ErrorList{field.Invalid(path, notShown{}, "must be a URL with a host, such as http://prometheus.monitoring:9090 or https://example.com/prometheus")}
	}
	var errs field.ErrorList
	if parsed.User != nil {
		errs = append(errs, field.Forbidden(path, "a user and a password in a URL are not kept secret: put the header Authorization in a file, "+
			"and name it in prometheus.headers[].valueFile; or a token, in prometheus.bearerTokenFile"))
	}
	if strings.ContainsAny(endpoint, "?#") {
		errs = append(errs, field.Forbidden(path, "must not have a query or a fragment: put what a server needs besides its path into prometheus.headers"))
	}
	if strings.Contains(parsed.Path+"/", "/api/v1/") {
		errs = append(errs, field.Invalid(path, notShown{}, "must end before /api/v1, which is added"))
	}
	return errs
}

// validPort reports whether a port is valid or absent.
func validPort(port string) bool {
	number, err := strconv.Atoi(port)
	return port == "" || err == nil && number >= 1 && number <= 65535
}

func validateTLS(path *field.Path, tls config.NodeLoadTLS) field.ErrorList {
	errs := validateFile(path.Child("caFile"), tls.CAFile)
	errs = append(errs, validateFile(path.Child("certFile"), tls.CertFile)...)
	errs = append(errs, validateFile(path.Child("keyFile"), tls.KeyFile)...)
	if tls.CertFile == "" && tls.KeyFile != "" {
		errs = append(errs, field.Required(path.Child("certFile"), "the certificate of the key in keyFile"))
	}
	if tls.CertFile != "" && tls.KeyFile == "" {
		errs = append(errs, field.Required(path.Child("keyFile"), "the key of the certificate in certFile"))
	}
	if name := tls.ServerName; name != "" && net.ParseIP(name) == nil {
		for _, message := range validation.IsDNS1123Subdomain(strings.ToLower(name)) {
			errs = append(errs, field.Invalid(path.Child("serverName"), name, message))
		}
	}
	if tls.InsecureSkipVerify && tls.CAFile != "" {
		errs = append(errs, field.Forbidden(path.Child("insecureSkipVerify"), "caFile makes the client verify servers"))
	}
	return errs
}

// validateFile does not show an invalid path: it may be the secret itself instead of its file.
func validateFile(fieldPath *field.Path, file string) field.ErrorList {
	if file != "" && (!path.IsAbs(file) || strings.HasSuffix(file, "/") || strings.ContainsAny(file, "\n\x00")) {
		return field.ErrorList{field.Invalid(fieldPath, notShown{}, "must be the absolute path of a file")}
	}
	return nil
}

func validateHeaders(path *field.Path, headers []config.NodeLoadHeader, withToken bool) field.ErrorList {
	var errs field.ErrorList
	if len(headers) > maxHeaders {
		errs = append(errs, field.TooMany(path, len(headers), maxHeaders))
	}
	seen := sets.NewString()
	for i, header := range headers {
		headerPath := path.Index(i)
		namePath, name := headerPath.Child("name"), http.CanonicalHeaderKey(header.Name)
		switch {
		case len(validation.IsHTTPHeaderName(header.Name)) > 0:
			// A whole header may have been put there.
			errs = append(errs, field.Invalid(namePath, notShown{}, "must be 1 or more letters, digits and '-'"))
		case ownHeaders.Has(name):
			errs = append(errs, field.Forbidden(namePath, "the client itself sets "+name))
		case name == "Authorization" && withToken:
			errs = append(errs, field.Forbidden(namePath, "bearerTokenFile sets Authorization"))
		default:
			errs = append(errs, validateUnique(namePath, name, seen)...)
		}
		errs = append(errs, validateFile(headerPath.Child("valueFile"), header.ValueFile)...)
		switch {
		case header.Value == "" && header.ValueFile == "":
			errs = append(errs, field.Required(headerPath, "value or valueFile"))
		case header.Value != "" && header.ValueFile != "":
			errs = append(errs, field.Forbidden(headerPath.Child("value"), "valueFile has the value"))
		case header.Value != "" && secretHeaders.Has(name):
			errs = append(errs, field.Forbidden(headerPath.Child("value"), "must not be in a configuration: put it into a file, and set valueFile to its path"))
		case strings.IndexFunc(header.Value, func(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f }) >= 0:
			errs = append(errs, field.Invalid(headerPath.Child("value"), notShown{}, "must be one line without control characters"))
		}
	}
	return errs
}

func validateMatchers(path *field.Path, matchers []config.NodeLoadMatcher) field.ErrorList {
	var errs field.ErrorList
	if len(matchers) > maxMatchers {
		errs = append(errs, field.TooMany(path, len(matchers), maxMatchers))
	}
	for i, matcher := range matchers {
		labelPath, valuePath := path.Index(i).Child("label"), path.Index(i).Child("value")
		errs = append(errs, validateLabel(labelPath, matcher.Label, "clusters or scrape jobs, such as cluster or job")...)
		errs = append(errs, validateOneOf(path.Index(i).Child("operator"), string(matcher.Operator),
			string(config.NodeLoadEqual), string(config.NodeLoadNotEqual),
			string(config.NodeLoadMatches), string(config.NodeLoadNotMatches))...)
		if !utf8.ValidString(matcher.Value) {
			errs = append(errs, field.Invalid(valuePath, matcher.Value, "must be UTF-8"))
		} else if matcher.Operator == config.NodeLoadMatches || matcher.Operator == config.NodeLoadNotMatches {
			if _, err := regexp.Compile(matcher.Value); err != nil {
				errs = append(errs, field.Invalid(valuePath, matcher.Value, "must be a regular expression of RE2: "+err.Error()))
			}
		}
	}
	return errs
}

// validateLabel checks a label of series, which must distinguish something.
func validateLabel(path *field.Path, label, what string) field.ErrorList {
	switch {
	case !labelName.MatchString(label):
		return field.ErrorList{field.Invalid(path, label, "must be the name of a label in Prometheus: letters, digits and '_', not beginning with a digit")}
	case label == termLabel, label == "__name__":
		return field.ErrorList{field.Invalid(path, label, "must be a label that distinguishes "+what)}
	}
	return nil
}

func validateNodeMatch(path *field.Path, match config.NodeLoadNodeMatch) field.ErrorList {
	errs := validateLabel(path.Child("label"), match.Label, "nodes, such as instance or node")
	return append(errs, validateOneOf(path.Child("by"), string(match.By), string(config.NodeLoadMatchAuto), string(config.NodeLoadMatchName),
		string(config.NodeLoadMatchInternalIP), string(config.NodeLoadMatchHostname), string(config.NodeLoadMatchProviderID))...)
}

func validateResources(
	path *field.Path, resources []config.NodeLoadResource, source config.NodeLoadSource) field.ErrorList {
	errs := validateLength(path, len(resources), maxResources, "resources")
	seen := sets.NewString()
	counts := len(resources) == 0
	for i := range resources {
		resource := &resources[i]
		if len(resource.Name) > maxResourceName || !resourceName.MatchString(resource.Name) {
			errs = append(errs, field.Invalid(path.Index(i).Child("name"), resource.Name, fmt.Sprintf(
				"must be 1 to %d letters, digits and '-', with a letter at the beginning and no '-' at the end", maxResourceName)))
		}
		errs = append(errs, validateUnique(path.Index(i).Child("name"), resource.Name, seen)...)
		errs = append(errs, validateResource(path.Index(i), resource, source)...)
		counts = counts || *resource.Weight > 0 || resource.Threshold != nil
	}
	if !counts {
		errs = append(errs, field.Required(path, "at least one with a weight above 0 or a threshold: without one, measurements have no effect"))
	}
	return errs
}

func validateResource(
	path *field.Path, resource *config.NodeLoadResource, source config.NodeLoadSource) field.ErrorList {
	builtInUnit, from := config.NodeLoadRatio, "which the built-in query of "+resource.Name+" returns"
	var errs field.ErrorList
	if source == config.NodeLoadSourceMetricsServer {
		builtInUnit, from = config.NodeLoadAbsolute, "which the source MetricsServer returns"
	} else {
		errs = validateQueries(path, resource)
	}
	if resource.NodeMatch != nil {
		errs = append(errs, validateNodeMatch(path.Child("nodeMatch"), *resource.NodeMatch)...)
	}
	unitErrs := validateOneOf(path.Child("unit"), string(resource.Unit), string(config.NodeLoadRatio), string(config.NodeLoadPercent), string(config.NodeLoadAbsolute))
	if len(unitErrs) == 0 && resource.Query == "" && builtIn.Has(resource.Name) && resource.Unit != builtInUnit {
		unitErrs = field.ErrorList{field.Invalid(path.Child("unit"), string(resource.Unit),
			fmt.Sprintf("must be %s, %s", builtInUnit, from))}
	}
	errs = append(errs, unitErrs...)
	if resource.Capacity != nil && resource.Capacity.Sign() <= 0 {
		errs = append(errs, field.Invalid(path.Child("capacity"), resource.Capacity.String(), "must be more than 0"))
	}
	errs = append(errs, validateDuration(path.Child("window"), resource.Window, 10*time.Second, time.Hour)...)
	if resource.Threshold != nil {
		errs = append(errs, validateRange(path.Child("threshold"), *resource.Threshold, 1, 100)...)
	}
	errs = append(errs, validateRange(path.Child("weight"), *resource.Weight, 0, 100)...)
	errs = append(errs, validateOneOf(path.Child("strategy"), string(resource.Strategy), string(config.NodeLoadLeastUsed),
		string(config.NodeLoadTargetUtilization), string(config.NodeLoadRisk))...)
	errs = append(errs, validateRange(path.Child("target"), *resource.Target, 1, 99)...)
	// Both are written so that NaN fails.
	if margin := *resource.Margin; !(margin >= 0 && margin <= 10) {
		errs = append(errs, field.Invalid(path.Child("margin"), margin, validation.InclusiveRangeError(0, 10)))
	}
	if sensitivity := *resource.Sensitivity; !(sensitivity > 0 && sensitivity <= 10) {
		errs = append(errs, field.Invalid(path.Child("sensitivity"), sensitivity, "must be more than 0 and at most 10"))
	}
	return append(errs, validateEstimator(path.Child("estimator"), &resource.Estimator)...)
}

// queriesOf returns the names and texts of a resource's queries.
func queriesOf(resource *config.NodeLoadResource) []struct{ name, text string } {
	return []struct{ name, text string }{
		{"query", resource.Query}, {"timestampQuery", resource.TimestampQuery}, {"deviationQuery", resource.DeviationQuery},
		{"podQuery", resource.PodQuery}, {"podTimestampQuery", resource.PodTimestampQuery},
	}
}

// validateQueries checks which queries are given; whether they are right PromQL, only Prometheus knows.
func validateQueries(path *field.Path, resource *config.NodeLoadResource) field.ErrorList {
	var errs field.ErrorList
	for _, query := range queriesOf(resource) {
		if query.text != "" && strings.TrimSpace(query.text) == "" {
			errs = append(errs, field.Invalid(path.Child(query.name), query.text, "must not be blank"))
		}
	}
	switch {
	case resource.Query == "" && (resource.TimestampQuery != "" || resource.DeviationQuery != ""):
		errs = append(errs, field.Required(path.Child("query"), "timestampQuery and deviationQuery refer to it"))
	case resource.Query == "" && !builtIn.Has(resource.Name):
		errs = append(errs, field.Required(path.Child("query"), "only "+strings.Join(builtIn.List(), ", ")+" have built-in ones"))
	case resource.Query != "" && resource.TimestampQuery == "":
		errs = append(errs, field.Required(path.Child("timestampQuery"), "with query, the time of its newest raw samples, such as "+
			"max by (instance) (timestamp(node_load1)): what has no age does not count"))
	}
	if resource.PodQuery != "" && resource.PodTimestampQuery == "" {
		errs = append(errs, field.Required(path.Child("podTimestampQuery"), "with podQuery, the time of its newest raw samples, such as "+
			"max by (namespace, pod) (timestamp(container_cpu_usage_seconds_total))"))
	}
	if resource.PodQuery == "" && resource.PodTimestampQuery != "" {
		errs = append(errs, field.Required(path.Child("podQuery"), "podTimestampQuery refers to it"))
	}
	if resource.Query != "" && resource.DeviationQuery == "" && resource.Strategy == config.NodeLoadRisk {
		errs = append(errs, field.Required(path.Child("deviationQuery"), "the strategy Risk scores by the standard deviation of query"))
	}
	return errs
}

func validateEstimator(path *field.Path, estimator *config.NodeLoadEstimator) field.ErrorList {
	var errs field.ErrorList
	if name := string(estimator.Resource); name != "" {
		resourcePath := path.Child("resource")
		if strings.Contains(name, "/") || strings.HasPrefix(name, v1.ResourceHugePagesPrefix) {
			errs = append(errs, corevalidation.ValidateQualifiedName(name, resourcePath)...)
		} else {
			errs = append(errs, validateOneOf(resourcePath, name, string(v1.ResourceCPU), string(v1.ResourceMemory), string(v1.ResourceEphemeralStorage),
				v1.ResourceHugePagesPrefix+"<size>", "<prefix>/<name>")...)
		}
	}
	errs = append(errs, validateOneOf(path.Child("by"), string(estimator.By), string(config.NodeLoadEstimateRequests),
		string(config.NodeLoadEstimateLimits))...)
	errs = append(errs, validateRange(path.Child("factor"), *estimator.Factor, 1, 1000)...)
	if estimator.Default.Sign() < 0 {
		errs = append(errs, field.Invalid(path.Child("default"), estimator.Default.String(), "must be at least 0"))
	}
	if estimator.Annotation != "" {
		// The API server compares them like this, too.
		for _, message := range validation.IsQualifiedName(strings.ToLower(estimator.Annotation)) {
			errs = append(errs, field.Invalid(path.Child("annotation"), estimator.Annotation, message))
		}
	}
	return errs
}

func validateOneOf(path *field.Path, value string, supported ...string) field.ErrorList {
	for _, one := range supported {
		if value == one {
			return nil
		}
	}
	return field.ErrorList{field.NotSupported(path, value, supported)}
}

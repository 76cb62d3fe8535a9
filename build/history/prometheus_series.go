// SPDX-License-Identifier: Apache-2.0

package history

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
	"unique"
)

// sample is what a query found. Query is its place in the table, or one of the constants; Fields has the labels of the
// series, in their order.
type sample struct {
	Query   int               `json:"q"`
	Value   float64           `json:"v"`
	Fields  []string          `json:"f,omitempty"`
	Labels  map[string]string `json:"l,omitempty"`
	Renamed bool              `json:"r,omitempty"`
}

// A scrape of kube-state-metrics has as fields the creation time of the namespace kube-system, and the target.
const (
	notNumber = -1
	scrape    = -2
	// warned has the number of answers that may lack series, and a warning.
	warned = -3
)

// queryKind is what a query asks for of the series that a window has.
type queryKind int

const (
	// values asks for the last values of those that are new, or have another value than when the window began.
	values queryKind = iota
	// firstSeen asks for the first time of those that were not there when the window began, and lastSeen for the last time
	// of those that are gone when it ends.
	firstSeen
	lastSeen
	// average asks for the average in the window of the sum over the series.
	average
)

// promSeries is what each window asks for of a metric, and what a sample changes.
type promSeries struct {
	metric, where, labels string
	kind                  queryKind
	apply                 func(*facts, sample)
	// without says what is unknown without samples.
	without string
}

const (
	ofPod  = "namespace pod uid"
	ofName = "namespace pod"
	inUse  = `container!="",container!="POD"`
)

// table has the series in the order in which windows ask for them and their samples are applied.
var table = []promSeries{
	{metric: "kube_node_created", labels: "node", apply: func(f *facts, s sample) {
		n := f.node(s)
		if n.created != 0 && n.created != s.Value {
			n = &promNode{allocatable: map[string]float64{}}
			f.nodes[s.Fields[0]] = append(f.nodes[s.Fields[0]], n)
		}
		n.created = s.Value
	}, without: "nodes are there from the first scrape on"},
	{metric: "kube_node_labels", labels: "node", apply: func(f *facts, s sample) { f.node(s).labels = s.Labels }},
	{metric: "kube_node_status_allocatable", labels: "node resource", apply: func(f *facts, s sample) {
		n, resource := f.node(s), s.Fields[1]
		old, is := n.allocatable[resource]
		n.changed = n.changed || is && old != s.Value
		n.allocatable[resource] = s.Value
	}, without: "the allocatable resources of nodes without an object are unknown"},
	{metric: "kube_node_info", labels: "node", kind: firstSeen, apply: func(f *facts, s sample) { f.node(s).came(s.Value) }},
	{metric: "kube_node_info", labels: "node", kind: lastSeen, apply: func(f *facts, s sample) { f.node(s).went = s.Value }},
	{metric: "kube_replicaset_owner", labels: "namespace replicaset owner_kind owner_name", apply: madeBy("ReplicaSet"),
		without: "which Deployment a ReplicaSet was of is unknown"},
	{metric: "kube_job_owner", labels: "namespace job_name owner_kind owner_name", apply: madeBy("Job")},
	{metric: "kube_pod_info", labels: ofPod + " node created_by_kind created_by_name priority_class", apply: func(f *facts, s sample) {
		p := f.pod(s)
		p.node, p.class = cmp.Or(s.Fields[3], p.node), s.Fields[6]
		if known(s.Fields[4]) && known(s.Fields[5]) {
			p.owner = [2]string{s.Fields[4], s.Fields[5]}
		}
	}},
	{metric: "kube_pod_created", labels: ofPod, apply: func(f *facts, s sample) {
		p := f.pod(s)
		p.created = s.Value
		if name := [2]string{p.namespace, p.name}; f.byName[name] == nil || f.byName[name].created <= p.created {
			f.byName[name] = p
		}
	}, without: "pods are created when they are first seen, and have no use"},
	{metric: "kube_pod_status_scheduled_time", labels: ofPod, apply: func(f *facts, s sample) { f.pod(s).scheduled = s.Value },
		without: "pods are bound when they are created"},
	{metric: "kube_pod_completion_time", labels: ofPod, apply: func(f *facts, s sample) { f.pod(s).completed = s.Value }},
	{metric: "kube_pod_deletion_timestamp", labels: ofPod, apply: func(f *facts, s sample) { f.pod(s).deleted = s.Value },
		without: "when grace periods began is unknown"},
	{metric: "kube_pod_container_resource_requests", labels: ofPod + " container resource", apply: request(false), without: "requests are those of templates"},
	{metric: "kube_pod_init_container_resource_requests", labels: ofPod + " container resource", apply: request(true)},
	{metric: "kube_pod_init_container_info", where: `restart_policy="Always"`, labels: ofPod + " container", apply: func(f *facts, s sample) {
		f.pod(s).sidecars += s.Fields[3] + " "
	}},
	{metric: "kube_pod_info", labels: ofPod, kind: firstSeen, apply: func(f *facts, s sample) { f.pod(s).came(s.Value) }},
	{metric: "kube_pod_status_phase", where: `phase=~"Succeeded|Failed"`, labels: ofPod, kind: firstSeen, apply: func(f *facts, s sample) {
		f.pod(s).finished = cmp.Or(f.pod(s).finished, s.Value)
	}, without: "a pod of a Job is complete when kube_pod_completion_time says that a container is, and no other one is known to be"},
	{metric: "kube_pod_info", labels: ofPod, kind: lastSeen, apply: func(f *facts, s sample) { f.pod(s).went = s.Value }},
	{metric: "kube_pod_resource_request", labels: ofName + " scheduler priority", apply: func(f *facts, s sample) {
		if p := f.byName[[2]string(s.Fields)]; p != nil {
			p.scheduler, p.priority = s.Fields[2], s.Fields[3]
		}
	}, without: "without kube-scheduler's /metrics/resources, priorities are those of classes and templates"},
	{metric: "container_cpu_usage_seconds_total", where: inUse, labels: ofName, kind: average, apply: use(0), without: "the use of CPU is unknown"},
	{metric: "container_memory_working_set_bytes", where: inUse, labels: ofName, kind: average, apply: use(1), without: "the use of memory is unknown"},
}

// request adds the request of a container, or replaces it.
func request(init bool) func(*facts, sample) {
	return func(f *facts, s sample) {
		p, amount := f.pod(s), promAmount{s.Fields[3], s.Fields[4], init, s.Value}
		p.requests = slices.DeleteFunc(p.requests, func(old promAmount) bool { old.value = amount.value; return old == amount })
		p.requests = append(p.requests, amount)
	}
}

// madeBy is about what made the owner of pods.
func madeBy(kind string) func(*facts, sample) {
	return func(f *facts, s sample) {
		if known(s.Fields[2]) && known(s.Fields[3]) {
			f.workloads[[3]string{s.Fields[0], kind, s.Fields[1]}] = [2]string{s.Fields[2], s.Fields[3]}
		}
	}
}

// known reports whether a label has a value. Older versions of kube-state-metrics write <none>.
func known(label string) bool { return label != "" && label != "<none>" }

// useOf are the resources of use.
var useOf = [2]string{"cpu", "memory"}

// use adds the use of a resource by the latest pod of a name, unless it differs by less than a fifth.
func use(index int) func(*facts, sample) {
	return func(f *facts, s sample) {
		p, now := f.byName[[2]string(s.Fields)], promUse{amounts: [2]float64{-1, -1}}
		if p == nil {
			return
		}
		if len(p.use) > 0 {
			now = p.use[len(p.use)-1]
		}
		if old := now.amounts[index]; old >= 0 && math.Abs(s.Value-old) <= old/5 {
			return
		}
		if len(p.use) > 0 && now.at == f.now {
			p.use = p.use[:len(p.use)-1]
		}
		now.at, now.amounts[index] = f.now, max(0, s.Value)
		p.use = append(p.use, now)
	}
}

// selector returns a selector of series.
func selector(metric string, matchers ...string) string {
	matchers = slices.DeleteFunc(matchers, func(m string) bool { return strings.TrimSpace(m) == "" })
	return metric + "{" + strings.Join(matchers, ",") + "}"
}

// seconds returns a duration of PromQL.
func seconds(s float64) string { return strconv.Itoa(int(s*1000)) + "ms" }

// expression returns the query for a window. before is whether there was a window before it.
func (q promSeries) expression(matchers string, window time.Duration, step string, before bool) string {
	series, length, is := selector(q.metric, q.where, matchers), seconds(window.Seconds()), ""
	if q.metric == "kube_pod_status_phase" {
		is = " == 1"
	}
	// The scrape may have renamed the labels of the object, because those of the target have their names.
	by := "(" + strings.ReplaceAll(q.labels, " ", ",") + ",exported_" + strings.ReplaceAll(q.labels, " ", ",exported_") + ")"
	last, then := fmt.Sprintf("last_over_time(%s[%s])", series, length), fmt.Sprintf("(%s offset %s%s)", series, length, is)
	extreme, other := "min", then
	switch q.kind {
	case average:
		if strings.HasSuffix(q.metric, "_total") {
			series = "rate(" + series + "[5m])"
		}
		// Some scrapes are there twice.
		return fmt.Sprintf("avg_over_time(sum by %s (max by (container,exported_container,%s (%s))[%s:%s])", by, by[1:], series, length, seconds(min(300, window.Seconds())))
	case values:
		if before {
			last += fmt.Sprintf(" unless (%s == %s)", last, then)
		}
		return last
	case lastSeen:
		extreme, other = "max", series
	}
	text := fmt.Sprintf("%[1]s by %[2]s (%[1]s_over_time(timestamp(%[3]s%[4]s)[%[5]s:%[6]s]))", extreme, by, series, is, length, step)
	if before || q.kind == lastSeen {
		text += fmt.Sprintf(" unless on %s %s", by, other)
	}
	return text
}

// sample returns the sample of a series.
func (q promSeries) sample(query int, labels map[string]string, value float64) sample {
	s := sample{Query: query, Value: value}
	for label := range strings.FieldsSeq(q.labels) {
		exported := labels["exported_"+label]
		s.Renamed = s.Renamed || exported != ""
		s.Fields = append(s.Fields, cmp.Or(exported, labels[label]))
	}
	if q.metric == "kube_node_labels" {
		s.Labels = labels
	}
	return s
}

// facts are what is known of the cluster. Times are in seconds; 0 is unknown.
type facts struct {
	// start, now and end are the time that is asked for, and how far it is read.
	start, now, end float64
	// first and last are the first and the last scrape.
	first, last, interval float64
	// created is the creation time of the namespace kube-system.
	created   string
	gaps      [][2]float64
	targets   map[string]bool
	pods      []*promPod
	byUID     map[string]*promPod
	byName    map[[2]string]*promPod
	nodes     map[string][]*promNode
	workloads map[[3]string][2]string
	// samples counts those of each metric, notNumbers those without one, and renamed those whose labels were.
	samples             map[string]int
	notNumbers, renamed int
	// warnings counts the answers that may lack series, and warning is the last reason.
	warnings int
	warning  string
}

func newFacts() *facts {
	return &facts{interval: 30, targets: map[string]bool{}, byUID: map[string]*promPod{}, byName: map[[2]string]*promPod{},
		nodes: map[string][]*promNode{}, workloads: map[[3]string][2]string{}, samples: map[string]int{}}
}

// seen is when something was seen.
type seen struct{ first, went float64 }

func (s *seen) came(at float64) { s.first, s.went = cmp.Or(s.first, at), 0 }

type promPod struct {
	seen
	namespace, name, node      string
	owner                      [2]string
	class, scheduler, priority string
	// finished is when the phase was first seen to be a last one, and end is set when all is read.
	created, scheduled, deleted, completed, finished, end float64
	requests                                              []promAmount
	// sidecars has the names of init containers that do not end, each with a space.
	sidecars string
	use      []promUse
}

// promAmount is the request of a container.
type promAmount struct {
	container, resource string
	init                bool
	value               float64
}

// promUse is the use of the resources useOf from a time on. Less than 0 is unknown.
type promUse struct {
	at      float64
	amounts [2]float64
}

// promNode is a node from its creation to its deletion. changed is whether an allocatable amount was another one before.
type promNode struct {
	seen
	created     float64
	labels      map[string]string
	allocatable map[string]float64
	changed     bool
}

// add adds the samples of a window that ends with to.
func (f *facts) add(samples []sample, to float64) {
	f.measure(samples)
	var scrapes []float64
	for _, s := range samples {
		if s.Query == scrape {
			scrapes = append(scrapes, s.Value)
			f.created, f.targets[s.Fields[1]] = s.Fields[0], true
		}
	}
	slices.Sort(scrapes)
	for _, at := range scrapes {
		if f.last > 0 && at-f.last > 2.5*f.interval {
			f.gaps = append(f.gaps, [2]float64{f.last, at})
		}
		f.first, f.last = cmp.Or(f.first, at), at
	}
	for _, s := range samples {
		switch s.Query {
		case notNumber:
			f.notNumbers++
		case warned:
			f.warnings, f.warning = f.warnings+int(s.Value), strings.Join(s.Fields, "")
		}
		if s.Query < 0 || s.Query >= len(table) || len(s.Fields) != strings.Count(table[s.Query].labels, " ")+1 {
			continue
		}
		q := table[s.Query]
		if s.Renamed {
			f.renamed++
		}
		for i, text := range s.Fields { // Most texts are those of other samples, too.
			s.Fields[i] = unique.Make(text).Value()
		}
		// A subquery sees samples of the 5 minutes before its range, too.
		if early := q.kind != values && s.Value <= f.start; !early || q.labels != ofPod || f.byUID[podKey(s)] != nil {
			f.samples[q.metric]++
			q.apply(f, s)
		}
	}
	f.now = to
}

// measure sets the usual time between two scrapes of one target.
func (f *facts) measure(samples []sample) {
	before, between := map[string]float64{}, []float64{}
	for _, s := range samples {
		if s.Query == scrape {
			if last := before[s.Fields[1]]; last > 0 && s.Value > last {
				between = append(between, s.Value-last)
			}
			before[s.Fields[1]] = s.Value
		}
	}
	if slices.Sort(between); len(between) > 0 {
		f.interval = between[len(between)/2]
	}
}

// podKey returns what tells the pod of a sample from others.
func podKey(s sample) string { return cmp.Or(s.Fields[2], s.Fields[0]+"/"+s.Fields[1]) }

// pod returns the pod of a sample.
func (f *facts) pod(s sample) *promPod {
	p := f.byUID[podKey(s)]
	if p == nil {
		p = &promPod{namespace: s.Fields[0], name: s.Fields[1]}
		f.byUID[podKey(s)] = p
		f.pods = append(f.pods, p)
	}
	return p
}

// node returns the latest node of a sample's name.
func (f *facts) node(s sample) *promNode {
	name := s.Fields[0]
	if len(f.nodes[name]) == 0 {
		f.nodes[name] = []*promNode{{allocatable: map[string]float64{}}}
	}
	return f.nodes[name][len(f.nodes[name])-1]
}

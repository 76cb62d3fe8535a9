// SPDX-License-Identifier: Apache-2.0

package gangs

import (
	"context"
	"fmt"
	"math"
	"sort"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/shared/laterfields"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/shared/saturating"
)

// Cluster is a snapshot that an Attempt changes.
type Cluster interface {
	// Nodes returns the nodes as they are after the changes so far.
	Nodes() []*framework.NodeInfo
	// Place adds a pod to a node of the domain. With preempt it may remove pods from the node for it. It returns a
	// *framework.FitError if the pod fits on no node, and then has changed nothing.
	Place(ctx context.Context, pod *v1.Pod, domain Domain, preempt bool) error
	// Short returns what Place would find for pods of one shape, one after the other, if these are fewer than needed. It
	// returns nil if they are enough, or if it takes too long to know; and changes nothing.
	Short(ctx context.Context, pods []*v1.Pod, domain Domain, needed int, preempt bool) *Try
	// Evicts reports whether pods were removed.
	Evicts() bool
	// Mark returns the state of the cluster, and Undo goes back to it.
	Mark() int
	Undo(mark int)
}

// retries limits how often pods of several shapes are tried in another order.
const retries = 4

// Attempt finds nodes for a gang.
type Attempt struct {
	Gang *Gang
	// Pods are those to place, of which Needed must be. All domains of the gang are tried, unless Domain is one.
	Pods   []*v1.Pod
	Needed int
	Domain Domain
	// Evicting is true if pods that were evicted for the gang have not ended: then it does not preempt again.
	Evicting bool
	// Expired reports whether the attempt takes too long.
	Expired func() bool

	cluster Cluster
	sizes   map[*v1.Pod]float64
	shapes  map[*v1.Pod]string
	mixed   bool
}

// Decision is the result of an Attempt. The changes that Placed and Preempting need are made, and no others.
type Decision struct {
	Result Result
	// Tries are what was found in the domains that have room by cpu and memory, the best one first. Domains is the number
	// of all.
	Tries   []Try
	Domains int
	// Evicting is that of the Attempt.
	Evicting bool
	// Resources is true if MinResources are not free.
	Resources bool
	// Err is an error other than that pods do not fit.
	Err error
}

// Try is what was found in a domain.
type Try struct {
	Domain Domain
	// Found is the number of pods with nodes, and Unfit the first pod without one.
	Found int
	Unfit *v1.Pod
	// Err is why Unfit has no node.
	Err error
}

// Run decides the gang: without preemption in each domain, and then with preemption.
func (a *Attempt) Run(ctx context.Context, cluster Cluster) *Decision {
	a.cluster = cluster
	a.measure()
	domains := a.domains()
	d := &Decision{Result: Unschedulable, Evicting: a.Evicting, Domains: len(domains)}
	passes := []bool{false, true}
	if a.Evicting {
		passes = passes[:1]
	} else if !a.mixed && len(domains) == 1 {
		passes = passes[1:] // Where a pod fits, none is evicted for it, so the first pass would find the same.
	}
	for _, preempt := range passes {
		if d.Resources = !a.hasResources(); d.Resources && !preempt {
			continue
		}
		for i, domain := range domains {
			places := domain.places
			if preempt {
				places = domain.emptied
			}
			// The first one is tried in any case, to tell why it does not hold the gang.
			if places < int64(a.Needed) && (preempt || i > 0) {
				continue
			}
			try, done := a.try(ctx, domain.Domain, preempt)
			switch _, unfit := try.Err.(*framework.FitError); {
			case done:
				if d.Result = Placed; cluster.Evicts() {
					d.Result = Preempting
				}
				try.Unfit, try.Err, d.Resources = nil, nil, false
				d.Tries = append([]Try{try}, d.Tries...)
				return d
			case a.Expired():
				d.Result = Late
				return d
			case try.Err != nil && !unfit:
				d.Err = try.Err
				return d
			}
			if preempt == passes[0] {
				d.Tries = append(d.Tries, try)
			}
		}
	}
	sort.SliceStable(d.Tries, func(i, j int) bool { return d.Tries[i].Found > d.Tries[j].Found })
	return d
}

// try places pods in a domain, in several orders if they differ: one pod after the other is no complete search.
func (a *Attempt) try(ctx context.Context, domain Domain, preempt bool) (best Try, done bool) {
	order := append([]*v1.Pod(nil), a.Pods...)
	sort.SliceStable(order, func(i, j int) bool { return a.sizes[order[i]] > a.sizes[order[j]] })
	if !a.mixed {
		if short := a.cluster.Short(ctx, order, domain, a.Needed, preempt); short != nil {
			return *short, false
		}
	}
	for n := 0; ; n++ {
		mark := a.cluster.Mark()
		try := a.place(ctx, order, domain, preempt)
		if try.Found >= a.Needed && a.hasResources() {
			return try, true
		}
		a.cluster.Undo(mark)
		if n == 0 || try.Found > best.Found {
			best = try
		}
		if _, unfit := try.Err.(*framework.FitError); !unfit || !a.mixed || n == retries || a.Expired() {
			return best, false
		}
		if n == 0 && a.Needed < len(order) {
			// The small ones may be enough.
			for i, j := 0, len(order)-1; i < j; i, j = i+1, j-1 {
				order[i], order[j] = order[j], order[i]
			}
			continue
		}
		for i, pod := range order {
			if pod == try.Unfit {
				copy(order[1:], order[:i])
				order[0] = pod
			}
		}
	}
}

// place tries the pods in this order until too few are left. Where one does not fit, another one of its shape does not.
func (a *Attempt) place(ctx context.Context, order []*v1.Pod, domain Domain, preempt bool) Try {
	try := Try{Domain: domain}
	unfit := map[string]bool{}
	for i, pod := range order {
		if try.Found+len(order)-i < a.Needed || a.Expired() {
			break
		}
		if unfit[a.shapes[pod]] {
			continue
		}
		err := a.cluster.Place(ctx, pod, domain, preempt && try.Found < a.Needed)
		if err == nil {
			try.Found++
			continue
		}
		if try.Unfit == nil {
			try.Unfit, try.Err = pod, err
		}
		if _, fit := err.(*framework.FitError); !fit {
			break
		}
		unfit[a.shapes[pod]] = true
	}
	return try
}

// measure sets the sizes and shapes of the pods. The size is the largest share of the cluster that a pod requests of a
// resource; pods that select nodes come before all others.
func (a *Attempt) measure() {
	total, labels := framework.NewResource(nil), false
	for _, node := range a.cluster.Nodes() {
		add(total, node.Allocatable, 1)
		labels = labels || len(node.PodsWithRequiredAntiAffinity) > 0
	}
	a.sizes, a.shapes = map[*v1.Pod]float64{}, map[*v1.Pod]string{}
	sizes := map[string]float64{}
	for _, pod := range a.Pods {
		shape := Shape(pod, labels)
		size, known := sizes[shape]
		if affinity := pod.Spec.Affinity; !known {
			size = share(requestOf(pod), total)
			if len(pod.Spec.NodeSelector) > 0 || affinity != nil && affinity.NodeAffinity != nil {
				size++
			}
			sizes[shape] = size
		}
		a.shapes[pod], a.sizes[pod] = shape, size
	}
	a.mixed = len(sizes) > 1
}

// Independent reports whether other pods of a gang only take room from a pod: it has no terms about pods.
func Independent(pod *v1.Pod) bool {
	affinity := pod.Spec.Affinity
	return len(pod.Spec.TopologySpreadConstraints) == 0 &&
		(affinity == nil || affinity.PodAffinity == nil && affinity.PodAntiAffinity == nil)
}

// Shape returns what filters read of a pod: pods of one shape fit on the same nodes. Labels count with labels, if pods in
// the cluster select others by them, and for pods that select others.
func Shape(pod *v1.Pod, labels bool) string {
	from := &pod.Spec
	var shape v1.Pod
	if labels || !Independent(pod) {
		shape.Labels = pod.Labels
	}
	shape.Spec = v1.PodSpec{
		SchedulerName: from.SchedulerName, NodeSelector: from.NodeSelector, Affinity: from.Affinity, Tolerations: from.Tolerations,
		TopologySpreadConstraints: from.TopologySpreadConstraints, Priority: from.Priority, Overhead: from.Overhead,
	}
	reduced := func(containers []v1.Container) (of []v1.Container) {
		for i := range containers {
			of = append(of, v1.Container{
				Ports: containers[i].Ports, Resources: v1.ResourceRequirements{Requests: containers[i].Resources.Requests},
			})
		}
		return of
	}
	shape.Spec.Containers, shape.Spec.InitContainers = reduced(from.Containers), reduced(from.InitContainers)
	for _, volume := range from.Volumes {
		// The volumes with the token of the service account have random names.
		if volume.Projected == nil && volume.ConfigMap == nil && volume.Secret == nil && volume.EmptyDir == nil {
			shape.Spec.Volumes = append(shape.Spec.Volumes, volume)
		}
	}
	encoded, err := shape.Marshal()
	if err != nil {
		return string(pod.UID)
	}
	if found := laterfields.Pods.Of(pod.UID); found != nil {
		return fmt.Sprint(string(encoded), *found)
	}
	return string(encoded)
}

// requestOf returns what NodeResourcesFit counts for a pod.
func requestOf(pod *v1.Pod) *framework.Resource { return framework.NewNodeInfo(pod).Requested }

// add adds other to a resource once, or subtracts it if times is -1.
func add(to, other *framework.Resource, times int64) {
	to.MilliCPU = saturating.Add(to.MilliCPU, times*other.MilliCPU)
	to.Memory = saturating.Add(to.Memory, times*other.Memory)
	to.EphemeralStorage = saturating.Add(to.EphemeralStorage, times*other.EphemeralStorage)
	for name, amount := range other.ScalarResources {
		to.SetScalar(name, saturating.Add(to.ScalarResources[name], times*amount))
	}
}

// share returns the largest share of a total that a request has of a resource.
func share(request, total *framework.Resource) (largest float64) {
	compare := func(part, all int64) {
		if all > 0 && float64(part)/float64(all) > largest {
			largest = float64(part) / float64(all)
		}
	}
	compare(request.MilliCPU, total.MilliCPU)
	compare(request.Memory, total.Memory)
	compare(request.EphemeralStorage, total.EphemeralStorage)
	for name, amount := range request.ScalarResources {
		compare(amount, total.ScalarResources[name])
	}
	return largest
}

// Used returns the largest share of a node's resources that is requested.
func Used(node *framework.NodeInfo) float64 { return share(node.Requested, node.Allocatable) }

// hasResources reports whether the MinResources of the gang are free, where the gang's own pods are counted as free.
func (a *Attempt) hasResources() bool {
	if len(a.Gang.MinResources) == 0 {
		return true
	}
	free, name := framework.NewResource(nil), strings.SplitN(a.Gang.Name, "/", 2)
	for _, node := range a.cluster.Nodes() {
		add(free, node.Allocatable, 1)
		add(free, node.Requested, -1)
		for _, on := range node.Pods {
			if on.Pod.Labels[Label] == name[1] && on.Pod.Namespace == name[0] {
				add(free, requestOf(on.Pod), 1)
			}
		}
	}
	least := framework.NewResource(a.Gang.MinResources)
	if least.MilliCPU > free.MilliCPU || least.Memory > free.Memory || least.EphemeralStorage > free.EphemeralStorage {
		return false
	}
	for name, amount := range least.ScalarResources {
		if amount > free.ScalarResources[name] {
			return false
		}
	}
	return true
}

// candidate is a domain to try.
type candidate struct {
	Domain
	// places is the most pods of the gang that cpu, memory and numbers of pods allow, and emptied that without any pod.
	places, emptied int64
}

// domains returns the domains to try: first those of the preferred key, those that hold the gang with the least room to
// spare before the others.
func (a *Attempt) domains() []*candidate {
	if a.Domain.Key != "" || a.Gang.Required == "" && a.Gang.Preferred == "" {
		return []*candidate{{Domain: a.Domain, places: math.MaxInt64, emptied: math.MaxInt64}}
	}
	smallest := framework.NewResource(nil)
	for i, pod := range a.Pods {
		request := requestOf(pod)
		if i == 0 || request.MilliCPU < smallest.MilliCPU {
			smallest.MilliCPU = request.MilliCPU
		}
		if i == 0 || request.Memory < smallest.Memory {
			smallest.Memory = request.Memory
		}
	}
	places := func(free *framework.Resource, pods int64) int64 {
		if n := smallest.MilliCPU; n > 0 && free.MilliCPU/n < pods {
			pods = free.MilliCPU / n
		}
		if n := smallest.Memory; n > 0 && free.Memory/n < pods {
			pods = free.Memory / n
		}
		if pods < 0 {
			return 0
		}
		return pods
	}
	known := map[Domain]*candidate{}
	var list []*candidate
	for _, node := range a.cluster.Nodes() {
		emptied := places(node.Allocatable, int64(node.Allocatable.AllowedPodNumber))
		free := node.Allocatable.Clone()
		add(free, node.Requested, -1)
		now := places(free, int64(node.Allocatable.AllowedPodNumber-len(node.Pods)))
		count := func(domain Domain) {
			c := known[domain]
			if c == nil {
				c = &candidate{Domain: domain}
				known[domain], list = c, append(list, c)
			}
			c.places += now
			c.emptied += emptied
		}
		wide := Domain{}
		if key := a.Gang.Required; key != "" {
			value, found := node.Node().Labels[key]
			if !found {
				continue
			}
			wide = Domain{Key: key, Value: value}
		}
		count(wide)
		if key := a.Gang.Preferred; key != "" {
			if value, found := node.Node().Labels[key]; found {
				count(Domain{Key: key, Value: value, OuterKey: wide.Key, OuterValue: wide.Value})
			}
		}
	}
	sort.Slice(list, func(i, j int) bool {
		x, y := list[i], list[j]
		if narrow := x.Key == a.Gang.Preferred; narrow != (y.Key == a.Gang.Preferred) {
			return narrow
		}
		holds := x.places >= int64(a.Needed)
		switch {
		case holds != (y.places >= int64(a.Needed)):
			return holds
		case x.places != y.places:
			return (x.places < y.places) == holds
		}
		return x.String() < y.String()
	})
	return list
}

// Text describes a decision not to place the gang now.
func (d *Decision) Text(needed int) string {
	var text strings.Builder
	fmt.Fprintf(&text, "It needs places for %d pods", needed)
	if len(d.Tries) > 0 {
		best := d.Tries[0]
		fmt.Fprintf(&text, ", and %d were found", best.Found)
		if d.Domains > 1 {
			fmt.Fprintf(&text, " in the best of %d domains, %s", d.Domains, best.Domain)
		}
		if best.Unfit != nil {
			fmt.Fprintf(&text, ". Pod %s fits nowhere: %s", best.Unfit.Name, strings.TrimSuffix(best.Err.Error(), "."))
		}
	}
	return text.String() + ". " + d.Preemption()
}

// Preemption describes what preemption does for a gang that does not fit.
func (d *Decision) Preemption() string {
	switch {
	case d.Result == Preempting:
		return "Pods are evicted for all of them."
	case d.Evicting:
		return "Pods that were evicted for it have not ended."
	case d.Result == Late:
		return "The attempt took too long, and was undone."
	case d.Resources:
		return "Its minResources are not free, not even after preemption."
	case d.Err != nil:
		return "It was not tried whether preemption makes room."
	}
	return "Preemption does not make room for all of them."
}

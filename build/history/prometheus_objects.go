// SPDX-License-Identifier: Apache-2.0

package history

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/validation"

	"kube-scheduler-fork/build/nextstep"
)

// object is an object, or a part of one.
type object = map[string]any

// below returns a copy of what is below a path of an object, or an empty map.
func below(of object, path ...string) object {
	for _, name := range path {
		of, _ = of[name].(object)
	}
	if of == nil {
		return object{}
	}
	return maps.Clone(of)
}

// present removes fields that have nothing.
func present(of object) object {
	maps.DeleteFunc(of, func(_ string, value any) bool {
		switch value := value.(type) {
		case []any:
			return len(value) == 0
		case object:
			return len(value) == 0
		}
		return value == nil
	})
	return of
}

func text(value any) string { s, _ := value.(string); return s }

// templates are objects of the cluster as it is now.
type templates struct {
	// cluster is the UID of the namespace kube-system, and created its creation time.
	cluster string
	created float64
	byOwner map[[3]string]object
	nodes   map[string]object
	// names are keys of labels and names of resources by their letters and digits. Series have no others.
	names map[string]string
	// failed is why the objects, or some, could not be read.
	failed error
}

// letters returns the letters and digits of a name. kube-state-metrics replaces the others, and writes fooBar as foo_bar.
func letters(name string) string {
	return strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' {
			return r
		}
		return -1
	}, strings.ToLower(name))
}

// created returns when an object was created, or 0.
func created(metadata object) float64 {
	at, err := time.Parse(time.RFC3339, text(metadata["creationTimestamp"]))
	if err != nil {
		return 0
	}
	return float64(at.Unix())
}

// readTemplates reads the objects. of is the creation time of the namespace kube-system that Prometheus knows.
func readTemplates(ctx context.Context, live Live, of string) (*templates, error) {
	t := &templates{byOwner: map[[3]string]object{}, nodes: map[string]object{}, names: map[string]string{}}
	for _, name := range strings.Fields("cpu memory pods ephemeral-storage hugepages-2Mi hugepages-1Gi kubernetes.io/hostname kubernetes.io/arch kubernetes.io/os " +
		"topology.kubernetes.io/zone topology.kubernetes.io/region node.kubernetes.io/instance-type node-role.kubernetes.io/control-plane") {
		t.names[letters(name)] = name
	}
	if live == nil {
		t.failed = fmt.Errorf("there is no cluster to ask")
		return t, nil
	}
	read := func(group, resource string, visit func(metadata, o object)) {
		if err := live(ctx, group, resource, func(o object) error { visit(below(o, "metadata"), o); return nil }); err != nil && t.failed == nil {
			t.failed = fmt.Errorf("%s cannot be read: %.300q", resource, err.Error())
		}
	}
	read("", "namespaces", func(metadata, _ object) {
		if metadata["name"] == "kube-system" {
			t.cluster, t.created = text(metadata["uid"]), created(metadata)
		}
	})
	if t.created != 0 && fmt.Sprint(t.created) != of {
		return nil, nextstep.With(fmt.Errorf("the kubeconfig is of another cluster than the series of Prometheus: its namespace kube-system was created at %s", clock(t.created)),
			"kubectl config get-contexts, then the same command with --context or --matchers")
	}
	read("", "nodes", func(metadata, o object) {
		t.nodes[text(metadata["name"])] = o
		t.learn("", o)
	})
	for _, owner := range [][3]string{{"apps", "replicasets", "ReplicaSet"}, {"apps", "deployments", "Deployment"}, {"apps", "statefulsets", "StatefulSet"},
		{"apps", "daemonsets", "DaemonSet"}, {"batch", "jobs", "Job"}, {"batch", "cronjobs", "CronJob"}, {"", "replicationcontrollers", "ReplicationController"}} {
		read(owner[0], owner[1], func(metadata, o object) {
			template := below(o, "spec", "template")
			if owner[2] == "CronJob" {
				template = below(o, "spec", "jobTemplate", "spec", "template")
			}
			t.byOwner[[3]string{text(metadata["namespace"]), owner[2], text(metadata["name"])}] = template
			t.learn("", template)
		})
	}
	return t, ctx.Err()
}

// learn learns the keys of labels and the names of resources that are in what a field has.
func (t *templates) learn(field string, value any) {
	switch value := value.(type) {
	case []any:
		for _, one := range value {
			t.learn("", one)
		}
	case object:
		for name, one := range value {
			if slices.Contains([]string{"labels", "nodeSelector", "requests", "limits", "allocatable"}, field) {
				t.names[letters(name)] = name
			}
			t.learn(name, one)
		}
	case string:
		if field == "key" || field == "topologyKey" {
			t.names[letters(value)] = value
		}
	}
}

// resource returns the name of a resource. One that nothing names has a name of an extended resource.
func (w *promWriter) resource(label string) string {
	name := w.names[letters(label)]
	if name == "" {
		w.count("resource(s) have the name unknown.history/…: series have their names without dots and slashes, and no object that exists names them")
		name = "unknown.history/" + letters(label)
		w.names[letters(label)] = name
	}
	return name
}

// template returns the template of a pod, and whether it is one of what made its owner, as that is now.
func (w *promWriter) template(p *promPod) (found object, older bool) {
	key := [3]string{p.namespace, p.owner[0], p.owner[1]}
	if found = w.byOwner[key]; found != nil {
		return found, false
	}
	made := w.workloads[key]
	found = w.byOwner[[3]string{p.namespace, made[0], made[1]}]
	return found, found != nil
}

// grace returns the grace period of a pod in seconds.
func (w *promWriter) grace(p *promPod) float64 {
	template, _ := w.template(p)
	if seconds, err := strconv.ParseFloat(fmt.Sprint(below(template, "spec")["terminationGracePeriodSeconds"]), 64); err == nil {
		return seconds
	}
	return 30
}

// spec returns the metadata, without names, and the spec of a pod.
func (w *promWriter) spec(p *promPod) (object, object) {
	template, older := w.template(p)
	metadata, spec := object{}, below(template, "spec")
	if template == nil {
		w.count(fmt.Sprintf("pod(s) have no template: their owner is gone, or has none (%.60q); their node selectors, affinity, tolerations, spread and labels are unknown",
			cmp.Or(p.owner[0], "no owner")))
	} else if older {
		w.count("pod(s) have the template of what made their owner, such as its Deployment, as it is now")
	}
	for _, name := range []string{"labels", "annotations"} {
		metadata[name] = below(template, "metadata", name)
	}
	for field, value := range map[string]string{"priorityClassName": p.class, "schedulerName": p.scheduler} {
		if value != "" {
			spec[field] = value
		}
	}
	if delete(spec, "nodeName"); w.samples["kube_pod_container_resource_requests"] > 0 {
		w.request(p, spec)
	}
	if priority, err := strconv.ParseInt(p.priority, 10, 32); err == nil {
		spec["priority"] = priority
	}
	if list, _ := spec["containers"].([]any); len(list) == 0 {
		spec["containers"] = []any{object{"name": "unknown"}}
	}
	if p.owner[0] == "DaemonSet" {
		w.daemon(p, spec)
	}
	return present(metadata), spec
}

// request sets the requests of a pod's containers. Sidecars are containers: this scheduler does not know them.
func (w *promWriter) request(p *promPod, spec object) {
	if len(p.requests) == 0 {
		w.count("pod(s) have no requests")
	}
	if spec["runtimeClassName"] != nil {
		w.count("pod(s) have a runtimeClassName: their overhead is unknown")
	}
	sidecar := func(name string) bool { return strings.Contains(" "+p.sidecars, " "+name+" ") }
	sums := map[string]map[string]object{"initContainers": {}, "containers": {}}
	for _, a := range p.requests {
		list := sums["containers"]
		if a.init && !sidecar(a.container) {
			list = sums["initContainers"]
		}
		if list[a.container] == nil {
			list[a.container] = object{}
		}
		list[a.container][w.resource(a.resource)] = quantity(a.resource, a.value)
	}
	for list, sums := range sums {
		var containers []any
		before, _ := spec[list].([]any)
		for _, one := range before {
			container, _ := one.(object)
			name := text(container["name"])
			if list == "initContainers" && sidecar(name) {
				continue
			}
			container = below(container)
			// A limit without a request would become one.
			limits := below(container, "resources", "limits")
			maps.DeleteFunc(limits, func(resource string, _ any) bool { return sums[name][resource] == nil })
			container["resources"] = present(object{"requests": sums[name], "limits": limits})
			delete(sums, name)
			containers = append(containers, container)
		}
		// Webhooks add containers, which the template does not have.
		for _, name := range slices.Sorted(maps.Keys(sums)) {
			containers = append(containers, object{"name": name, "resources": object{"requests": sums[name]}})
		}
		spec[list] = containers
	}
	present(spec)
}

// daemon adds the affinity with which the controller of DaemonSets makes a pod. Its tolerations are of taints that nodes have
// for some time, which a history does not have.
func (w *promWriter) daemon(p *promPod, spec object) {
	if p.node == "" {
		w.count("pod(s) of DaemonSets were never bound: which node they were for is unknown")
		return
	}
	affinity, node := below(spec, "affinity"), below(spec, "affinity", "nodeAffinity")
	node["requiredDuringSchedulingIgnoredDuringExecution"] = object{"nodeSelectorTerms": []any{object{"matchFields": []any{
		object{"key": "metadata.name", "operator": "In", "values": []any{p.node}}}}}}
	affinity["nodeAffinity"] = node
	spec["affinity"] = affinity
}

// nodeObject returns a node. Taints of node.kubernetes.io come and go, as with a drain: a history does not have them.
func (w *promWriter) nodeObject(name string, n *promNode) object {
	live := w.templates.nodes[name]
	if n.created != 0 && created(below(live, "metadata")) != n.created {
		live = nil // Another one had its name.
	}
	metadata, status := below(live, "metadata"), below(live, "status")
	taints, _ := below(live, "spec")["taints"].([]any)
	taints = slices.DeleteFunc(slices.Clone(taints), func(one any) bool {
		taint, _ := one.(object)
		return strings.HasPrefix(text(taint["key"]), "node.kubernetes.io/")
	})
	if live == nil {
		w.count("node(s) have no object, or it is unknown: their taints are unknown")
		labels := object{"kubernetes.io/hostname": name}
		for label, value := range n.labels {
			label, is := strings.CutPrefix(label, "label_")
			if key := w.names[letters(label)]; is && key == "" {
				w.count("label(s) of nodes without an object are left out: series have their keys without dots and slashes, and no object that exists names them")
			} else if is && len(validation.IsValidLabelValue(value)) == 0 {
				labels[key] = value
			}
		}
		if len(labels) == 1 {
			w.count("node(s) without an object have no labels: kube-state-metrics has none in kube_node_labels without --metric-labels-allowlist")
		}
		metadata = object{"name": name, "labels": labels, "creationTimestamp": clock(max(0, n.created))}
	}
	if n.changed {
		w.count("node(s) had other allocatable resources before: the last ones count")
	}
	if len(n.allocatable) > 0 {
		allocatable := object{}
		for label, value := range n.allocatable {
			allocatable[w.resource(label)] = quantity(w.resource(label), value)
		}
		status["allocatable"] = allocatable
	}
	return object{"metadata": metadata, "spec": present(object{"taints": taints}), "status": status}
}

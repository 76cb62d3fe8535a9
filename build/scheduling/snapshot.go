// SPDX-License-Identifier: Apache-2.0

package scheduling

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/pager"

	"kube-scheduler-fork/build/nextstep"
)

// pageSize is the number of objects in a page of a list.
const pageSize = 500

// The fields of objects that scheduling depends on. A dot leads into a map, and into each element of a list.
const (
	metadataFields  = "name namespace uid resourceVersion labels annotations ownerReferences creationTimestamp deletionTimestamp deletionGracePeriodSeconds"
	containerFields = "name image resources restartPolicy ports.containerPort ports.hostPort ports.hostIP ports.protocol " +
		"restartPolicyRules.action volumeMounts.bindMountOptions"
	claimFields = "accessModes resources.requests selector storageClassName volumeMode volumeName"
	diskFields  = "csi.driver gcePersistentDisk.pdName gcePersistentDisk.readOnly awsElasticBlockStore.volumeID awsElasticBlockStore.readOnly " +
		"azureDisk.diskName rbd.monitors rbd.image rbd.pool rbd.readOnly iscsi.iqn iscsi.lun iscsi.targetPortal iscsi.readOnly"
)

var (
	podFields = "nodeName nodeSelector affinity tolerations topologySpreadConstraints schedulerName priority priorityClassName preemptionPolicy overhead " +
		"terminationGracePeriodSeconds hostNetwork hostUsers schedulingGates resourceClaims resources schedulingGroup workloadRef " + below("containers", containerFields) + " " + below("initContainers", containerFields) +
		" volumes.name volumes.persistentVolumeClaim " + below("volumes", diskFields) + " volumes.ephemeral.volumeClaimTemplate.metadata.labels " +
		below("volumes.ephemeral.volumeClaimTemplate.spec", claimFields)
	// statusFields include what kubelets of later releases say of resized pods.
	statusFields = "phase startTime nominatedNodeName conditions.type conditions.status conditions.reason conditions.lastTransitionTime " +
		"resources allocatedResources nodeAllocatableResourceClaimStatuses " + below("containerStatuses", "name resources allocatedResources") + " " +
		below("initContainerStatuses", "name resources allocatedResources")
	templateFields = below("spec.template.metadata", "labels annotations") + " " + below("spec.template.spec", podFields)
)

// taken are the objects of a snapshot. Pods are read first: what they refer to is older.
var taken = []struct{ group, resource, fields string }{
	{"", "pods", below("spec", podFields) + " " + below("status", statusFields)},
	{"", "nodes", "spec.unschedulable spec.taints status.allocatable status.capacity status.conditions.type status.conditions.status status.conditions.reason status.images"},
	{"", "persistentvolumes", below("spec", "accessModes capacity claimRef.namespace claimRef.name claimRef.uid nodeAffinity persistentVolumeReclaimPolicy storageClassName volumeMode csi.volumeHandle "+diskFields) + " status.phase"},
	{"", "persistentvolumeclaims", below("spec", claimFields) + " status.phase status.capacity"},
	{"", "namespaces", ""},
	{"", "services", "spec.selector"},
	{"", "replicationcontrollers", "spec.replicas spec.selector " + templateFields},
	{"apps", "replicasets", "spec.replicas spec.selector " + templateFields},
	{"apps", "statefulsets", "spec.replicas spec.selector spec.volumeClaimTemplates.metadata.name " + below("spec.volumeClaimTemplates.spec", claimFields) + " " + templateFields},
	{"apps", "daemonsets", "spec.selector " + templateFields},
	{"apps", "deployments", "spec.replicas spec.selector " + templateFields},
	{"batch", "jobs", "spec.completions spec.parallelism spec.selector spec.completionMode " + templateFields},
	{"policy", "poddisruptionbudgets", "spec status.disruptionsAllowed status.currentHealthy status.desiredHealthy status.expectedPods"},
	{"scheduling.k8s.io", "priorityclasses", "value globalDefault preemptionPolicy"},
	{"storage.k8s.io", "storageclasses", "provisioner volumeBindingMode reclaimPolicy allowedTopologies"},
	{"storage.k8s.io", "csinodes", "spec.drivers.name spec.drivers.topologyKeys spec.drivers.allocatable"},
	{"storage.k8s.io", "csidrivers", "spec.attachRequired spec.storageCapacity"},
	{"storage.k8s.io", "csistoragecapacities", "capacity maximumVolumeSize nodeTopology storageClassName"},
	{"scheduling.sigs.k8s.io", "podgroups", "spec.minMember spec.minResources spec.scheduleTimeoutSeconds status.phase"},
	{"scheduling.sigs.k8s.io", "elasticquotas", "spec status.used"},
	{"topology.node.k8s.io", "noderesourcetopologies", "topologyPolicies zones.name zones.type zones.costs zones.resources"},
	{"metrics.k8s.io", "nodes", "timestamp window usage"},
	{"metrics.k8s.io", "pods", "timestamp window containers.name containers.usage"},
}

// makers are further objects whose templates a history has.
var makers = []struct{ group, resource, fields string }{
	{"batch", "cronjobs", below("spec.jobTemplate", templateFields)},
}

// below puts a path before each of the fields.
func below(path, fields string) string {
	return path + "." + strings.ReplaceAll(fields, " ", " "+path+".")
}

// fields is a tree of the fields to keep. A nil one keeps all below.
type fields map[string]fields

func parseFields(list string) fields {
	root := fields{"apiVersion": nil, "kind": nil}
	for _, path := range strings.Fields(below("metadata", metadataFields) + " " + list) {
		tree, names := root, strings.Split(path, ".")
		for _, name := range names[:len(names)-1] {
			if tree[name] == nil {
				tree[name] = fields{}
			}
			tree = tree[name]
		}
		tree[names[len(names)-1]] = nil
	}
	return root
}

// prune returns what the fields have of a value.
func (f fields) prune(value any) any {
	switch value := value.(type) {
	case map[string]any:
		for name := range value {
			if below, keep := f[name]; !keep {
				delete(value, name)
			} else if below != nil {
				value[name] = below.prune(value[name])
			}
		}
	case []any:
		for i := range value {
			value[i] = f.prune(value[i])
		}
	}
	return value
}

// strip removes from an object what scheduling does not depend on. It reports false for an object that has no pods any more.
func strip(object map[string]any, f fields) bool {
	number := func(path ...string) int64 {
		found, _, _ := unstructured.NestedInt64(object, path...)
		return found
	}
	switch object["kind"] {
	case "ReplicaSet":
		if number("spec", "replicas")+number("status", "replicas") == 0 {
			return false
		}
	case "Job":
		conditions, _, _ := unstructured.NestedSlice(object, "status", "conditions")
		if slices.ContainsFunc(conditions, func(c any) bool {
			condition, _ := c.(map[string]any)
			return condition["status"] == "True" && (condition["type"] == "Complete" || condition["type"] == "Failed")
		}) {
			return false
		}
	}
	prune(object, f)
	return true
}

// prune leaves the fields of an object, and the annotations that are not a copy of it.
func prune(object map[string]any, f fields) {
	f.prune(object)
	annotations, _, _ := unstructured.NestedStringMap(object, "metadata", "annotations")
	for key := range annotations {
		// kubectl's have whole objects, with what is stripped.
		if strings.HasPrefix(key, "kubectl.kubernetes.io/") {
			unstructured.RemoveNestedField(object, "metadata", "annotations", key)
		}
	}
}

var errNotServed = errors.New("the API server does not serve them")

func (o *options) snapshotCommand() *cobra.Command {
	var anonymize bool
	var labels []string
	command := &cobra.Command{
		Use:   "snapshot",
		Short: "Print what scheduling depends on in the cluster, for kubectl scheduling simulate",
		Long: `Prints the objects that scheduling depends on as a List, one on each line, in JSON, which is YAML too: nodes, pods, volumes, budgets, priority classes, the owners of pods,
pod groups, quotas and measured use. It reads them with your own credentials, and leaves out what you may not read.

Environment variables, commands, probes, the contents of volumes and status messages are never printed, nor are Secrets
and ConfigMaps read. Without --anonymize, labels, annotations and names are printed as they are.

With --anonymize, names, labels, taints and images become hashes under a key that is not kept, equal ones equal hashes, each
part between hyphens on its own. What stays: numbers, the keys of kubernetes.io and k8s.io, operating system, architecture and instance type, the names of
resources, CSI drivers and schedulers.`,
		Example: `  kubectl scheduling snapshot > cluster.yaml
  kubectl scheduling snapshot --anonymize --keep-label example.com/pool > cluster.yaml`,
		Args:              cobra.NoArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(command *cobra.Command, _ []string) error {
			hide := func(map[string]any) {}
			if anonymize {
				hide = newAnonymizer(labels).object
			}
			return o.snapshot(command.Context(), hide)
		},
	}
	command.Flags().BoolVar(&anonymize, "anonymize", false, "print hashes instead of names, labels, taints and images")
	command.Flags().StringSliceVar(&labels, "keep-label", nil, "keys of labels and taints that --anonymize leaves as they are, with their values: those that a configuration names")
	return command
}

// snapshot prints the objects, each changed by hide.
func (o *options) snapshot(ctx context.Context, hide func(map[string]any)) error {
	client, served, err := o.clients()
	if err != nil {
		return err
	}
	return o.printServed(ctx, served, client, hide)
}

// clients returns a client, and the resources that the API server serves.
func (o *options) clients() (dynamic.Interface, []*metav1.APIResourceList, error) {
	config, err := o.flags.ToRESTConfig()
	if err != nil {
		return nil, nil, kubeconfigError(err)
	}
	config.QPS = -1
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, nil, err
	}
	discover, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return nil, nil, err
	}
	served, err := discovery.ServerPreferredResources(discover)
	if err != nil && !discovery.IsGroupDiscoveryFailedError(err) {
		return nil, nil, nextstep.With(err, "kubectl get --raw /readyz")
	} else if err != nil {
		fmt.Fprintf(o.ErrOut, "warning: %v\n", err)
	}
	return client, served, nil
}

// byName returns the resources' versions.
func byName(served []*metav1.APIResourceList) map[schema.GroupResource]schema.GroupVersionResource {
	versions := map[schema.GroupResource]schema.GroupVersionResource{}
	for _, list := range served {
		version, _ := schema.ParseGroupVersion(list.GroupVersion)
		for _, resource := range list.APIResources {
			versions[version.WithResource(resource.Name).GroupResource()] = version.WithResource(resource.Name)
		}
	}
	return versions
}

// printServed prints the objects of the resources that the API server serves.
func (o *options) printServed(ctx context.Context, served []*metav1.APIResourceList, client dynamic.Interface, hide func(map[string]any)) error {
	versions := byName(served)
	output := &list{Writer: bufio.NewWriter(o.Out)}
	output.WriteString(`{"apiVersion": "v1", "kind": "List", "items": [` + "\n")
	var counts []string
	skipped := 0
	for _, wanted := range taken {
		name := schema.GroupResource{Group: wanted.group, Resource: wanted.resource}
		count, err := 0, errNotServed
		if version, found := versions[name]; found {
			count, err = o.printAll(ctx, client.Resource(version), output, parseFields(wanted.fields), hide)
		}
		required := name.String() == "pods" || name.String() == "nodes"
		absent := errors.Is(err, errNotServed) || apierrors.IsForbidden(err) || apierrors.IsNotFound(err) || apierrors.IsServiceUnavailable(err)
		switch {
		case err == nil && count > 0:
			counts = append(counts, fmt.Sprintf("%d %s", count, name))
		case err == nil:
		case required || !absent:
			return nextstep.With(fmt.Errorf("%s cannot be read: %w", name, err), "kubectl auth can-i list %s --all-namespaces, then the same command again", name)
		default:
			skipped++
			fmt.Fprintf(o.ErrOut, "warning: %s left out: %v\n", name, err)
		}
	}
	fmt.Fprintf(o.ErrOut, "snapshot: %s; %d kinds left out\n", strings.Join(counts, ", "), skipped)
	output.WriteString("\n]}\n")
	return output.Flush()
}

// list prints a List, an object on each line. JSON is read and written much faster than YAML, and a cut file is no JSON.
type list struct {
	*bufio.Writer
	printed bool
}

// printAll prints all objects of a resource that have not ended, and returns their number.
func (o *options) printAll(ctx context.Context, client dynamic.ResourceInterface, output *list, f fields, hide func(map[string]any)) (int, error) {
	options, count := metav1.ListOptions{}, 0
	if _, pod := f["spec"]["nodeName"]; pod {
		options.FieldSelector = "status.phase!=Succeeded,status.phase!=Failed"
	}
	err := each(ctx, client, options, func(object map[string]any) error {
		if !strip(object, f) {
			return nil
		}
		hide(object)
		if output.printed {
			output.WriteString(",\n")
		}
		output.printed = true
		count++
		text, err := json.Marshal(object)
		output.Write(text)
		return err
	})
	return count, err
}

// each visits the objects of a resource, page by page.
func each(ctx context.Context, client dynamic.ResourceInterface, options metav1.ListOptions, visit func(map[string]any) error) error {
	pages := pager.New(func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
		return client.List(ctx, options)
	})
	pages.PageSize = pageSize
	return pages.EachListItem(ctx, options, func(item runtime.Object) error {
		return visit(item.(*unstructured.Unstructured).Object)
	})
}

// SPDX-License-Identifier: Apache-2.0

package input

import (
	"encoding/json"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/kubernetes/scheme"
	appsdefaults "k8s.io/kubernetes/pkg/apis/apps/v1"
	batchdefaults "k8s.io/kubernetes/pkg/apis/batch/v1"
	coredefaults "k8s.io/kubernetes/pkg/apis/core/v1"
	storagedefaults "k8s.io/kubernetes/pkg/apis/storage/v1"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/shared/laterfields"
)

// kinds are the kinds that are used, by group.
var kinds = map[string]sets.String{
	"": sets.NewString("Node", "Pod", "Namespace", "Service", "PersistentVolume", "PersistentVolumeClaim",
		"ReplicationController"),
	"storage.k8s.io":    sets.NewString("StorageClass", "CSINode", "CSIDriver", "CSIStorageCapacity"),
	"policy":            sets.NewString("PodDisruptionBudget"),
	"scheduling.k8s.io": sets.NewString("PriorityClass"),
	"apps":              sets.NewString("ReplicaSet", "StatefulSet", "DaemonSet", "Deployment"),
	"batch":             sets.NewString("Job", "CronJob"),
	"metrics.k8s.io":    sets.NewString("NodeMetrics", "PodMetrics"),
}

var clusterScoped = sets.NewString("Node", "Namespace", "PersistentVolume", "StorageClass", "CSINode", "CSIDriver",
	"PriorityClass", "NodeMetrics")

// defaults sets the API server's defaults, which manifests lack.
var defaults = runtime.NewScheme()

func init() {
	utilruntime.Must(coredefaults.RegisterDefaults(defaults))
	utilruntime.Must(storagedefaults.RegisterDefaults(defaults))
	utilruntime.Must(appsdefaults.RegisterDefaults(defaults))
	utilruntime.Must(batchdefaults.RegisterDefaults(defaults))
}

// key is an object's identity.
type key struct {
	kind            schema.GroupKind
	namespace, name string
}

// newKey returns the key of an object of the core group.
func newKey(kind, namespace, name string) key {
	return key{schema.GroupKind{Kind: kind}, namespace, name}
}

func (k key) String() string {
	return k.kind.Kind + " " + strings.TrimPrefix(k.namespace+"/"+k.name, "/")
}

// decoded is the object of an item, as one of object, custom, and usage. It has none of them if it is not used.
type decoded struct {
	place
	key
	object runtime.Object
	custom *unstructured.Unstructured
	usage  *metrics
	// found are the later fields of a pod or a template, and evictUnhealthy is a budget's.
	found          *laterfields.Found
	evictUnhealthy bool
	// time is the latest time in the object.
	time time.Time
	err  error
}

// metrics has the fields of both kinds of metrics.k8s.io.
type metrics struct {
	metav1.ObjectMeta `json:"metadata"`
	container         `json:",inline"`
	Containers        []container `json:"containers"`
}

type container struct {
	Usage v1.ResourceList `json:"usage"`
}

// decode sets the object of an item, without what scheduling does not need.
func (d *decoded) decode(i *item) error {
	var own metav1.TypeMeta
	if i.yaml {
		// Most objects may be ignored: their text is not parsed.
		own.APIVersion, own.Kind = i.typeOfYAML()
	}
	if own.Kind == "" || own.APIVersion == "" {
		own = metav1.TypeMeta{Kind: i.kind, APIVersion: i.apiVersion}
		if err := i.toJSON(); err != nil {
			return err
		}
		if err := utiljson.Unmarshal(i.text, &own); err != nil {
			return i.fail("correct the object", "its kind cannot be decoded: %s", reason(err))
		}
	}
	gvk := own.GroupVersionKind()
	if gvk.Kind == "" || gvk.Version == "" {
		return i.fail(saveAgain, "the object has no kind and apiVersion")
	}
	d.kind = gvk.GroupKind()
	used := kinds[gvk.Group].Has(gvk.Kind)
	if !used && !isCustom(gvk.Group) {
		return nil
	}
	if used && !strings.HasPrefix(gvk.Version, "v1") {
		return i.fail("save it as v1, for example with kubectl get "+strings.ToLower(gvk.Kind)+".v1."+gvk.Group+" -A -o yaml",
			"%s has version %s, which cannot be converted", gvk.Kind, gvk.Version)
	}
	if err := i.toJSON(); err != nil {
		return err
	}
	var object metav1.Object
	var into interface{}
	version := gvk.Version
	switch {
	case !used:
		d.custom = &unstructured.Unstructured{}
		object, into = d.custom, &d.custom.Object
	case gvk.Group == "metrics.k8s.io":
		d.usage = &metrics{}
		object, into = d.usage, d.usage
	default:
		// The versions of these kinds have the same fields.
		if gvk.Version = "v1"; gvk.Kind == "CSIStorageCapacity" {
			gvk.Version = "v1beta1"
		}
		created, err := scheme.Scheme.New(gvk)
		if err != nil {
			return err
		}
		d.object, object, into = created, created.(metav1.Object), created
	}
	if err := utiljson.Unmarshal(i.text, into); err != nil {
		return i.fail("correct the object", "%s cannot be decoded: %s", gvk.Kind, reason(err))
	}
	if object.GetName() == "" {
		return i.fail("correct the object", "%s has no name", gvk.Kind)
	}
	if object.GetNamespace() == "" && used && !clusterScoped.Has(gvk.Kind) {
		object.SetNamespace(v1.NamespaceDefault)
		if i.namespace != "" {
			object.SetNamespace(i.namespace)
		}
	}
	d.namespace, d.name = object.GetNamespace(), object.GetName()
	object.SetManagedFields(nil)
	annotations := object.GetAnnotations()
	delete(annotations, v1.LastAppliedConfigAnnotation)
	object.SetAnnotations(annotations)
	d.later(object.GetCreationTimestamp())
	if d.object == nil {
		return nil
	}
	d.object.GetObjectKind().SetGroupVersionKind(gvk)
	defaults.Default(d.object)
	d.readLater(i.text)
	return d.finish(version)
}

// readLater reads the fields of later releases that the types lack. Those of a pod or a template change its requests.
func (d *decoded) readLater(text []byte) {
	var object struct {
		Spec struct {
			Template, JobTemplate      json.RawMessage
			UnhealthyPodEvictionPolicy string
		}
	}
	template, _ := templateOf(d.object)
	pod, isPod := d.object.(*v1.Pod)
	_, isBudget := d.object.(*policyv1.PodDisruptionBudget)
	if template != nil || isBudget {
		_ = json.Unmarshal(text, &object) // It has been decoded before.
	}
	switch {
	case isPod && !laterfields.MayBeIn(text, pod):
	case isPod:
		// Nothing is refused that has a node already. The pod that its owner makes in its place may be.
		again := pod.DeepCopy()
		again.Spec.NodeName = ""
		d.found = laterfields.FromJSON(text, again)
		laterfields.FromJSON(text, pod)
	case object.Spec.JobTemplate != nil:
		d.readLater(object.Spec.JobTemplate)
	case template != nil:
		of := &v1.Pod{ObjectMeta: template.ObjectMeta, Spec: template.Spec}
		d.found = laterfields.FromJSON(object.Spec.Template, of)
		template.Spec = of.Spec
	case isBudget:
		d.evictUnhealthy = object.Spec.UnhealthyPodEvictionPolicy == "AlwaysAllow"
	}
}

// isCustom reports whether objects of a group are kept for plugins of other projects.
func isCustom(group string) bool {
	return !scheme.Scheme.IsGroupRegistered(group) && (group == "topology.node.k8s.io" ||
		strings.HasSuffix(group, "x-k8s.io") || strings.HasSuffix(group, "sigs.k8s.io"))
}

// latestTime is the end of the times that are taken seriously: later ones would leave no room for a simulation.
var latestTime = time.Date(2100, 1, 1, 0, 0, 0, 0, time.UTC)

// later notes times of the object.
func (d *decoded) later(times ...metav1.Time) {
	for _, t := range times {
		if t.Time.After(d.time) && t.Time.Before(latestTime) {
			d.time = t.Time
		}
	}
}

// finish drops what is not needed, and finds the latest time.
func (d *decoded) finish(version string) error {
	switch object := d.object.(type) {
	case *v1.Node:
		for _, c := range object.Status.Conditions {
			d.later(c.LastTransitionTime, c.LastHeartbeatTime)
		}
	case *v1.Pod:
		stripSpec(&object.Spec)
		stripStatus(&object.Status)
		if object.UID == "" {
			object.UID = types.UID(d.namespace + "/" + d.name)
		}
		if object.Status.StartTime != nil {
			d.later(*object.Status.StartTime)
		}
		for _, c := range object.Status.Conditions {
			d.later(c.LastTransitionTime)
		}
		if object.Status.Phase == v1.PodSucceeded || object.Status.Phase == v1.PodFailed {
			d.object, d.kind.Kind = nil, "ended Pod"
		}
		return d.check(object, object.Name)
	case *policyv1.PodDisruptionBudget:
		// An empty selector matches no pods in v1beta1, and all in v1.
		if version == "v1beta1" && equality.Semantic.DeepEqual(object.Spec.Selector, &metav1.LabelSelector{}) {
			object.Spec.Selector = nil
		}
	default:
		if template, _ := templateOf(object); template != nil {
			stripSpec(&template.Spec)
		}
	}
	return nil
}

// check returns an error for a pod that an API server would not accept, and that would break a simulation.
func (p place) check(pod *v1.Pod, name string) error {
	if wrong := append(validation.IsDNS1123Subdomain(name), validation.IsDNS1123Label(pod.Namespace)...); len(wrong) > 0 {
		return p.fail("use lowercase letters, digits, - and .", "Pod %s/%s has a name or namespace that is not valid", pod.Namespace, name)
	}
	for _, containers := range [][]v1.Container{pod.Spec.Containers, pod.Spec.InitContainers} {
		for _, c := range containers {
			for resource, quantity := range c.Resources.Requests {
				if quantity.Sign() < 0 {
					return p.fail("request at least 0", "Pod %s/%s requests less than 0 of %s", pod.Namespace, name, resource)
				}
			}
		}
	}
	return nil
}

// stripSpec drops what may be secret, and what plugins do not read.
func stripSpec(spec *v1.PodSpec) {
	strip := func(containers []v1.Container) []v1.Container {
		// The decoder's list has room for more, which the new one has not.
		var kept []v1.Container
		for _, c := range containers {
			kept = append(kept, v1.Container{Name: c.Name, Image: c.Image, Ports: c.Ports, Resources: c.Resources,
				ImagePullPolicy: c.ImagePullPolicy, SecurityContext: c.SecurityContext})
		}
		return kept
	}
	spec.InitContainers, spec.Containers = strip(spec.InitContainers), strip(spec.Containers)
	spec.EphemeralContainers, spec.ImagePullSecrets = nil, nil
	var volumes []v1.Volume
	for _, volume := range spec.Volumes {
		// The names of projected volumes differ, and share could not do its work.
		if volume.Projected == nil {
			volumes = append(volumes, volume)
		}
	}
	spec.Volumes = volumes
}

// stripStatus drops what plugins do not read.
func stripStatus(status *v1.PodStatus) {
	*status = v1.PodStatus{Phase: status.Phase, Conditions: status.Conditions, StartTime: status.StartTime,
		NominatedNodeName: status.NominatedNodeName, QOSClass: status.QOSClass,
		ContainerStatuses: append([]v1.ContainerStatus(nil), status.ContainerStatuses...)}
}

// share replaces parts of a pod by equal parts of another pod, to save memory.
func share(pod, like *v1.Pod) {
	if equality.Semantic.DeepEqual(pod.Labels, like.Labels) {
		pod.Labels = like.Labels
	}
	if equality.Semantic.DeepEqual(pod.OwnerReferences, like.OwnerReferences) {
		pod.OwnerReferences = like.OwnerReferences
	}
	spec := like.Spec
	spec.NodeName = pod.Spec.NodeName
	if equality.Semantic.DeepEqual(pod.Spec, spec) {
		pod.Spec = spec
	}
}

// SPDX-License-Identifier: Apache-2.0

package scheduling

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base32"
	"regexp"
	"slices"
	"strings"
)

// anonymizer replaces texts by hashes: equal texts by equal ones wherever they are, so that all relations stay.
type anonymizer struct {
	// key is not kept, so nobody can try names.
	key []byte
	// labels are the keys of labels and taints that stay, with their values.
	labels []string
	// hashes are those of the parts so far.
	hashes map[string]string
}

func newAnonymizer(labels []string) *anonymizer {
	key := make([]byte, sha256.Size)
	_, _ = rand.Read(key) // It never returns an error.
	return &anonymizer{key, append([]string{"kubernetes.io/os", "kubernetes.io/arch", "beta.kubernetes.io/os", "beta.kubernetes.io/arch",
		"node.kubernetes.io/instance-type", "beta.kubernetes.io/instance-type"}, labels...), map[string]string{}}
}

var (
	// numbers stay, because Gt and Lt compare them.
	number = regexp.MustCompile(`^[-+]?[0-9]+(\.[0-9]+)?$`)
	// plain are the fields whose texts are words of the API, quantities and times.
	plain = words(`apiVersion kind operator effect phase status protocol schedulerName preemptionPolicy whenUnsatisfiable volumeMode accessModes
		driver provisioner volumeBindingMode reclaimPolicy persistentVolumeReclaimPolicy creationTimestamp deletionTimestamp startTime
		lastTransitionTime timestamp window minAvailable maxUnavailable unhealthyPodEvictionPolicy topologyPolicies completionMode
		restartPolicy capacity maximumVolumeSize nodeAffinityPolicy nodeTaintsPolicy action`)
	// amounts are maps from names of resources.
	amounts = words("allocatable capacity requests limits overhead usage min max used minResources allocatedResources mapping")
	// known are texts that are the same in all clusters.
	known = words(`default kube-system system-cluster-critical system-node-critical 0.0.0.0 metadata.name latest Node
		Ready MemoryPressure DiskPressure PIDPressure NetworkUnavailable PodScheduled Initialized ContainersReady Unschedulable
		PodResizePending PodResizeInProgress Infeasible Deferred`)
	// zones may have several values in one, with two underscores between them.
	zones = words("topology.kubernetes.io/zone failure-domain.beta.kubernetes.io/zone topology.kubernetes.io/region failure-domain.beta.kubernetes.io/region")
	// ofControllers are keys of labels that Kubernetes' controllers set.
	ofControllers = words("pod-template-hash pod-template-generation controller-revision-hash controller-uid job-name")
	// references are annotations that name objects.
	references = words("volume.kubernetes.io/selected-node volume.beta.kubernetes.io/storage-class")
)

func words(list string) map[string]bool {
	set := map[string]bool{}
	for _, word := range strings.Fields(list) {
		set[word] = true
	}
	return set
}

// maxParts is the number of hashes that fit into the value of a label.
const maxParts = 7

// word returns the hash of each part of a text between hyphens, because names of pods, ReplicaSets and claims are made
// from other names in this way.
func (a *anonymizer) word(text string) string {
	if text == "" || known[text] || number.MatchString(text) {
		return text
	}
	parts := strings.SplitN(text, "-", maxParts)
	for i, part := range parts {
		if a.hashes[part] == "" {
			hash := hmac.New(sha256.New, a.key)
			hash.Write([]byte(part))
			a.hashes[part] = "x" + strings.ToLower(base32.HexEncoding.EncodeToString(hash.Sum(nil))[:7])
		}
		parts[i] = a.hashes[part]
	}
	return strings.Join(parts, "-")
}

// wellKnown reports whether a key or a group belongs to Kubernetes.
func wellKnown(key string) bool {
	domain, _, _ := strings.Cut(key, "/")
	return strings.HasSuffix("."+domain, ".kubernetes.io") || strings.HasSuffix("."+domain, ".k8s.io")
}

// labelKey returns the key of a label or a taint.
func (a *anonymizer) labelKey(key string) string {
	if wellKnown(key) || ofControllers[key] || slices.Contains(a.labels, key) {
		return key
	}
	return a.word(key)
}

// labelValue returns the value of a label or a taint.
func (a *anonymizer) labelValue(key, value string) string {
	switch {
	case slices.Contains(a.labels, key):
		return value
	case zones[key]:
		parts := strings.Split(value, "__")
		for i := range parts {
			parts[i] = a.word(parts[i])
		}
		return strings.Join(parts, "__")
	}
	return a.word(value)
}

// image returns an image's name, with the tag on its own: the scheduler adds :latest if there is none.
func (a *anonymizer) image(name string) string {
	if colon := strings.LastIndexByte(name, ':'); colon > strings.LastIndexByte(name, '/') {
		return a.word(name[:colon]) + ":" + a.word(name[colon+1:])
	}
	return a.word(name)
}

// object replaces the texts of an object.
func (a *anonymizer) object(object map[string]any) {
	a.fields(text(object["kind"]), "", object)
}

// fields replaces the texts in a map, which is the field name of an object.
func (a *anonymizer) fields(kind, name string, values map[string]any) map[string]any {
	key, keyed := values["key"].(string)
	switch {
	case amounts[name]:
	case name == "annotations":
		return a.annotations(values)
	case name == "labels", name == "matchLabels", name == "nodeSelector", name == "selector" && (kind == "Service" || kind == "ReplicationController"):
		return a.labelled(values)
	case keyed:
		a.keyed(key, values)
	default:
		if group, version, _ := strings.Cut(text(values["apiVersion"]), "/"); name == "ownerReferences" && strings.Contains(group, ".") && !wellKnown(group) {
			values["apiVersion"], values["kind"] = a.word(group)+"/"+version, a.word(text(values["kind"]))
		}
		for below, value := range values {
			values[below] = a.value(kind, name, below, value)
		}
	}
	return values
}

// value replaces the texts in the value of a field, which is in the field above.
func (a *anonymizer) value(kind, above, name string, value any) any {
	switch value := value.(type) {
	case map[string]any:
		return a.fields(kind, name, value)
	case []any:
		for i := range value {
			value[i] = a.value(kind, above, name, value[i])
		}
	case string:
		switch {
		case plain[name], above == "resources", above == "drivers" && name == "name", above == "metadata" && name == "name" && kind == "CSIDriver",
			kind == "NodeResourceTopology" && above != "metadata" && above != "ownerReferences":
		case name == "topologyKey", name == "topologyKeys", name == "matchLabelKeys", name == "mismatchLabelKeys":
			return a.labelKey(value)
		case name == "image", above == "images":
			return a.image(value)
		default:
			return a.word(value)
		}
	}
	return value
}

// keyed replaces the key and the values of a taint, a toleration or a requirement.
func (a *anonymizer) keyed(key string, values map[string]any) {
	values["key"] = a.labelKey(key)
	if value, ok := values["value"].(string); ok {
		values["value"] = a.labelValue(key, value)
	}
	list, _ := values["values"].([]any)
	for i := range list {
		list[i] = a.labelValue(key, text(list[i]))
	}
}

func (a *anonymizer) labelled(labels map[string]any) map[string]any {
	hidden := map[string]any{}
	for key, value := range labels {
		hidden[a.labelKey(key)] = a.labelValue(key, text(value))
	}
	return hidden
}

// annotations returns those that scheduling depends on.
func (a *anonymizer) annotations(annotations map[string]any) map[string]any {
	hidden := map[string]any{}
	for key, value := range annotations {
		switch value := text(value); {
		case references[key]:
			hidden[key] = a.word(value)
		case wellKnown(key) && (value == "yes" || value == "true" || number.MatchString(value)):
			hidden[key] = value
		}
	}
	return hidden
}

func text(value any) string {
	found, _ := value.(string)
	return found
}

// SPDX-License-Identifier: Apache-2.0

package laterfields

import (
	"fmt"

	v1 "k8s.io/api/core/v1"
)

// Field is a field of pods that Kubernetes got after 1.23 and that changes where a pod may run or what it uses.
type Field struct {
	Path string
	// Since is the first minor release of 1 whose API has the field, or the value of it that counts.
	Since int
	// Effect is "counted" for a field that changes the pod's requests, "honoured" for one that changes where the pod
	// may run, as in later releases, and "waits" if a pod with it is not placed.
	Effect string
	waits  func(fields *later, pod *v1.Pod) bool
}

// Fields are all such fields. docs/leaving-1.23.md has them too, with those that change nothing.
var Fields = []Field{
	{"spec.schedulingGates", 26, "honoured", nil},
	{"spec.topologySpreadConstraints[].minDomains", 24, "honoured", nil},
	{"spec.topologySpreadConstraints[].nodeAffinityPolicy", 25, "honoured", nil},
	{"spec.topologySpreadConstraints[].nodeTaintsPolicy", 25, "honoured", nil},
	{"spec.topologySpreadConstraints[].matchLabelKeys", 25, "honoured", nil},
	{"spec.initContainers[].restartPolicy", 28, "counted", nil},
	{"spec.resourceClaims", 26, "waits", func(f *later, _ *v1.Pod) bool { return len(f.Spec.ResourceClaims) > 0 }},
	{"spec.resources", 32, "waits", func(f *later, _ *v1.Pod) bool {
		return len(f.Spec.Resources.Requests)+len(f.Spec.Resources.Limits) > 0
	}},
	{"spec.workloadRef", 35, "waits", func(f *later, _ *v1.Pod) bool { return bool(f.Spec.WorkloadRef) }},
	{"spec.schedulingGroup", 36, "waits", func(f *later, _ *v1.Pod) bool { return bool(f.Spec.SchedulingGroup) }},
	{"spec.tolerations[].operator", 35, "waits", hasLaterToleration},
	{"spec.hostUsers with spec.hostNetwork", 35, "waits", func(f *later, pod *v1.Pod) bool {
		return pod.Spec.HostNetwork && f.Spec.HostUsers != nil && !*f.Spec.HostUsers
	}},
	{"spec.containers[].restartPolicyRules[].action", 35, "waits", func(f *later, _ *v1.Pod) bool {
		restarts, _ := ofContainers(f)
		return restarts
	}},
	{"spec.containers[].volumeMounts[].bindMountOptions", 37, "waits", func(f *later, _ *v1.Pod) bool {
		_, options := ofContainers(f)
		return options
	}},
	{"status.containerStatuses[].allocatedResources", 27, "counted", nil},
	{"status.containerStatuses[].resources", 27, "counted", nil},
	{"status.allocatedResources", 35, "counted", nil},
	{"status.resources", 35, "counted", nil},
	{"status.nodeAllocatableResourceClaimStatuses", 36, "counted", nil},
}

// refusal returns the sentence of the first field for which the pod waits, or nothing.
func refusal(fields *later, pod *v1.Pod) string {
	for _, f := range Fields {
		if f.waits != nil && f.waits(fields, pod) {
			return fmt.Sprintf("the pod's %s is known to Kubernetes 1.%d and later, and not to this scheduler: it does not "+
				"place this pod", f.Path, f.Since)
		}
	}
	return ""
}

// hasLaterToleration reports whether a toleration has an operator that 1.23 lacks: Lt or Gt.
func hasLaterToleration(_ *later, pod *v1.Pod) bool {
	for i := range pod.Spec.Tolerations {
		if o := pod.Spec.Tolerations[i].Operator; o != "" && o != v1.TolerationOpEqual && o != v1.TolerationOpExists {
			return true
		}
	}
	return false
}

// ofContainers reports whether a container needs nodes that can restart all containers (as a rule other than Restart
// says), and whether one needs nodes that know the options of its mounts.
func ofContainers(f *later) (restarts, options bool) {
	for _, containers := range [][]laterContainer{f.Spec.Containers, f.Spec.InitContainers} {
		for _, c := range containers {
			for _, rule := range c.RestartRules {
				restarts = restarts || rule.Action != "Restart"
			}
			for _, mount := range c.VolumeMounts {
				options = options || len(mount.BindMountOptions) > 0
			}
		}
	}
	return restarts, options
}

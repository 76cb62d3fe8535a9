// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"slices"
	"strconv"
	"syscall"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/pointer"
	"sigs.k8s.io/kustomize/kyaml/yaml"
)

// NonRootUser is the user and the group of a hardened scheduler that does not run as root. Nothing else uses the number:
// systemd assigns none above 65519, and images often have 65532.
const NonRootUser = 65530

// securityContext returns the fields of the container's securityContext that Hardened and NonRoot set.
func (s Swap) securityContext() []entry {
	typed := func(tag, value string) *yaml.Node { return &yaml.Node{Kind: yaml.ScalarNode, Tag: tag, Value: value} }
	fields := []entry{
		{"allowPrivilegeEscalation", typed(yaml.NodeTagBool, "false")},
		{"capabilities", mapping(entry{"drop", sequence(scalar("ALL"))})},
		{"readOnlyRootFilesystem", typed(yaml.NodeTagBool, "true")},
	}
	if s.NonRoot {
		user := strconv.Itoa(NonRootUser)
		fields = append(fields, entry{"runAsGroup", typed(yaml.NodeTagInt, user)},
			entry{"runAsNonRoot", typed(yaml.NodeTagBool, "true")}, entry{"runAsUser", typed(yaml.NodeTagInt, user)})
	}
	return fields
}

// describeSecurity sets Hardened and NonRoot of the swap.
func (p *Pod) describeSecurity() {
	c := p.Container().SecurityContext
	if c == nil {
		return
	}
	p.Swap.Hardened = !pointer.BoolDeref(c.AllowPrivilegeEscalation, true) && pointer.BoolDeref(c.ReadOnlyRootFilesystem, false) &&
		c.Capabilities != nil && len(c.Capabilities.Add) == 0 && slices.Equal(c.Capabilities.Drop, []corev1.Capability{"ALL"})
	p.Swap.NonRoot = pointer.BoolDeref(c.RunAsNonRoot, false) && pointer.Int64Deref(c.RunAsUser, 0) == NonRootUser && pointer.Int64Deref(c.RunAsGroup, 0) == NonRootUser
}

// withoutSecurity removes the fields that securityContext sets.
func withoutSecurity(container *corev1.Container) {
	c := container.SecurityContext
	if c == nil {
		return
	}
	c.AllowPrivilegeEscalation, c.Capabilities, c.ReadOnlyRootFilesystem = nil, nil, nil
	c.RunAsGroup, c.RunAsNonRoot, c.RunAsUser = nil, nil, nil
	if *c == (corev1.SecurityContext{}) {
		container.SecurityContext = nil
	}
}

// User returns the user of a pod's container; nil: root, or not set in the manifest.
func (p *Pod) User() *syscall.Credential {
	user, group := int64(0), int64(0)
	if s := p.Object.Spec.SecurityContext; s != nil {
		user, group = pointer.Int64Deref(s.RunAsUser, user), pointer.Int64Deref(s.RunAsGroup, group)
	}
	if s := p.Container().SecurityContext; s != nil {
		user, group = pointer.Int64Deref(s.RunAsUser, user), pointer.Int64Deref(s.RunAsGroup, group)
	}
	if user == 0 && group == 0 {
		return nil
	}
	return &syscall.Credential{Uid: uint32(user), Gid: uint32(group)}
}

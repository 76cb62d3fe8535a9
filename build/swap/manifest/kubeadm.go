// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"bytes"
	"fmt"

	"sigs.k8s.io/kustomize/kyaml/yaml"
)

// KubeadmPatchFile is the file name that kubeadm expects for the patch.
const KubeadmPatchFile = "kube-scheduler+strategic.yaml"

// KubeadmPatch returns the strategic merge patch that makes `kubeadm upgrade --patches` and `kubeadm join --patches`
// write the swapped manifest. Two parts of a swap are missing: --config, because a strategic merge cannot add to a list
// of strings (see ClusterConfigurationLines), and RestartedAt, which is specific to one node and moment.
func KubeadmPatch(swap Swap) ([]byte, error) {
	if err := swap.check(); err != nil {
		return nil, err
	}
	container := []entry{{"name", scalar(program)}, {"image", scalar(swap.Image)}}
	spec := []entry{{"containers", nil}}
	var mounts, volumes []*yaml.Node
	for _, v := range swap.volumes() {
		mounts, volumes = append(mounts, v.mountNode()), append(volumes, v.node())
	}
	if len(volumes) > 0 {
		container = append(container, entry{"volumeMounts", sequence(mounts...)})
		spec = append(spec, entry{"volumes", sequence(volumes...)})
	}
	if swap.Hardened {
		container = append(container, entry{"securityContext", mapping(swap.securityContext()...)})
	}
	spec[0].value = sequence(mapping(container...))
	var annotations []entry
	for _, e := range swap.annotations() {
		if e.value.Value != "" && e.key != RestartedAtAnnotation {
			annotations = append(annotations, e)
		}
	}
	var patch []entry
	if len(annotations) > 0 {
		patch = append(patch, entry{"metadata", mapping(entry{"annotations", mapping(annotations...)})})
	}
	patch = append(patch, entry{"spec", mapping(spec...)})

	var written bytes.Buffer
	fmt.Fprintf(&written, "# Keeps the swapped %s when kubeadm writes its manifest: name this file %s in the folder of\n"+
		"# `kubeadm upgrade --patches` or `kubeadm join --patches`.\n", program, KubeadmPatchFile)
	err := yaml.NewEncoder(&written).Encode(mapping(patch...))
	return written.Bytes(), err
}

// ClusterConfigurationLines returns the lines that add --config to kubeadm's ClusterConfiguration, for a swap with a
// configuration. They are the same for every install.
func ClusterConfigurationLines() string {
	return "scheduler:\n  extraArgs:\n    config: " + ContainerConfigPath + "\n"
}

// SPDX-License-Identifier: Apache-2.0

package staticpod

import (
	"bytes"
	"fmt"

	"sigs.k8s.io/kustomize/kyaml/yaml"
)

// KubeadmPatchFile is the file name under which kubeadm finds the patch.
const KubeadmPatchFile = "kube-scheduler+strategic.yaml"

// KubeadmPatch gives the strategic merge patch with which `kubeadm upgrade --patches` and `kubeadm join --patches` write the
// swapped manifest: everything of a swap but --config, which a strategic merge cannot add to a list of strings (see
// ClusterConfigurationLines), and RestartedAt, which is of one moment on one node.
func KubeadmPatch(swap Swap) ([]byte, error) {
	if err := swap.check(); err != nil {
		return nil, err
	}
	container := []entry{{"name", text(program)}, {"image", text(swap.Image)}}
	spec := []entry{{"containers", nil}}
	if swap.ConfigFolder != "" {
		container = append(container, entry{"volumeMounts", list(swap.mount())})
		spec = append(spec, entry{"volumes", list(swap.volume())})
	}
	spec[0].value = list(mapping(container...))
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

func list(items ...*yaml.Node) *yaml.Node {
	return &yaml.Node{Kind: yaml.SequenceNode, Tag: yaml.NodeTagSeq, Content: items}
}

// ClusterConfigurationLines gives the lines of kubeadm's ClusterConfiguration that add --config, for a swap with a
// configuration. They stay the same from install to install.
func ClusterConfigurationLines() string {
	return "scheduler:\n  extraArgs:\n    config: " + ContainerConfigPath + "\n"
}

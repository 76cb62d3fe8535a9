// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	kubernetesyaml "sigs.k8s.io/yaml"
)

// patchedByKubeadm patches a manifest as `kubeadm --patches` does.
func patchedByKubeadm(t *testing.T, manifest, patch []byte) *corev1.Pod {
	t.Helper()
	original, err := kubernetesyaml.YAMLToJSON(manifest)
	if err != nil {
		t.Fatal(err)
	}
	change, err := kubernetesyaml.YAMLToJSON(patch)
	if err != nil {
		t.Fatal(err)
	}
	merged, err := strategicpatch.StrategicMergePatch(original, change, corev1.Pod{})
	if err != nil {
		t.Fatal(err)
	}
	pod := &corev1.Pod{}
	if err := kubernetesyaml.UnmarshalStrict(merged, pod); err != nil {
		t.Fatal(err)
	}
	return pod
}

func TestTheKubeadmPatchGivesWhatApplyGives(t *testing.T) {
	// kubeadm puts the ClusterConfiguration's extra argument here.
	const before = "    - --kubeconfig="
	extra := strings.Replace(stock, before, "    - --config="+ContainerConfigPath+"\n"+before, 1)
	older := withConfig
	older.Image, older.ConfigFolder, older.ConfigSHA256 = "older:1", "/older", strings.Repeat("a", 64)
	mounting := withConfig
	mounting.Mounts = "/etc/extender"
	hardened := withConfig
	hardened.Hardened, hardened.NonRoot = true, true
	for name, test := range map[string]struct {
		manifest string
		swap     Swap
	}{
		"with a configuration":    {extra, withConfig},
		"with a mount":            {extra, mounting},
		"of the image alone":      {stock, imageOnly},
		"hardened":                {extra, hardened},
		"over an older swap":      {string(apply(t, []byte(extra), older).Manifest), withConfig},
		"without a version label": {extra, Swap{Image: withConfig.Image, ConfigFolder: withConfig.ConfigFolder, ConfigSHA256: withConfig.ConfigSHA256}},
		"with nothing but image":  {stock, Swap{Image: withConfig.Image}},
	} {
		t.Run(name, func(t *testing.T) {
			patch, err := KubeadmPatch(test.swap)
			if err != nil {
				t.Fatal(err)
			}
			if strings.Contains(string(patch), RestartedAtAnnotation) {
				t.Errorf("the time of a restart is of one moment on one node:\n%s", patch)
			}
			got := patchedByKubeadm(t, []byte(test.manifest), patch)
			swap := test.swap
			swap.RestartedAt = older.RestartedAt
			if !strings.Contains(test.manifest, RestartedAtAnnotation) {
				swap.RestartedAt = Swap{}.RestartedAt
			}
			want := describe(t, string(apply(t, []byte(test.manifest), swap).Manifest)).Object
			inOneOrder(got)
			inOneOrder(want)
			if change := Diff("Apply", yamlOf(t, want), "kubeadm", yamlOf(t, got)); change != nil {
				t.Errorf("%s", change)
			}
		})
	}
}

// inOneOrder sorts lists whose order has no meaning: a strategic merge puts new items first.
func inOneOrder(pod *corev1.Pod) {
	mounts, volumes := pod.Spec.Containers[0].VolumeMounts, pod.Spec.Volumes
	slices.SortFunc(mounts, func(a, b corev1.VolumeMount) int { return strings.Compare(a.Name, b.Name) })
	slices.SortFunc(volumes, func(a, b corev1.Volume) int { return strings.Compare(a.Name, b.Name) })
}

func yamlOf(t *testing.T, object interface{}) []byte {
	t.Helper()
	text, err := kubernetesyaml.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

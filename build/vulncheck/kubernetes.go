// SPDX-License-Identifier: Apache-2.0

package vulncheck

const kubernetes = "k8s.io/kubernetes"

// ofKubernetes has the known vulnerabilities of Kubernetes 1.23.17 by their ids in the Go vulnerability database, which
// names no packages for most of them, with the packages or files that the fix, according to the advisory, changed.
var ofKubernetes = map[string][]string{
	// CVE-2021-25743: kubectl prints escape sequences.
	"GO-2022-0983": {"k8s.io/cli-runtime/pkg/printers", "k8s.io/kubectl/pkg/describe"},
	// CVE-2023-2431: kubelet runs a pod without its seccomp profile.
	"GO-2023-1864": {"k8s.io/kubernetes/pkg/kubelet/kuberuntime"},
	// CVE-2023-2727: ephemeral containers pass ImagePolicyWebhook.
	"GO-2023-1891": {"k8s.io/kubernetes/plugin/pkg/admission/imagepolicy"},
	// CVE-2023-2728: ephemeral containers pass the list of mountable secrets.
	"GO-2023-1892": {"k8s.io/kubernetes/plugin/pkg/admission/serviceaccount"},
	// CVE-2023-3955, CVE-2023-3676, CVE-2023-5528: commands in the paths of volumes on Windows.
	"GO-2023-2170": {"k8s.io/mount-utils/mount_windows.go", "k8s.io/kubernetes/pkg/volume/util/util_windows.go"},
	"GO-2023-2330": {"k8s.io/kubernetes/pkg/volume/util/subpath/subpath_windows.go"},
	"GO-2023-2341": {"k8s.io/mount-utils/mount_windows.go"},
	// CVE-2024-3177: envFrom passes the list of mountable secrets.
	"GO-2024-2746": {"k8s.io/kubernetes/plugin/pkg/admission/serviceaccount"},
	// CVE-2024-5321: anyone may read the logs of containers on Windows.
	"GO-2024-2994": {"k8s.io/kubernetes/pkg/kubelet"},
	// CVE-2024-0793: an autoscaler's patch crashes kube-controller-manager.
	"GO-2024-3277": {"k8s.io/kubernetes/pkg/controller/podautoscaler"},
	// CVE-2024-10220, CVE-2025-1767: gitRepo volumes run hooks and read repositories of the node.
	"GO-2024-3286": {"k8s.io/kubernetes/pkg/volume/git_repo"},
	"GO-2025-3521": {"k8s.io/kubernetes/pkg/volume/git_repo"},
	// CVE-2025-0426: checkpoints fill a node's disk.
	"GO-2025-3465": {"k8s.io/kubernetes/pkg/kubelet/server"},
	// CVE-2024-9042: commands in queries of logs on Windows.
	"GO-2025-3522": {"k8s.io/kubernetes/pkg/kubelet"},
	// CVE-2024-7598: network policies go before the pods of a namespace that is deleted.
	"GO-2025-3547": {"k8s.io/kubernetes/pkg/controller/namespace/deletion"},
	// CVE-2025-5187: a node deletes itself through an owner reference.
	"GO-2025-3915": {"k8s.io/kubernetes/plugin/pkg/admission/noderestriction"},
	// CVE-2025-13281: kube-controller-manager sends requests for Portworx volumes.
	"GO-2025-4240": {"k8s.io/kubernetes/pkg/volume/portworx"},
}

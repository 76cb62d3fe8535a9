// SPDX-License-Identifier: Apache-2.0

package swap

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/version"

	"kube-scheduler-fork/build/nextstep"
	"kube-scheduler-fork/build/schedulerpod"
	"kube-scheduler-fork/build/swap/host"
	"kube-scheduler-fork/build/swap/manifest"
)

// Minor releases of Kubernetes 1: the one that the scheduler is built for, the newest API server that this project has
// run it with, and the first one without CSIStorageCapacities in storage.k8s.io/v1beta1, which 1.23 waits for.
const (
	builtFor    = 23
	newestTried = 37
	hangsFrom   = 27

	// laterFlag is a flag of the images that support newer API servers.
	laterFlag = "informer-sync-timeout"
	// gateOff makes a scheduler of 1.23 start without CSIStorageCapacities.
	gateOff = "CSIStorageCapacity=false"
	// upgradePage is the page about API servers of later releases.
	upgradePage = "docs/leaving-1.23.md"
)

// minorOf returns the minor release of a version of Kubernetes 1, or 0 for other text.
func minorOf(text string) int {
	found, err := version.ParseGeneric(text)
	if err != nil || found.Major() != 1 {
		return 0
	}
	return int(found.Minor())
}

// checkSkew reports an API server of another minor release than the scheduler's. p is nil if there is no plan.
func checkSkew(findings *Findings, server string, p *plan) {
	switch minor := minorOf(server); {
	case minor == builtFor:
	case minor == 0:
		findings.problem("kubectl version", "the API server's version is %q, which cannot be compared with the scheduler's (1.%d)", server, builtFor)
	case minor < builtFor:
		findings.problem("kubectl version; upgrade the API server, or keep the scheduler of its own release",
			"the API server is %s, older than the scheduler (1.%d), which Kubernetes does not support", server, builtFor)
	case p == nil || p.refusal != nil:
		findings.warn("kube-scheduler-swap check --archive kube-scheduler.tar, which asks the image; see "+upgradePage,
			"the API server is %s, newer than the scheduler (1.%d): only an image with the flag --%s supports it", server, builtFor, laterFlag)
	case !p.later:
		findings.problem("use an image of this project with that flag, or the stock scheduler of the API server's release; see "+upgradePage,
			"the API server is %s, and this image only supports 1.%d: it lacks the flag --%s, ignores pods' fields of later "+
				"releases, and from 1.%d on does not schedule at all", server, builtFor, laterFlag, hangsFrom)
	case minor > newestTried:
		findings.warn("try it on a test cluster first; see "+upgradePage,
			"the API server is %s; this project has run the scheduler (1.%d) with API servers up to 1.%d", server, builtFor, newestTried)
	default:
		findings.warn("nothing; "+upgradePage+" lists these fields",
			"the API server is %s, newer than the scheduler (1.%d): pods with fields of later releases that it does not know wait, "+
				"and their event names the field", server, builtFor)
	}
}

// noteSkew describes an API server that is newer than the scheduler in the manifest; empty if it is not.
func noteSkew(server string, pod *manifest.Pod) string {
	if minorOf(server) <= builtFor || !pod.Swapped && minorOf(tagOf(pod)) != builtFor {
		return ""
	}
	return fmt.Sprintf("the API server is %s, newer than the scheduler (1.%d); next: kube-scheduler-swap check --image %s, which "+
		"reports whether this image supports it; see %s", server, builtFor, pod.Image, upgradePage)
}

// noLease is the note for a healthy scheduler while no scheduler holds the lease. It names a pod.
const noLease = "the scheduler is healthy, but no scheduler holds the lease, which /healthz does not see. If this lasts for more than " +
	"half a minute, the scheduler waits for an API that the API server lacks, or may not use the lease; next: kubectl --namespace " +
	"kube-system logs %s, which names it; see docs/on-call.md"

// refuseHang returns an error for an earlier manifest whose scheduler would wait for ever for an API that the API server
// no longer has. A rollback goes on if the API server does not answer, and if the earlier scheduler is a swapped one,
// which may support it.
func (r *restoration) refuseHang() error {
	pod, err := manifest.Describe(r.target)
	if err != nil {
		return nil // keep reports it
	}
	server, err := r.node.Cluster.Client.Discovery().ServerVersion()
	hasGateOff := func(flag schedulerpod.FlagPlace) bool { return strings.Contains(flag.Value, gateOff) }
	if err != nil || minorOf(server.GitVersion) < hangsFrom || slices.ContainsFunc(pod.Line.Find("feature-gates"), hasGateOff) {
		return nil
	}
	switch {
	case pod.Swapped && !host.IsControl(pod.Swap.Version):
		r.say("the API server is %s: if the image %s lacks the flag --%s, it does not schedule; then run "+
			"kube-scheduler-swap rollback --to %s", server.GitVersion, pod.Image, laterFlag, ToPrevious)
		return nil
	case !pod.Swapped && minorOf(tagOf(&pod)) != builtFor:
		return nil
	}
	return nextstep.With(
		fmt.Errorf("nothing was changed: %s has the scheduler %s, which does not schedule with the API server %s: it waits for ever for "+
			"CSIStorageCapacities in storage.k8s.io/v1beta1", r.path, pod.Image, server.GitVersion),
		"%s, which writes the stock scheduler of the API server's release; or, in an emergency, add the line "+
			"\"    - --feature-gates=%s\" below \"- kube-scheduler\" in %s, then run this again; see %s",
		byKubeadm, gateOff, r.path, upgradePage)
}

// tagOf returns the tag of a pod's image, or text that is not a version.
func tagOf(pod *manifest.Pod) string {
	image, _, _ := strings.Cut(pod.Image, "@")
	return image[strings.LastIndex(image, ":")+1:]
}

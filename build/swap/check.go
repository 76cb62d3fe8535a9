// SPDX-License-Identifier: Apache-2.0

package swap

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"sort"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
	corev1 "k8s.io/api/core/v1"

	"kube-scheduler-fork/build/nextstep"
	"kube-scheduler-fork/build/schedulerpod"
)

// minor is the minor release of Kubernetes that the scheduler is built for.
const minor = "1.23"

// Check returns everything that would make a swap fail, and a swap that an upgrade has undone. It changes nothing.
func (t *Tool) Check(ctx context.Context, request Request) (Findings, error) {
	var findings Findings
	content, pod, err := t.readManifest()
	if err != nil {
		return nil, err
	}
	if err := checkAccepted(request.Accept); err != nil {
		return nil, err
	}
	if err := t.checkUndone(&findings, content, pod); err != nil {
		return nil, err
	}
	if request.Archive == "" && request.Image == "" && request.VerifyKey == "" && !pod.Swapped {
		// Without a target, check only what does not depend on one.
		return append(findings, t.checkNode(ctx, pod, nil)...), nil
	}
	p, err := t.plan(ctx, request)
	if err != nil {
		findings.failed(err)
		return append(findings, t.checkNode(ctx, pod, nil)...), nil
	}
	rest, err := t.check(ctx, p, request)
	return append(findings, rest...), err
}

// otherwise is the next step for an error without one.
const otherwise = "fix the problem above, then run the same command again"

// check returns everything that would make a plan fail.
func (t *Tool) check(ctx context.Context, p *plan, request Request) (Findings, error) {
	findings := t.checkNode(ctx, p.pod, p)
	if p.archive != nil {
		if err := t.checkNames(ctx, &findings, p); err != nil {
			return nil, err
		}
	}
	t.checkForm(&findings, p)
	if p.pod.pulls() {
		findings.warn("nothing; make sure that other tools that write this manifest keep that",
			"the manifest makes kubelet pull the image at every start; install sets imagePullPolicy: IfNotPresent, because it loads the image itself")
	}
	checkHardened(&findings, p)
	t.checkReplaced(&findings, p, request)
	t.checkConfig(ctx, &findings, p, request)
	if p.accepted != nil {
		t.checkOthers(ctx, &findings, p, request.Accept)
	}
	return findings, nil
}

// checkNames reports images in the runtime that the archive would replace, because it has one of their names.
func (t *Tool) checkNames(ctx context.Context, findings *Findings, p *plan) error {
	for _, name := range p.archive.names {
		id, err := t.node.runtime.imageID(ctx, name)
		if err != nil {
			return err
		}
		repository, _, _ := strings.Cut(path.Base(name), ":")
		switch {
		case id == "" || id == p.imageID:
		case name == p.pod.Image:
			findings.problem("kube-scheduler-swap rollback, then run this again; or use an archive with another image name",
				"the running scheduler is another image with the same name, %s: once the new image is loaded, the old manifest "+
					"would start it, too", name)
		case !strings.Contains(repository, "scheduler"):
			findings.problem("use an archive with only the scheduler's image name, as in the release bundle",
				"the container runtime has another image with the name %s, which is not a scheduler's: loading %s replaces it "+
					"for all pods", name, p.archive.path)
		default:
			findings.warn("nothing, if that image is no longer needed; otherwise use an archive with another image name",
				"the container runtime has another image with the name %s; loading %s replaces it, and a rollback to it would "+
					"run the new one", name, p.archive.path)
		}
	}
	return nil
}

// checkReplaced reports settings that would be lost: flags without
// effect next to a configuration, and a configuration of the operator's.
func (t *Tool) checkReplaced(findings *Findings, p *plan, request Request) {
	after, err := p.configAfter()
	if after == nil || err != nil {
		return
	}
	if own, err := configContent(p.pod); err == nil && own != nil && !usesConfig(p.pod) && sum(own) != sum(after) {
		file, _ := p.pod.Flag("config")
		what := ""
		if config, err := schedulerpod.ReadConfig(own); err == nil {
			what = ", with the profiles " + strings.Join(config.SchedulerNames(), ", ")
		}
		findings.unless(request.Accept, OwnConfiguration, "copy its settings into the configuration that you install",
			"the manifest uses your own configuration, %s%s, and install replaces it", file, what)
	}
	lost, err := withoutEffect(p.pod, after)
	if err != nil {
		return
	}
	_, had := p.pod.Flag("config")
	for _, s := range lost {
		next := "add to the configuration: " + s.line() + ", or install with --adopt-flags"
		if strings.HasSuffix(s.name, "profiling") && !had {
			findings.unless(request.Accept, ProfilingFlags, next,
				"%s of the manifest has no effect with a configuration, so the scheduler would serve /debug/pprof/ again", s)
			continue
		}
		findings.warn(next, "%s of the manifest has no effect with a configuration, where %s is not set", s, strings.Join(s.field, "."))
	}
}

// configAfter returns the configuration of the new scheduler; nil without one.
func (p *plan) configAfter() ([]byte, error) {
	if p.config != nil {
		return p.config, nil
	}
	return configContent(p.afterPod)
}

// checkForm warns if the whole manifest would be reformatted.
func (t *Tool) checkForm(findings *Findings, p *plan) {
	if p.reformatted && !p.unchanged() {
		findings.warn("kube-scheduler-swap diff with the same arguments shows every line",
			"%s", wouldReformat(t.manifest))
	}
}

// checkUndone reports a swap that an upgrade or a person has overwritten.
func (t *Tool) checkUndone(findings *Findings, content []byte, pod *Pod) error {
	var last installed
	there, err := readRecord(t.state.installedFile(), &last)
	if err != nil {
		return err
	}
	if unfinished, err := t.state.unfinished(); err != nil {
		return err
	} else if unfinished != nil && slices.Contains(unfinished.Unproven, identity(content)) {
		findings.warn("run kube-scheduler-swap install with the same arguments, or kube-scheduler-swap rollback",
			"the %s of %s did not finish", unfinished.Operation, unfinished.Started.Format("2006-01-02 15:04:05 MST"))
		return nil
	}
	again := "kube-scheduler-swap install --image " + last.Image
	if last.Config != "" {
		again += " --config " + filepath.Join(t.state.configFolder(last.Config+strings.Repeat("0", 12)), ConfigFileName)
	}
	if last.Mounts != "" {
		again += " --mount " + last.Mounts
	} else if pod.Swap.Mounts != "" {
		again += " --mount " + NoMount
	}
	if last.Hardened {
		again += " --hardened"
	}
	again += ", and kube-scheduler-swap kubeadm-patch for the next upgrade"
	at := last.At.Format("2006-01-02 15:04:05 MST")
	switch {
	case halfSwapped(pod):
		findings.problem("kube-scheduler-swap install --archive kube-scheduler.tar --config FILE, and use --patches at the next upgrade",
			"%s uses %s but mounts nothing there, so its scheduler cannot start; kubeadm writes this without our patch", t.manifest, ContainerConfigPath)
	case !there && (!pod.Swapped || pod.Swap.ConfigSHA256 != "" && !usesConfig(pod)) && t.state.patchThere():
		// This node joined with another node's patch.
		findings.warn("kube-scheduler-swap install --archive kube-scheduler.tar --config FILE, or remove the patch",
			"kubeadm's patch for the swap is in %s, but %s is not, or only partly, swapped, as after an upgrade without --patches", DefaultPatches, t.manifest)
	case !there || last.Manifest == sum(content):
	case last.Config != "" && pod.Image == last.Image && pod.Swap.ConfigSHA256 == last.Config && !usesConfig(pod):
		findings.problem(again, "the swap was partly undone: %s has the image and the volume that were installed on %s, but not --config; "+
			"scheduler.extraArgs.config is missing in kubeadm's ClusterConfiguration", t.manifest, at)
	case pod.Swapped && pod.Image == last.Image && pod.Swap.ConfigSHA256 != last.Config:
		findings.problem(again, "the swap was changed: %s uses another configuration than the one that was installed on %s", t.manifest, at)
	case pod.Swapped && pod.Image == last.Image && pod.Swap.Mounts != last.Mounts:
		findings.problem(again, "the swap was changed: %s mounts other directories (%q) than those that were installed on %s (%q)",
			t.manifest, pod.Swap.Mounts, at, last.Mounts)
	case pod.Swapped && pod.Image == last.Image && last.Hardened && !pod.Swap.Hardened:
		findings.problem(again, "the swap was changed: the container in %s is not hardened, as it was installed on %s", t.manifest, at)
	case !pod.Swapped && pod.Image == last.Image:
		findings.problem(again, "the swap was undone: %s has the image that was installed on %s, and nothing else of the swap, as after kubeadm upgrade",
			t.manifest, at)
	case !pod.Swapped || pod.Image != last.Image:
		findings.problem(again, "the swap was undone: %s has the image %s instead of the one that was installed on %s, %s, as after kubeadm upgrade",
			t.manifest, pod.Image, at, last.Image)
	default:
		findings.warn("nothing, if that was intended", "%s was rewritten or edited since %s; its image and configuration are those that were installed", t.manifest, at)
	}
	return nil
}

// checkNode reports problems of this node and the cluster that do
// not depend on the new scheduler. p is nil if there is no plan.
func (t *Tool) checkNode(ctx context.Context, pod *Pod, p *plan) Findings {
	var findings Findings
	if version, err := t.node.cluster.client.Discovery().ServerVersion(); err != nil {
		findings.problem(fmt.Sprintf("kubectl --kubeconfig %s version", t.node.cluster.kubeconfig), "the API server does not answer: %v", err)
	} else if minorOf(version.GitVersion) != minor {
		findings.problem("build the scheduler of that release", "the API server is %s, but the scheduler is %s: it must be the same minor version, or one older", version.GitVersion, minor)
	}
	nodes, err := t.node.cluster.nodes(ctx)
	if err != nil {
		findings.failed(err)
	} else if !slices.ContainsFunc(nodes, func(node corev1.Node) bool { return node.Name == t.node.kubelet.nodeName }) {
		findings.problem("kubectl get nodes; ps -o args -p "+strconv.Itoa(t.node.kubelet.process), "the cluster has no node %s, which is this node's name according to kubelet's settings and the host name", t.node.kubelet.nodeName)
	}
	if p != nil && p.accepted != nil {
		checkRequests(&findings, p.accepted.ClientConnection.QPS, len(nodes))
	}
	controlPlanes := 0
	for i := range nodes {
		t.checkNodeObject(ctx, &findings, &nodes[i])
		if _, is := nodes[i].Labels[controlPlaneLabel]; is {
			controlPlanes++
		}
	}
	if controlPlanes > 1 {
		t.checkElection(&findings, pod, p, controlPlanes-1)
	}
	if err := t.refuseLink(); err != nil {
		findings.failed(err)
	}
	t.checkStray(&findings, pod)
	if err := t.node.runtime.missingTool(); err != nil {
		findings.failed(err)
	}
	if folder := filepath.Dir(t.manifest); t.node.kubelet.manifests != "" && filepath.Clean(t.node.kubelet.manifests) != folder {
		findings.problem("leave out --manifest", "kubelet runs the manifests in %s, not those in %s", t.node.kubelet.manifests, folder)
	}
	if err := writable(filepath.Dir(t.manifest)); err != nil {
		findings.problem("mount | grep "+filepath.Dir(t.manifest)+"; df "+filepath.Dir(t.manifest), "the directory of the manifests is not writable: %v", err)
	}
	return findings
}

// checkRequests warns of the default limit of requests, a binding each, in a large cluster. With a fifth of the number of
// nodes, a third of the pods, 30 on a node, is bound in 50 seconds.
func checkRequests(findings *Findings, limit float64, nodes int) {
	if qps := nodes / 5; (limit == 0 || limit == 50) && qps > 50 {
		findings.warn(fmt.Sprintf("set clientConnection: {qps: %d, burst: %d} in the configuration, if the API server has room", qps, 2*qps),
			"clientConnection.qps is 50, the default: the scheduler binds at most 50 pods per second, and the cluster has %d nodes", nodes)
	}
}

// checkElection reports a scheduler, the current one or the new one, that does not share a lease with the schedulers of
// the other control-plane nodes.
func (t *Tool) checkElection(findings *Findings, pod *Pod, p *plan, others int) {
	config, _ := configOf(pod)
	now := pod.Lease(config)
	if now == nil {
		findings.warn(
			"remove --leader-elect=false from "+t.manifest+", and leaderElect: false from its configuration",
			"the scheduler of this node runs without leader election, but there are %d other control-plane nodes: it "+
				"schedules the same pods as their leader", others)
	}
	if p == nil || p.refusal != nil {
		return
	}
	switch then := p.afterPod.Lease(p.accepted); {
	case now == nil && then == nil:
		findings.warn("remove it before the install; flags override the configuration",
			"the new scheduler would run without leader election, too")
	case now != nil && (then == nil || *now != *then):
		findings.problem(fmt.Sprintf("leave leaderElection at %s", now),
			"the new scheduler would not share the lease %s with the schedulers of the other %d control-plane nodes: two would "+
				"schedule the same pods",
			now, others)
	}
}

// controlPlaneLabel is kubeadm's node label.
const controlPlaneLabel = "node-role.kubernetes.io/control-plane"

var minorPattern = regexp.MustCompile(`^v?(1\.[0-9]+)\.`)

func minorOf(version string) string {
	if found := minorPattern.FindStringSubmatch(version); found != nil {
		return found[1]
	}
	return version
}

// writable reports an error if folder is not writable. It writes no test file, because kubelet watches the directory.
func writable(folder string) error {
	if err := unix.Access(folder, unix.W_OK); err != nil {
		return fmt.Errorf("%s: %w", folder, err)
	}
	return nil
}

func (t *Tool) checkNodeObject(ctx context.Context, findings *Findings, node *corev1.Node) {
	here := node.Name == t.node.kubelet.nodeName
	if here {
		// Whether the node is NotReady then depends on the runtime;
		// pods with their own network cannot start in any case.
		if missing := t.node.missingPlugins(ctx); len(missing) > 0 {
			report := findings.warn
			if !nodeReady(node) {
				report = findings.problem
			}
			report("install the network plugins (Debian: containernetworking-plugins; others: the CNI plugins' release), or fix the configuration of the network",
				"this node's network plugin is missing: %s", strings.Join(missing, ", "))
		}
	}
	if here && minorOf(node.Status.NodeInfo.KubeletVersion) != minor {
		findings.problem("build the scheduler of that release", "this node's kubelet is %s, but the scheduler is %s", node.Status.NodeInfo.KubeletVersion, minor)
	}
	for _, condition := range node.Status.Conditions {
		if condition.Type != corev1.NodeReady || condition.Status == corev1.ConditionTrue {
			continue
		}
		if here {
			findings.problem("kubectl describe node "+node.Name+"; journalctl -u kubelet", "this node is NotReady: %s", condition.Message)
			continue
		}
		findings.warn("kubectl describe node "+node.Name, "the node %s is NotReady, so nothing is scheduled there: %s", node.Name, condition.Message)
	}
}

func nodeReady(node *corev1.Node) bool {
	for _, condition := range node.Status.Conditions {
		if condition.Type == corev1.NodeReady {
			return condition.Status == corev1.ConditionTrue
		}
	}
	return false
}

// checkStray checks the other files in kubelet's static pod directory.
func (t *Tool) checkStray(findings *Findings, pod *Pod) {
	folder := filepath.Dir(t.manifest)
	entries, err := os.ReadDir(folder)
	if err != nil {
		findings.problem("run the same command with sudo", "%v", err)
		return
	}
	for _, entry := range entries {
		if entry.Name() == filepath.Base(t.manifest) || entry.IsDir() {
			continue
		}
		content, err := readRegular(filepath.Join(folder, entry.Name()))
		if errors.Is(err, os.ErrNotExist) {
			continue
		} else if err != nil {
			findings.warn("move it out of the manifests directory",
				"kubelet cannot run %s: %v", filepath.Join(folder, entry.Name()), err)
			continue
		}
		stray := Stray(entry.Name(), content, *pod)
		switch {
		case stray.Serious():
			findings.problem(stray.Next, "%s: %s", filepath.Join(folder, entry.Name()), stray.Explanation)
		case !stray.Harmless():
			findings.warn(stray.Next, "%s: %s", filepath.Join(folder, entry.Name()), stray.Explanation)
		}
	}
}

// checkConfig reports why the new scheduler rejects its configuration,
// and accepted settings that leave pods without a scheduler.
func (t *Tool) checkConfig(ctx context.Context, findings *Findings, p *plan, request Request) {
	if p.config != nil {
		// The scheduler's own messages for these name neither the field to set nor the kind of the file.
		config, err := schedulerpod.ReadConfig(p.config)
		switch {
		case len(bytes.TrimSpace(p.config)) == 0:
			findings.problem("name a KubeSchedulerConfiguration with --config", "%s is empty", request.Config)
			return
		case err == nil && config.Kind != configKind:
			findings.problem("name a "+configKind+" with --config; a truncated file has no kind either",
				"%s is not a %s: its kind is %q", request.Config, configKind, config.Kind)
			return
		case err == nil && p.refusal == nil && config.ClientConnection.Kubeconfig == "":
			findings.problem("add to it: clientConnection: {kubeconfig: /etc/kubernetes/scheduler.conf}",
				"%s has no clientConnection.kubeconfig: with --config the scheduler ignores --kubeconfig and finds no API server", request.Config)
			return
		}
	}
	if p.refusal != nil {
		findings.failed(p.refusal)
		return
	}
	for _, warning := range p.warnings {
		findings.warn("fix it; the scheduler starts nevertheless", "the new scheduler warns: %s", warning)
	}
	served := map[string]bool{}
	for _, profile := range p.accepted.SchedulerNames() {
		served[profile] = true
	}
	for _, name := range request.Probe {
		if !served[name] {
			findings.problem("name one of its profiles with --probe", "the configuration has no profile %s, so the probe pod would never be bound", name)
		}
	}
	if !served[defaultScheduler] {
		findings.problem("add to its profiles: - schedulerName: "+defaultScheduler,
			"the configuration has no profile %s: pods that name no scheduler would stay Pending", defaultScheduler)
	}
	if kubeconfig := p.accepted.ClientConnection.Kubeconfig; kubeconfig != "" {
		if host, mounted := p.afterPod.HostPath(kubeconfig); !mounted {
			findings.problem("use /etc/kubernetes/scheduler.conf, which kubeadm mounts",
				"clientConnection.kubeconfig is %s, but the manifest mounts nothing there", kubeconfig)
		} else if _, err := os.Stat(host); err != nil {
			findings.problem("use /etc/kubernetes/scheduler.conf, which kubeadm writes", "clientConnection.kubeconfig: %v", err)
		}
	}
	now, _ := configOf(p.pod)
	if effect, err := t.node.cluster.withoutOvercommit(ctx, now, p.accepted); err != nil {
		findings.failed(err)
	} else if effect != "" {
		findings.warn("enable the plugin in their profiles, or delete the pods that wait", "%s", effect)
	}
	pending, err := t.node.cluster.pending(ctx)
	if err != nil {
		findings.failed(err)
		return
	}
	var names []string
	for name := range pending {
		if !served[name] {
			names = append(names, name)
		}
	}
	sort.Strings(names)
	for _, name := range names {
		pods := pending[name]
		if servesNow(p.pod, name) {
			findings.unless(request.Accept, PendingPods, "add a profile with schedulerName: "+name, "%d pending pods ask for the scheduler %s, which the running scheduler serves and the new one does not, for example %s",
				len(pods), name, pods[0])
			continue
		}
		// A second scheduler may serve it.
		findings.warn("add a profile with schedulerName: "+name+", or start a scheduler of that name",
			"%d pending pods ask for the scheduler %s, which no profile serves, for example %s", len(pods), name, pods[0])
	}
}

// configKind is the kind of a scheduler configuration.
const configKind = "KubeSchedulerConfiguration"

// checkHardened reports the files because of which a hardened scheduler runs as root, or could not start.
func checkHardened(findings *Findings, p *plan) {
	report := func(files []string, add func(next, format string, arguments ...any), group uint32, format string, arguments ...any) {
		var hosts []string
		for _, file := range files {
			host, _ := p.afterPod.HostPath(file)
			hosts = append(hosts, host)
		}
		if names := strings.Join(hosts, " "); names != "" {
			add(fmt.Sprintf("chgrp %d %s && chmod g+rX %s, if you want that, then run this again; this tool does not change the modes of files",
				group, names, names), format, append(arguments, names)...)
		}
	}
	report(p.rootOnly, findings.warn, NonRootUser, "the scheduler keeps running as root, because the user %d cannot read %s", NonRootUser)
	var user syscall.Credential
	if other := userOf(p.afterPod); other != nil {
		user = *other
	}
	report(p.unreadable, findings.problem, user.Gid, "the new scheduler has no capabilities, so its user %d could not read %s", user.Uid)
}

// checkOthers reports schedulers that serve the same profiles as the
// new one without sharing its lease: both would bind the same pods.
func (t *Tool) checkOthers(ctx context.Context, findings *Findings, p *plan, accepted []string) {
	others, err := t.node.cluster.otherSchedulers(ctx)
	if err != nil {
		what, next := nextstep.Split(err, otherwise)
		findings.warn(next, "%s", what)
		return
	}
	ours := p.afterPod.Lease(p.accepted)
	reported := map[string]bool{}
	for _, other := range others {
		if ours != nil && other.lease != nil && *ours == *other.lease {
			continue
		}
		for _, profile := range p.accepted.SchedulerNames() {
			if !slices.Contains(other.profiles, profile) || reported[profile] {
				continue
			}
			// Report each profile once, not for every replica.
			reported[profile] = true
			findings.unless(accepted, SharedProfiles, "give one of the two profiles another schedulerName, or stop that scheduler",
				"the scheduler in pod %s serves %s, too: both would bind the same pods, and one of them would fail each time", other.pod, profile)
		}
	}
}

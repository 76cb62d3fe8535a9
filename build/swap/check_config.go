// SPDX-License-Identifier: Apache-2.0

package swap

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"syscall"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	"kube-scheduler-fork/build/nextstep"
	"kube-scheduler-fork/build/schedulerpod"
	"kube-scheduler-fork/build/swap/host"
	"kube-scheduler-fork/build/swap/manifest"
)

// checkReplaced reports settings that would be lost: flags without
// effect next to a configuration, and a configuration of the operator's.
func (t *Tool) checkReplaced(findings *Findings, p *plan, request Request) {
	after, err := p.configAfter()
	if after == nil || err != nil {
		return
	}
	if own, err := host.ConfigContent(p.pod); err == nil && own != nil && !manifest.UsesConfig(p.pod) && manifest.Sum(own) != manifest.Sum(after) {
		file, _ := p.pod.Flag("config")
		what := ""
		if config, err := schedulerpod.ReadConfig(own); err == nil {
			what = ", with the profiles " + strings.Join(config.SchedulerNames(), ", ")
		}
		findings.unless(request.Accept, OwnConfiguration, "copy its settings into the configuration that you install",
			"the manifest uses your own configuration, %s%s, and install replaces it", file, what)
	}
	lost, err := manifest.WithoutEffect(p.pod, after)
	if err != nil {
		return
	}
	_, had := p.pod.Flag("config")
	for _, s := range lost {
		next := "add to the configuration: " + s.Line() + ", or install with --adopt-flags"
		if strings.HasSuffix(s.Name, "profiling") && !had {
			findings.unless(request.Accept, ProfilingFlags, next,
				"%s of the manifest has no effect with a configuration, so the scheduler would serve /debug/pprof/ again", s)
			continue
		}
		findings.warn(next, "%s of the manifest has no effect with a configuration, where %s is not set", s, strings.Join(s.Field, "."))
	}
}

// configAfter returns the configuration of the new scheduler; nil without one.
func (p *plan) configAfter() ([]byte, error) {
	if p.config != nil {
		return p.config, nil
	}
	return host.ConfigContent(p.afterPod)
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
	served := sets.NewString(p.accepted.SchedulerNames()...)
	for _, name := range request.Probe {
		if !served.Has(name) {
			findings.problem("name one of its profiles with --probe", "the configuration has no profile %s, so the probe pod would never be bound", name)
		}
	}
	if !served.Has(corev1.DefaultSchedulerName) {
		findings.problem("add to its profiles: - schedulerName: "+corev1.DefaultSchedulerName,
			"the configuration has no profile %s: pods that name no scheduler would stay Pending", corev1.DefaultSchedulerName)
	}
	if kubeconfig := p.accepted.ClientConnection.Kubeconfig; kubeconfig != "" {
		if host, mounted := p.afterPod.HostPath(kubeconfig); !mounted {
			findings.problem("use /etc/kubernetes/scheduler.conf, which kubeadm mounts",
				"clientConnection.kubeconfig is %s, but the manifest mounts nothing there", kubeconfig)
		} else if _, err := os.Stat(host); err != nil {
			findings.problem("use /etc/kubernetes/scheduler.conf, which kubeadm writes", "clientConnection.kubeconfig: %v", err)
		}
	}
	now, _ := host.ConfigOf(p.pod)
	if effect, err := t.node.Cluster.WithoutOvercommit(ctx, now, p.accepted); err != nil {
		findings.failed(err)
	} else if effect != "" {
		findings.warn("enable the plugin in their profiles, or delete the pods that wait", "%s", effect)
	}
	pending, err := t.node.Cluster.Pending(ctx)
	if err != nil {
		findings.failed(err)
		return
	}
	for _, name := range slices.Sorted(maps.Keys(pending)) {
		switch pods := pending[name]; {
		case served.Has(name):
		case host.ServesNow(p.pod, name):
			findings.unless(request.Accept, PendingPods, "add a profile with schedulerName: "+name, "%d pending pods ask for the scheduler %s, which the running scheduler serves and the new one does not, for example %s",
				len(pods), name, pods[0])
		default:
			// A second scheduler may serve it.
			findings.warn("add a profile with schedulerName: "+name+", or start a scheduler of that name",
				"%d pending pods ask for the scheduler %s, which no profile serves, for example %s", len(pods), name, pods[0])
		}
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
	report(p.rootOnly, findings.warn, manifest.NonRootUser, "the scheduler keeps running as root, because the user %d cannot read %s", manifest.NonRootUser)
	var user syscall.Credential
	if other := p.afterPod.User(); other != nil {
		user = *other
	}
	report(p.unreadable, findings.problem, user.Gid, "the new scheduler has no capabilities, so its user %d could not read %s", user.Uid)
}

// checkSharedProfiles reports schedulers that serve the same profiles as the
// new one without sharing its lease: both would bind the same pods.
func (t *Tool) checkSharedProfiles(ctx context.Context, findings *Findings, p *plan, accepted []string) {
	others, err := t.node.Cluster.Schedulers(ctx)
	if err != nil {
		what, next := nextstep.Split(err, otherwise)
		findings.warn(next, "%s", what)
		return
	}
	ours := p.afterPod.Lease(p.accepted)
	reported := map[string]bool{}
	for _, other := range others {
		if ours != nil && other.Lease != nil && *ours == *other.Lease {
			continue
		}
		for _, profile := range p.accepted.SchedulerNames() {
			if !slices.Contains(other.Profiles, profile) || reported[profile] {
				continue
			}
			// Report each profile once, not for every replica.
			reported[profile] = true
			findings.unless(accepted, SharedProfiles, "give one of the two profiles another schedulerName, or stop that scheduler",
				"the scheduler in pod %s serves %s, too: both would bind the same pods, and one of them would fail each time", other.Pod, profile)
		}
	}
}
